"""What both sides sent as data, tool calls and JSON, compared as one tree that a person can read from top to bottom. Pure."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice, zip_longest
from typing import Any

from replay.exchange import Observation
from reports.compare.jsonvalue import canonical, parse

MOST_ROWS = 60
_MOST_TEXT = 100_000
"""Characters of JSON beyond which there is no tree."""
_SHORT = 160
_FENCE = re.compile(r"\A```[\w-]*[ \t]*\n(.*)\n```\Z", re.DOTALL)
_ABSENT = object()


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One place of the tree, in reading order."""

    depth: int
    """0 is a tool call, or the answer itself."""
    name: str
    mark: str
    """``same``, ``changed``, ``removed`` (only the baseline has it), ``added`` (only the candidate has it), or ``inside``: it
    differs in the rows below."""
    baseline: str | None
    """The value as JSON, cut; ``None`` where it is absent or stands in the rows below. So is ``candidate``."""
    candidate: str | None


def tree(baseline: Observation | None, candidate: Observation | None) -> tuple[Row, ...]:
    """At most ``MOST_ROWS`` rows; empty unless a side called a tool, or both answered with an object or array."""
    old, new = _data(baseline), _data(candidate)
    if "answer" not in old or "answer" not in new:
        old.pop("answer", None)
        new.pop("answer", None)
    return tuple(islice(_children(0, old, new), MOST_ROWS))


def _data(seen: Observation | None) -> dict[str, Any]:
    """What an answer holds that is data, by name: a second call of one tool is ``name() 2``."""
    if seen is None or seen.answer is None:
        return {}
    first, count = seen.answer.first, Counter[str]()
    found: dict[str, Any] = {}
    for call in first.tool_calls:
        count[call.name] += 1
        number = "" if count[call.name] == 1 else f" {count[call.name]}"
        found[f"{call.name}(){number}"] = _value(call.arguments or "{}", call.arguments)
    match = _FENCE.match(first.text.strip())
    value = _value(match[1] if match else first.text, None)
    return found | ({"answer": value} if isinstance(value, dict | list) else {})


def _value(text: str, otherwise: Any) -> Any:
    if len(text) > _MOST_TEXT:
        return otherwise
    parsed = parse(text)
    return otherwise if parsed.problem else parsed.value


def _children(depth: int, old: Any, new: Any) -> Iterator[Row]:
    if isinstance(old, dict):
        names = (*old, *(name for name in new if name not in old))
        pairs = [(name, old.get(name, _ABSENT), new.get(name, _ABSENT)) for name in names]
    else:
        both = enumerate(zip_longest(old, new, fillvalue=_ABSENT))
        pairs = [(f"[{place}]", was, now) for place, (was, now) in both]
    for name, was, now in pairs:
        yield from _rows(depth, name, was, now)


def _rows(depth: int, name: str, old: Any, new: Any) -> Iterator[Row]:
    """One row for what is equal or has nothing within; else one, and the rows of its parts."""
    if old is not _ABSENT and new is not _ABSENT and canonical(old) == canonical(new):
        yield _row(depth, name, "same", old, new)
    elif type(old) is type(new) and isinstance(old, dict | list):
        yield _row(depth, name, "inside", _ABSENT, _ABSENT)
        yield from _children(depth + 1, old, new)
    else:
        mark = "added" if old is _ABSENT else "removed" if new is _ABSENT else "changed"
        yield _row(depth, name, mark, old, new)


def _row(depth: int, name: str, mark: str, old: Any, new: Any) -> Row:
    return Row(depth=depth, name=name[:_SHORT], mark=mark, baseline=_shown(old), candidate=_shown(new))


def _shown(value: Any) -> str | None:
    if value is _ABSENT:
        return None
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHORT else text[: _SHORT - 1] + "\u2026"
