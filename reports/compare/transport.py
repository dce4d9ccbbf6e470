"""Did each side answer at all: outcomes, error classes, and what was odd on the wire."""

from __future__ import annotations

from replay.exchange import Observation
from reports.compare.model import PASS, Step, both, excerpt
from reports.judgement import Finding, Severity

_NAME = "transport"
_ODD = {"tools.arguments_type": Severity.BLOCK, "envelope.choices_missing": Severity.WARN}
"""Oddities that a typed client trips over; any other is a NOTE."""


def compare_outcomes(baseline: Observation | None, candidate: Observation | None) -> Step:
    """Settles every pair in which one side has no answer that could be compared."""
    for side, seen in (("baseline", baseline), ("candidate", candidate)):
        if seen is None or seen.outcome.missing:
            return _unobserved(side, seen)
    if baseline is None or candidate is None:  # both were seen above; the type checker cannot know
        return PASS
    if baseline.outcome.failed and candidate.outcome.failed:
        return _both_failed(baseline, candidate)
    if baseline.outcome.failed:
        return Step(findings=(_failed("baseline", baseline, Severity.NOTE),), settled=True, scored=False)
    if candidate.outcome.failed:
        return Step(findings=(_failed("candidate", candidate, Severity.BLOCK),))
    return _oddities(baseline, candidate)


def error_class(seen: Observation) -> str:
    """What kind of failure it was, in one word."""
    return seen.failure.error_class.value if seen.failure else seen.reason or seen.outcome.value


def _unobserved(side: str, seen: Observation | None) -> Step:
    what = seen.outcome.value if seen else "not_sent"
    reason = f" ({excerpt(seen.reason)})" if seen and seen.reason else ""
    finding = Finding(
        comparator=_NAME,
        category=f"transport.{what}",
        severity=Severity.NOTE,
        message=f"the {side} has no answer to compare: {what}{reason}",
        side=side,
    )
    return Step(findings=(finding,), settled=True, scored=False)


def _both_failed(baseline: Observation, candidate: Observation) -> Step:
    old, new = error_class(baseline), error_class(candidate)
    same = old == new
    finding = Finding(
        comparator=_NAME,
        category=f"error.{new}" if same else "error.class",
        severity=Severity.EQUAL if same else Severity.WARN,
        message=f"both failed with {new}"
        if same
        else f"the baseline failed with {old}, the candidate with {new}",
        evidence=both(_words(baseline), _words(candidate)),
    )
    return Step(findings=(finding,), settled=True)


def _failed(side: str, seen: Observation, severity: Severity) -> Finding:
    rest = "candidate" if side == "baseline" else "baseline"
    return Finding(
        comparator=_NAME,
        category=f"error.{error_class(seen)}",
        severity=severity,
        message=f"the {side} failed with {error_class(seen)} where the {rest} answered",
        side=side,
        evidence=excerpt(_words(seen)),
    )


def _words(seen: Observation) -> str:
    return seen.failure.message if seen.failure else seen.reason


def _oddities(baseline: Observation, candidate: Observation) -> Step:
    known = baseline.answer.oddities if baseline.answer else ()
    odd = candidate.answer.oddities if candidate.answer else ()
    findings = tuple(
        Finding(
            comparator=_NAME,
            category=code,
            severity=_ODD.get(code, Severity.NOTE),
            message=f"odd on the candidate's wire and not on the baseline's: {code}",
            side="candidate",
        )
        for code in odd
        if code not in known
    )
    return Step(findings=findings)
