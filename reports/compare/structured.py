"""Answers that a program reads: JSON where the request asked for it, or where both sides sent it."""

from __future__ import annotations

import re
from typing import Any

from reports.compare.asked import Asked
from reports.compare.jsonvalue import differences, parse, violations
from reports.compare.model import PASS, Case, Step, both, excerpt, odd_one, other
from reports.compare.normal import same_text
from reports.judgement import Finding, Severity

_NAME = "structured"
_FENCE = re.compile(r"\A```[\w-]*[ \t]*\n(.*)\n```\Z", re.DOTALL)


def compare_structured(case: Case) -> Step:
    """BLOCK for JSON that is missing, breaks the asked schema, or holds other values; spelling does not count."""
    old, new = case.baseline.text.strip(), case.candidate.text.strip()
    if case.asked.structured:
        return _asked(case.asked, old, new)
    was, now = _container(old), _container(new)
    return PASS if was is None or now is None else _compared(case.asked, was, now, old, new)


def _container(text: str) -> Any:
    """The object or array that an unasked text is, also within a code fence; ``None`` for anything else."""
    inner = match[1] if (match := _FENCE.match(text)) else text
    value = parse(inner).value if inner.lstrip()[:1] in ("{", "[") else None
    return value if isinstance(value, dict | list) else None


def _asked(asked: Asked, old: str, new: str) -> Step:
    was, now = parse(old), parse(new)
    side = odd_one(was.problem is not None, now.problem is not None)
    if side is None:
        # With JSON on neither side there are no values to compare; what was said is for the text comparator.
        return PASS if now.problem else _compared(asked, was.value, now.value, old, new)
    problem = was.problem or now.problem
    message = f"the {side}'s answer is not the JSON that was asked for ({problem}); the {other(side)}'s is"
    return Step(findings=(_finding("structured.invalid", message, old, new, side=side),))


def _compared(asked: Asked, was: Any, now: Any, old: str, new: str) -> Step:
    findings = (*_breach(asked, was, now, old, new), *_values(asked, was, now, old, new))
    return Step(findings=findings, settled=True)


def _breach(asked: Asked, was: Any, now: Any, old: str, new: str) -> tuple[Finding, ...]:
    if asked.schema is None:
        return ()
    bad_old, bad_new = violations(was, asked.schema), violations(now, asked.schema)
    if not bad_old and not bad_new:
        return ()
    side = odd_one(bool(bad_old), bool(bad_new))
    whose = f"the {side}'s JSON breaks" if side else "both sides' JSON break"
    message = f"{whose} the asked schema: {excerpt('; '.join(bad_new or bad_old))}"
    severity = Severity.BLOCK if side else Severity.WARN
    return (
        _finding("structured.schema_violation", message, old, new, side=side or "pair", severity=severity),
    )


def _values(asked: Asked, was: Any, now: Any, old: str, new: str) -> tuple[Finding, ...]:
    places = differences(was, now, asked.schema, same_text=same_text)
    if not places:
        return ()
    where = "; ".join(str(place) for place in places)
    return (_finding("structured.values", f"values differ at {excerpt(where, 300)}", old, new),)


def _finding(
    category: str, message: str, old: str, new: str, side: str = "pair", severity: Severity = Severity.BLOCK
) -> Finding:
    return Finding(
        comparator=_NAME,
        category=category,
        severity=severity,
        message=message,
        side=side,
        evidence=both(old, new),
    )
