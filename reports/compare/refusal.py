"""Declining to answer, told by the wire's own field or by a few phrases in several languages."""

from __future__ import annotations

from replay.exchange import Choice
from reports.compare.declining import declines
from reports.compare.model import PASS, Case, Step, both, odd_one, other
from reports.judgement import Finding, Severity


def compare_refusal(case: Case) -> Step:
    """BLOCK when one side alone declines; two refusals serve a user alike, whatever their words."""
    old, new = refuses(case.baseline), refuses(case.candidate)
    if old and new:
        note = _finding("refusal.both", Severity.NOTE, "both sides decline to answer", "pair", case)
        return Step(findings=(note,), settled=True)
    side = odd_one(old, new)
    if side is None:
        return PASS
    message = f"the {side} declines to answer where the {other(side)} answers"
    return Step(findings=(_finding("refusal.one_sided", Severity.BLOCK, message, side, case),))


def refuses(choice: Choice) -> bool:
    """Whether the answer declines: a refusal in its own field, or a short text that begins like one."""
    if choice.tool_calls:
        return False
    if choice.refusal.strip():
        return True
    return declines(choice.text)


def _finding(category: str, severity: Severity, message: str, side: str, case: Case) -> Finding:
    old, new = case.baseline, case.candidate
    return Finding(
        comparator="refusal",
        category=category,
        severity=severity,
        message=message,
        side=side,
        evidence=both(old.refusal or old.text, new.refusal or new.text),
    )
