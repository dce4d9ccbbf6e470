"""Declining to answer, told by the wire's own field or by a few English phrases."""

from __future__ import annotations

import re

from replay.exchange import Choice
from reports.compare.model import PASS, Case, Step, both, odd_one, other
from reports.judgement import Finding, Severity

_HEAD = 400
_LONGEST = 800
"""A text beyond this many characters answers something, however it begins."""
_DECLINES = re.compile(
    r"""
    \A\W*
    (?:(?:(?:i'm|i\ am)\ (?:so\ |very\ |really\ |truly\ )?sorry|sorry|(?:my\ )?apologies|i\ apologi[sz]e
        |unfortunately)[\s,.;:!—-]*)?
    (?:but\ |however,?\ |as\ an\ ai[\w\ -]{0,40},?\ )*
    (?:
        i(?:\ can'?t|\ cannot|\ can\ not|\ won'?t|\ will\ not|\ could\ not|\ couldn't
           |(?:\ am|'m)\ (?:unable|not\ able)\ to|(?:\ am|'m)\ not\ (?:allowed|permitted)\ to)
        \ (?:\w+\ ){0,2}?
        (?:help|assist|comply|fulfil|fulfill|do\ that|do\ this|engage|support|answer\ that|answer\ this
           |provide\ (?:that|this|such|any)|discuss\ (?:that|this|such)|create\ (?:that|this|such)
           |generate\ (?:that|this|such)|write\ (?:that|this|such)|continue\ with|participate)
      | i\ (?:must|have\ to)\ (?:respectfully\ )?(?:decline|refuse)
      | (?:this|that|your)\ request\ (?:violates|goes\ against)
    )\b
    """,
    re.IGNORECASE | re.VERBOSE,
)


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
    return len(choice.text) <= _LONGEST and bool(_DECLINES.match(choice.text[:_HEAD].replace("\u2019", "'")))


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
