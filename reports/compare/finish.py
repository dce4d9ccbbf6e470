"""Why each answer ended, with the spellings of different backends mapped to one."""

from __future__ import annotations

from reports.compare.model import PASS, Case, Step, excerpt, odd_one
from reports.compare.tools import same_calls
from reports.judgement import Finding, Severity

ALIASES = {
    "eos": "stop",
    "eos_token": "stop",
    "end_turn": "stop",
    "stop_sequence": "stop",
    "model_length": "length",
    "max_tokens": "length",
    "function_call": "tool_calls",
    "tool_use": "tool_calls",
    "network_error": "error",
    "abort": "error",
}
"""Other words for the reasons that the OpenAI interface knows."""
_PLAIN = frozenset({"stop", "tool_calls"})
_BAD = {
    "length": ("finish.truncated", "was cut off at its token limit"),
    "content_filter": ("finish.content_filter", "was stopped by a content filter"),
    "error": ("finish.error", "ended in an error"),
    "repetition": ("finish.repetition", "was stopped for repeating itself"),
}
"""Reasons that mean a spoilt answer: the category, and what happened to the answer."""


def compare_finish(case: Case) -> Step:
    """BLOCK for a spoilt answer on one side alone, WARN for a reason that is unknown, missing or changed."""
    old, new = _reason(case.baseline.finish_reason), _reason(case.candidate.finish_reason)
    if old == new:
        return PASS
    finding = _spoilt(old, new) or _missing(old, new) or _unknown(old, new) or _changed(case, old, new)
    return Step(findings=(finding,)) if finding else PASS


def _reason(raw: str | None) -> str | None:
    word = raw.strip().lower() if raw else None
    return ALIASES.get(word, word) if word else None


def _spoilt(old: str | None, new: str | None) -> Finding | None:
    for reason, (category, what) in _BAD.items():
        if (side := odd_one(old == reason, new == reason)) and None not in (old, new):
            return _finding(category, Severity.BLOCK, f"the {side}'s answer {what}", side, old, new)
    return None


def _missing(old: str | None, new: str | None) -> Finding | None:
    side = odd_one(old is None, new is None)
    message = f"the {side}'s answer has no finish reason"
    return _finding("finish.missing", Severity.WARN, message, side, old, new) if side else None


def _unknown(old: str | None, new: str | None) -> Finding | None:
    for side, reason in (("candidate", new), ("baseline", old)):
        if reason not in _PLAIN and reason not in _BAD:
            message = f"the {side} ended with an unknown finish reason: {excerpt(str(reason), 40)}"
            return _finding("finish.unknown", Severity.WARN, message, side, old, new)
    return None


def _changed(case: Case, old: str | None, new: str | None) -> Finding | None:
    """``stop`` and ``tool_calls`` mean the same under a forced tool choice; different calls are for ``tools`` to say."""
    if case.asked.forced or not case.baseline.tool_calls or not same_calls(case):
        return None
    message = "equal tool calls end with different finish reasons"
    return _finding("finish.differs", Severity.WARN, message, "pair", old, new)


def _finding(
    category: str, severity: Severity, message: str, side: str, old: str | None, new: str | None
) -> Finding:
    return Finding(
        comparator="finish",
        category=category,
        severity=severity,
        message=message,
        side=side,
        evidence=f"baseline: {excerpt(str(old), 40)} | candidate: {excerpt(str(new), 40)}",
    )
