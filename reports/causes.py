"""Findings of many pairs as a few causes: one line each, never one line a request."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from reports.compare.model import Comparison, rank
from reports.judgement import Finding, Severity


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """What findings of one category, comparator and side have in common."""

    category: str
    comparator: str
    side: str
    severity: Severity
    """The gravest among them."""
    count: int
    """Requests, not findings."""
    first_at: float
    """Epoch seconds of the earliest of these requests."""
    last_at: float
    example: str
    """Id of the earliest request with a finding of that severity."""
    message: str
    """What was found there."""
    evidence: str = ""
    example_at: float = 0.0
    """Epoch seconds of the example."""


class _Tally:
    """A cause while its findings arrive, in any order."""

    __slots__ = ("at", "count", "finding", "first", "last", "request_id")

    def __init__(self, at: float, request_id: str, finding: Finding) -> None:
        self.count, self.first, self.last = 0, at, at
        self.at, self.request_id, self.finding = at, request_id, finding

    def add(self, at: float, request_id: str, finding: Finding) -> None:
        self.count += 1
        self.first, self.last = min(self.first, at), max(self.last, at)
        # The id breaks ties, so that the order of arrival never shows in a report.
        if (-rank(finding.severity), at, request_id) < (
            -rank(self.finding.severity),
            self.at,
            self.request_id,
        ):
            self.at, self.request_id, self.finding = at, request_id, finding


class Causes:
    """Findings grouped by category, comparator and side while comparisons arrive, in any order.

    EQUAL findings are no cause of anything. Memory grows with the number of causes, not of pairs.
    """

    def __init__(self) -> None:
        self._tallies: dict[tuple[str, str, str], _Tally] = {}

    def add(self, at: float, comparison: Comparison) -> None:
        """``at``: epoch seconds of the request, or whatever else puts comparisons in order."""
        for key, finding in _once(comparison).items():
            if key not in self._tallies:
                self._tallies[key] = _Tally(at, comparison.request_id, finding)
            self._tallies[key].add(at, comparison.request_id, finding)

    def all(self) -> tuple[Cause, ...]:
        """Gravest first, then the most frequent."""
        return _ordered(_cause(tally) for tally in self._tallies.values())


def causes(compared: Iterable[tuple[float, Comparison]]) -> tuple[Cause, ...]:
    """The causes of all: (epoch seconds of the request, its comparison) each."""
    found = Causes()
    for at, comparison in compared:
        found.add(at, comparison)
    return found.all()


def together(some: Iterable[Cause]) -> tuple[Cause, ...]:
    """The causes of several parts of a run as those of the whole."""
    groups: dict[tuple[str, str, str], list[Cause]] = {}
    for cause in some:
        groups.setdefault((cause.category, cause.comparator, cause.side), []).append(cause)
    return _ordered(map(_together, groups.values()))


def _together(parts: list[Cause]) -> Cause:
    gravest = min(parts, key=lambda cause: (-rank(cause.severity), cause.example_at, cause.example))
    return replace(
        gravest,
        count=sum(cause.count for cause in parts),
        first_at=min(cause.first_at for cause in parts),
        last_at=max(cause.last_at for cause in parts),
    )


def _ordered(found: Iterable[Cause]) -> tuple[Cause, ...]:
    return tuple(
        sorted(found, key=lambda cause: (-rank(cause.severity), -cause.count, cause.category, cause.side))
    )


def _once(comparison: Comparison) -> dict[tuple[str, str, str], Finding]:
    """The gravest finding of each cause in one comparison: two choices of one answer are one request."""
    found: dict[tuple[str, str, str], Finding] = {}
    for finding in comparison.findings:
        key = (finding.category, finding.comparator, finding.side)
        if finding.severity is not Severity.EQUAL and (
            key not in found or rank(finding.severity) > rank(found[key].severity)
        ):
            found[key] = finding
    return found


def _cause(tally: _Tally) -> Cause:
    finding = tally.finding
    return Cause(
        category=finding.category,
        comparator=finding.comparator,
        side=finding.side,
        severity=finding.severity,
        count=tally.count,
        first_at=tally.first,
        last_at=tally.last,
        example=tally.request_id,
        message=finding.message,
        evidence=finding.evidence,
        example_at=tally.at,
    )
