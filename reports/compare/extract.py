"""Answers of which one thing decides: what the configuration takes out of them, compared by its type."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fnmatch import fnmatchcase
from fractions import Fraction
from functools import lru_cache
from typing import Any

from replay.exchange import Request
from reports.compare import presets
from reports.compare.asked import Asked
from reports.compare.jsonvalue import canonical, differences, parse
from reports.compare.model import PASS, SETTLED, Case, Step, both, excerpt, odd_one, other
from reports.compare.normal import normalise, same_text
from reports.compare.text import said
from reports.judgement import Finding, Severity
from reports.policy import Extractor, keys, linear

_compiled = lru_cache(maxsize=256)(linear)
_SEPARATORS = re.compile(r"[,;|\n]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """What was taken out of one answer. ``value`` is comparable by its type: Fraction, text, set of labels, or JSON."""

    value: Any


def chosen(extractors: Sequence[Extractor], request: Request, asked: Asked) -> Extractor | None:
    """The first that matches the request; ``None``: the whole answer counts."""
    route = request.path.partition("?")[0]
    return next(
        (one for one in extractors if _fits(one.route, route) and _fits(one.model, asked.model)), None
    )


def _fits(pattern: str | None, text: str) -> bool:
    return pattern is None or fnmatchcase(text, pattern)


def compare_task(case: Case) -> Step:
    """BLOCK when what decides differs or one side lacks it; where it is equal, the text around it is not compared."""
    if case.task is None:
        return PASS
    texts = said(case.baseline), said(case.candidate)
    old, new = (take(case.task, text) for text in texts)
    if old is None or new is None:
        return _missing(case.task, odd_one(old is None, new is None), *texts)
    if where := _difference(case.task, old.value, new.value):
        message = f"the {_named(case.task)} differs: {where}"
        return Step(findings=(_finding("task.differs", Severity.BLOCK, message, *texts),))
    if same_text(texts[0].casefold(), texts[1].casefold()):
        return SETTLED
    message = (
        f"the {_named(case.task)} is equal ({excerpt(_shown(old.value), 60)}); the text around it differs"
    )
    return Step(findings=(_finding("task.text", Severity.NOTE, message, *texts),), settled=True)


def _missing(task: Extractor, side: str | None, old: str, new: str) -> Step:
    """Where neither side has it, nothing is lost to a client of today, and the whole answers are compared."""
    if side is None:
        message = f"neither answer has a {_named(task)}; the whole answers are compared"
        return Step(findings=(_finding("task.missing", Severity.WARN, message, old, new),))
    message = f"the {side}'s answer has no {_named(task)}; the {other(side)}'s has"
    return Step(findings=(_finding("task.missing", Severity.BLOCK, message, old, new, side),))


def _named(task: Extractor) -> str:
    if task.take is not None:
        return task.take.replace("_", " ")
    return excerpt(f"match of {task.regex}" if task.regex is not None else f"JSON value at {task.path}", 80)


_PRESETS: dict[str, Callable[[str], Any]] = {
    "last_number": presets.last_number,
    "choice": presets.choice,
    "label": presets.label,
    "code_fence": presets.code_fence,
}


def take(task: Extractor, text: str) -> Taken | None:
    """What ``task`` takes out of an answer; ``None`` when the answer does not have it, or as another type."""
    if task.take is not None:
        found = _PRESETS[task.take](text)
    elif task.regex is not None:
        found = _typed(task.compared, _matched(task.regex, text))
    else:
        value = _at(text, task.path or "")
        if value is None or task.compared == "json":
            return value
        found = _typed(task.compared, value.value)
    return None if found is None else Taken(value=found)


def _matched(pattern: str, text: str) -> str | None:
    found = _compiled(pattern).search(text.encode("utf-8", "replace").decode())
    return None if found is None or found[1] is None else str(found[1])


def _at(text: str, path: str) -> Taken | None:
    """A value within the JSON that the answer is, or that its first code fence holds."""
    parsed = parse(text)
    if parsed.problem:
        parsed = parse(presets.code_fence(text) or "")
    if parsed.problem:
        return None
    value = parsed.value
    for step in keys(path):
        if isinstance(value, dict) and step in value:
            value = value[step]
        elif isinstance(value, list) and step.isdecimal() and int(step) < len(value):
            value = value[int(step)]
        else:
            return None
    return Taken(value=value)


def _typed(kind: str, value: Any) -> Any:
    """A value as what it is compared as; ``None`` when it is no such thing."""
    return {"number": _number, "labels": _labels, "text": _text, "json": _json}[kind](value)


def _number(value: Any) -> Fraction | None:
    if isinstance(value, str):
        return presets.last_number(value)
    sound = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return Fraction(str(value)) if sound else None


def _json(value: Any) -> Any:
    return parse(value).value if isinstance(value, str) else None


def _text(value: Any) -> str | None:
    """Formatting and case do not count."""
    if value is None or isinstance(value, dict | list):
        return None
    return (normalise(value).text if isinstance(value, str) else str(value)).casefold() or None


def _labels(value: Any) -> frozenset[str] | None:
    """The set of labels in a JSON list, or in a text that separates them; ``None`` when a text names none."""
    several = _SEPARATORS.split(value) if isinstance(value, str) else value
    parts = several if isinstance(several, list) else [several]
    found = frozenset(name for part in parts if (text := _text(part)) and (name := presets.label(text)))
    return found if found or isinstance(value, list) else None


def _difference(task: Extractor, old: Any, new: Any) -> str:
    """How two values of one type differ; empty when they do not."""
    if task.compared == "json":
        return excerpt("; ".join(map(str, differences(old, new, same_text=same_text))), 300)
    if old == new or (task.compared == "number" and abs(old - new) <= Fraction(str(task.within))):
        return ""
    return f"baseline {excerpt(_shown(old), 100)}, candidate {excerpt(_shown(new), 100)}"


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, Fraction):
        return _decimal(value)
    return ", ".join(sorted(value)) or "none" if isinstance(value, frozenset) else canonical(value)


def _decimal(value: Fraction) -> str:
    """As a person writes it where that is exact, else as a fraction."""
    near = Decimal(value.numerator) / Decimal(value.denominator)
    return f"{near:f}" if Fraction(near) == value else str(value)


def _finding(
    category: str, severity: Severity, message: str, old: str, new: str, side: str = "pair"
) -> Finding:
    return Finding(
        comparator="task",
        category=category,
        severity=severity,
        message=message,
        side=side,
        evidence=both(old, new),
    )
