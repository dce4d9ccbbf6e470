"""Pairs of answers, changed in one place or spelled differently: generated from prompt files, with a fixed seed.

Each generator takes the folder of prompts and accepted answers, and gives the same pairs every time. ``altered`` and
``calls_changed`` differ for a user; ``formatted``, ``respelled`` and ``calls_respelled`` do not.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

from benchmarks.changed_calls import CHANGED_CALLS, Call, accepted, request, turned
from benchmarks.edits import ALTERED, RESPELLED, SENTENCE_END, Edit
from benchmarks.formats import FORMATTED
from replay.exchange import Choice, ToolCall

SEED = 5
EACH = 120
"""Pairs of one kind, as far as the prompts have places for it."""
_CALCULATION = re.compile(r"<<[^>]*>>|^####.*$", re.MULTILINE)
_CALL_FILES = ("live_simple", "multiple", "parallel", "live_parallel_multiple")
_ASKED = {"model": "m", "messages": [{"role": "user", "content": "Say it in your own words."}]}
_GAPS = ((",", ":"), (", ", ": "), (" , ", " : "))


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two answers to one request, and whether they serve a user alike."""

    kind: str
    request: Mapping[str, Any]
    baseline: Choice
    candidate: Choice
    equal: bool


def altered(data: Path) -> Iterator[Pair]:
    """Texts with one number, date, time, unit, currency, role or comparison changed."""
    return _edited(data, ALTERED, equal=False)


def formatted(data: Path) -> Iterator[Pair]:
    """Texts that differ in formatting only."""
    return _edited(data, FORMATTED, equal=True)


def respelled(data: Path) -> Iterator[Pair]:
    """Texts with one number, date, time, unit, currency or comparison in other words that mean the same."""
    return _edited(data, RESPELLED, equal=True)


def calls_respelled(data: Path) -> Iterator[Pair]:
    """Calls in another order, their keys too, with other white space, and 5 for 5.0 where the schema says number."""
    chance = Random(SEED)
    for asked, calls in _called(data):
        other = [turned(call, asked, chance) for call in chance.sample(calls, len(calls))]
        yield Pair(
            kind="call spelling",
            request=asked,
            baseline=_choice(calls, Random(SEED)),
            candidate=_choice(other, chance),
            equal=True,
        )


def calls_changed(data: Path) -> Iterator[Pair]:
    """Calls with an argument, a type or a name changed, or one of them missing: a pair of each kind that they allow."""
    chance = Random(SEED)
    for asked, calls in _called(data):
        for kind, change in CHANGED_CALLS.items():
            changed = change(calls, asked, chance)
            if changed is not None:
                old, new = _choice(calls, Random(SEED)), _choice(changed, Random(SEED))
                yield Pair(kind=kind, request=asked, baseline=old, candidate=new, equal=False)


def _edited(data: Path, edits: Mapping[str, Edit], *, equal: bool) -> Iterator[Pair]:
    passages = _passages(data / "prompts")
    for kind, edit in edits.items():
        chance = Random(f"{SEED} {kind}")
        shuffled = chance.sample(passages, len(passages))
        found = filter(None, (edit(passage, chance) for passage in shuffled))
        unlike = ((old, new) for old, new in found if old != new)
        for old, new in islice(unlike, EACH):
            yield Pair(kind=kind, request=_ASKED, baseline=_said(old), candidate=_said(new), equal=equal)


def _said(text: str) -> Choice:
    return Choice(text=text, finish_reason="stop")


def _choice(calls: Sequence[Call], chance: Random) -> Choice:
    indent, gap = chance.choice((None, 1, 2)), chance.choice(_GAPS)
    made = tuple(
        ToolCall(
            name=name,
            arguments=json.dumps(given, indent=indent, separators=gap, ensure_ascii=chance.random() < 0.5),
            id=f"call_{chance.randrange(10**9)}",
        )
        for name, given in calls
    )
    return Choice(tool_calls=made, finish_reason="tool_calls")


def _passages(prompts: Path) -> list[str]:
    """Sentences of the prompts, and whole prompts of several, shuffled."""
    found: dict[str, None] = {}
    for text in _texts(prompts):
        sentences = [one for one in SENTENCE_END.split(text) if 6 <= len(one.split()) <= 50]
        found.update(dict.fromkeys(sentences))
        if len(sentences) > 1 and len(text.split()) <= 220:
            found[text] = None
    return Random(SEED).sample(list(found), len(found))


def _texts(prompts: Path) -> Iterator[str]:
    for row in _rows(prompts / "mt_bench.jsonl"):
        yield from map(_one_line, row["turns"])
    for row in _rows(prompts / "gsm8k_test.jsonl"):
        yield _one_line(row["question"])
        yield _one_line(_CALCULATION.sub("", row["answer"]))
    for name in _CALL_FILES:
        for row in _rows(prompts / f"bfcl_{name}.jsonl"):
            yield from (_one_line(message["content"]) for message in row["question"][0])


def _called(data: Path) -> Iterator[tuple[dict[str, Any], list[Call]]]:
    """Requests with tools, as a client sends them, and calls that answer them."""
    for name in _CALL_FILES:
        answers = {row["id"]: row["ground_truth"] for row in _rows(data / "answers" / f"bfcl_{name}.jsonl")}
        for row in _rows(data / "prompts" / f"bfcl_{name}.jsonl"):
            calls = [accepted(call) for call in answers.get(row["id"], [])]
            if calls:
                yield request(row), calls


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)
