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
from reports.compare.texts import Look, Texts, look

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


class Looker:
    """Makes comparisons of batches. A function of the plan (whether to stop at the first line that is no pair) and the batch."""

    def __init__(self, strict: bool) -> None:
        self._strict = strict

    def __call__(self, batch: Batch) -> list[Looked | Skip]:
        done: list[Looked | Skip] = []
        for one in _looked(batch):
            done.append(one)
            if self._strict and isinstance(one, Skip):
                break
        return done


def _looked(batch: Batch) -> Iterator[Looked | Skip]:
    for line, row in batch:
        try:
            yield _one(line, row)
        except Unusable as why:
            yield Skip(line=line, reason=why.reason, detail=why.detail)


def _one(line: int, row: Any) -> Looked:
    """Raises Unusable."""
    if isinstance(row, Unusable):
        raise row
    value = parse_object(row) if isinstance(row, bytes) else row
    if not isinstance(value, dict):
        raise Unusable("malformed", "not a JSON object")
    name = _name(value, line)
    try:
        return Looked(line=line, name=name, look=look(_texts(value, str(name))))
    except (TypeError, ValueError) as error:
        raise Unusable("no-answer", str(error)) from None


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
