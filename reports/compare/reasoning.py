"""Thoughts before the answer: never part of it, unless a parser left them there."""

from __future__ import annotations

from reports.compare.model import PASS, Case, Step, both, odd_one
from reports.judgement import Finding, Severity

_ENDS = ("</think>", "</reasoning>", "<|channel|>final<|message|>")
_TAGS = ("</think>", "<think>", "</reasoning>", "<|channel|>analysis")


def compare_reasoning(case: Case) -> Step:
    """BLOCK when one side alone leaks thinking tags into its text; different thoughts are a NOTE."""
    old, new = case.baseline, case.candidate
    if side := odd_one(leaks(old.text), leaks(new.text)):
        alike = "equal" if after(old.text) == after(new.text) else "different"
        message = (
            f"thinking tags were left in the {side}'s text; its reasoning parser is probably off; without them the answers "
            f"are {alike}"
        )
        return Step(
            findings=(_finding("reasoning.unparsed", Severity.BLOCK, message, side, old.text, new.text),)
        )
    if old.reasoning.split() == new.reasoning.split():
        return PASS
    message = "the reasoning differs"
    return Step(
        findings=(
            _finding("reasoning.differs", Severity.NOTE, message, "pair", old.reasoning, new.reasoning),
        )
    )


def after(text: str) -> str:
    """What follows the thoughts, in one spacing; the text itself when it leaks none."""
    for tag in _ENDS:
        if tag in text:
            text = text.rpartition(tag)[2]
    return " ".join(text.split())


def leaks(text: str) -> bool:
    """Whether the text holds a thinking tag."""
    return any(tag in text for tag in _TAGS)


def _finding(category: str, severity: Severity, message: str, side: str, old: str, new: str) -> Finding:
    return Finding(
        comparator="reasoning",
        category=category,
        severity=severity,
        message=message,
        side=side,
        evidence=both(old, new),
    )
