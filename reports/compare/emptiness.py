"""An answer that says nothing."""

from __future__ import annotations

from replay.exchange import Choice
from reports.compare.model import PASS, SETTLED, Case, Step, excerpt, odd_one, other
from reports.judgement import Finding, Severity


def compare_emptiness(case: Case) -> Step:
    """BLOCK when one side alone is empty; two empty answers are alike."""
    old, new = empty(case.baseline), empty(case.candidate)
    if old and new:
        return SETTLED
    side = odd_one(old, new)
    if side is None:
        return PASS
    choice = case.baseline if side == "baseline" else case.candidate
    spent = f"; it spent {len(choice.reasoning)} characters on reasoning" if choice.reasoning else ""
    finding = Finding(
        comparator="emptiness",
        category="text.empty",
        severity=Severity.BLOCK,
        message=f"the {side}'s answer is empty and the {other(side)}'s is not{spent}",
        side=side,
        evidence=excerpt(case.candidate.text if side == "baseline" else case.baseline.text),
    )
    return Step(findings=(finding,))


def empty(choice: Choice) -> bool:
    """No text but white space, no tool call, no refusal, no picture or sound."""
    return not (choice.tool_calls or choice.media or choice.text.strip() or choice.refusal.strip())
