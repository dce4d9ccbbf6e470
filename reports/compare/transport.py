"""Did each side answer at all: outcomes and error classes. How the answers came is for ``wire``."""

from __future__ import annotations

import re
from collections.abc import Iterator

from replay.exchange import ErrorClass, Observation
from replay.failures import rejected_parameter
from reports.catalogue import entry
from reports.compare.model import PASS, Step, both, excerpt
from reports.judgement import Finding, Severity

_NAME = "transport"
_CAPACITY = (ErrorClass.RATE_LIMITED.value, ErrorClass.OVERLOADED.value)
_REFUSED = (ErrorClass.BAD_REQUEST.value, ErrorClass.CONTEXT_OVERFLOW.value)


def compare_outcomes(baseline: Observation | None, candidate: Observation | None) -> Step:
    """Settles every pair in which one side has no answer that could be compared."""
    for side, seen in (("baseline", baseline), ("candidate", candidate)):
        if seen is None or seen.outcome.missing:
            return _unobserved(side, seen)
    if baseline is None or candidate is None:  # both were seen above; the type checker cannot know
        return PASS
    if baseline.outcome.failed and candidate.outcome.failed:
        return Step(findings=tuple(_both_failed(baseline, candidate)), settled=True)
    if baseline.outcome.failed:
        return Step(findings=tuple(_only_the_baseline(baseline, candidate)), settled=True, scored=False)
    if candidate.outcome.failed:
        return Step(findings=(_failed("candidate", candidate, Severity.BLOCK),), settled=True)
    return PASS


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


def _both_failed(baseline: Observation, candidate: Observation) -> Iterator[Finding]:
    """Failures of one class are alike, whatever they say; what a client may key on is said beside it."""
    old, new = error_class(baseline), error_class(candidate)
    same = old == new or (old in _CAPACITY and new in _CAPACITY)
    words = both(_words(baseline), _words(candidate))
    yield Finding(
        comparator=_NAME,
        category=f"error.{new}" if same else "error.class",
        severity=Severity.EQUAL if same else Severity.WARN,
        message=f"both failed with {new}"
        if same
        else f"the baseline failed with {old}, the candidate with {new}",
        evidence=words,
    )
    if not same:
        return
    if baseline.status != candidate.status:
        yield _about("contract.status_changed", f"{baseline.status} became {candidate.status}")
    if new == ErrorClass.CONTEXT_OVERFLOW.value and _form(baseline) != _form(candidate):
        yield _about("contract.overflow_wording", words)
    shapes = [seen.failure.envelope if seen.failure else "" for seen in (baseline, candidate)]
    if all(shapes) and shapes[0] != shapes[1]:
        yield _about("envelope.error_shape", f"{shapes[0]} became {shapes[1]}")


def _form(seen: Observation) -> str:
    """A message without its numbers."""
    return re.sub(r"[\d.,]+", "#", _words(seen)).strip().lower()


def _about(code: str, evidence: str) -> Finding:
    found = entry(code)
    return Finding(
        comparator=code.partition(".")[0],
        category=code,
        severity=found.severity,
        message=f"the candidate's answer {found.words}",
        side="candidate",
        evidence=excerpt(evidence, 320),
    )


def _only_the_baseline(baseline: Observation, candidate: Observation) -> Iterator[Finding]:
    yield _failed("baseline", baseline, Severity.NOTE)
    cut = candidate.answer is not None and candidate.answer.first.finish_reason == "length"
    if cut and error_class(baseline) in _REFUSED:
        yield _about("contract.length_clamped", _words(baseline))


def _failed(side: str, seen: Observation, severity: Severity) -> Finding:
    """The finding that names the failure most exactly, at the severity of its code."""
    rest = "candidate" if side == "baseline" else "baseline"
    what, code = error_class(seen), seen.failure.code if seen.failure else ""
    more = ""
    if code == "contract.param_rejected" and seen.failure is not None:
        more = f": {excerpt(rejected_parameter(seen.failure.error_class, seen.failure.message) or '', 60)}"
    if code and side == "candidate":
        severity = max(severity, entry(code).severity, key=list(Severity).index)
    words = f"the {side} failed with {what} where the {rest} answered"
    return Finding(
        comparator=code.partition(".")[0] if code else _NAME,
        category=code or f"error.{what}",
        severity=severity,
        message=f"{words}: its answer {entry(code).words}{more}" if code else words,
        side=side,
        evidence=excerpt(_words(seen)),
    )


def _words(seen: Observation) -> str:
    return seen.failure.message if seen.failure else seen.reason
