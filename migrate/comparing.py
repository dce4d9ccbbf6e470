"""From the lines of a file of pairs to comparisons by rules, a batch at a time: what worker processes do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from migrate.imports import Batch
from replay.decoding import parse_object
from replay.exchange import JSON
from replay.formats.fields import Unusable
from replay.formats.record import Skip
from reports.compare.judge_model import last_message
from reports.compare.texts import Look, Texts, look
from reports.policy import Extractor

_ARMS = ("baseline", "candidate")
_KEYS = frozenset(("id", "prompt", "request", "repeat", *_ARMS))
_LONGEST_ID = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """One pair after the rules."""

    line: int
    name: str | int
    """The line's own id, as it was given; the line's number where it has none."""
    look: Look
    prompt: str
    """What the user said last, for a judge model; empty where none is asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How lines are read; the same in each process."""

    strict: bool = False
    """A batch ends at the first line that is no pair."""
    prompts: bool = False
    """Prompts are wanted where similarity has to decide."""
    extractors: tuple[Extractor, ...] = ()


class Looker:
    """Makes comparisons of batches. A function of the plan and the batch."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan

    def __call__(self, batch: Batch) -> list[Looked | Skip]:
        done: list[Looked | Skip] = []
        for one in _looked(batch, self._plan):
            done.append(one)
            if self._plan.strict and isinstance(one, Skip):
                break
        return done


def _looked(batch: Batch, plan: Plan) -> Iterator[Looked | Skip]:
    for line, row in batch:
        try:
            yield _one(line, row, plan)
        except Unusable as why:
            yield Skip(line=line, reason=why.reason, detail=why.detail)


def _one(line: int, row: Any, plan: Plan) -> Looked:
    """Raises Unusable."""
    if isinstance(row, Unusable):
        raise row
    value = parse_object(row) if isinstance(row, bytes) else row
    if not isinstance(value, dict):
        raise Unusable("malformed", "not a JSON object")
    name = _name(value, line)
    texts = _texts(value, str(name))
    try:
        found = look(texts, plan.extractors)
    except (TypeError, ValueError) as error:
        raise Unusable("no-answer", str(error)) from None
    wanted = plan.prompts and any(one.undecided for one in found if one)
    prompt = last_message(texts.request) if wanted and texts.request is not None else ""
    return Looked(line=line, name=name, look=found, prompt=prompt)


def _name(value: JSON, line: int) -> str | int:
    name = value.get("id")
    if name is None:
        return line
    if isinstance(name, bool) or not isinstance(name, str | int) or len(str(name)) > _LONGEST_ID:
        raise Unusable("id", f"the id is neither a number nor a text of at most {_LONGEST_ID} characters")
    return name


def _texts(value: JSON, name: str) -> Texts:
    for arm in _ARMS:
        if value.get(arm) is None:
            others = sorted(value.keys() - _KEYS)
            beside = f"; it has {', '.join(others[:5])[:80]}" if others else ""
            raise Unusable(f"{arm}-missing", f"no {arm}{beside}")
    request, prompt = value.get("request"), value.get("prompt")
    if request is not None and not isinstance(request, dict):
        raise Unusable("request", "the request is not a JSON object; it holds the body that was sent")
    if prompt is not None and request is None:
        request = asked(prompt)
    return Texts(
        id=name,
        baseline=value["baseline"],
        candidate=value["candidate"],
        repeat=value.get("repeat"),
        request=request,
    )


def asked(prompt: Any) -> JSON:
    """The request that a prompt stands for: a text, or messages."""
    if isinstance(prompt, list):
        return {"messages": prompt}
    if not isinstance(prompt, str):
        raise Unusable("prompt", "the prompt is neither a text nor a list of messages")
    return {"messages": [{"role": "user", "content": prompt}]}
