"""Which pairs of a run somebody asks for. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase

import numpy as np

from replay.exchange import Outcome
from reports.causes import Cause
from reports.columns import CODE
from reports.compare.model import rank
from reports.gathered import Gathered
from reports.judgement import Finding, Severity
from reports.many import outcome
from reports.shown import Item
from reports.stats import Flags


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """All that is said has to hold; ``None`` asks for nothing."""

    finding: str | None = None
    """A category, or a pattern of categories such as ``tools.*``."""
    severity: Severity | None = None
    """Of the pair, which is that of its gravest finding; INVALID where it was not scored."""
    outcome: Outcome | None = None
    """Of the candidate."""
    slower_s: float | None = None
    """The candidate's end to end is longer than the baseline's by more than this; both answered."""


def ids(seen: Gathered, wanted: Wanted) -> Iterator[str]:
    """All pairs that may be wanted, as far as columns tell: the slowest first where that is asked for, else the gravest first
    and of these the least alike."""
    base, candidate = seen.columns.baseline, seen.columns.candidate
    excess = np.where(base.failed | candidate.failed, np.nan, candidate.e2e - base.e2e)
    rows = np.flatnonzero(_may_be(seen, wanted, excess))
    if wanted.slower_s is not None:
        order = np.lexsort((rows, -excess[rows]))
    else:
        alike = np.where(np.isnan(seen.similarity[rows]), 1.0, seen.similarity[rows])
        order = np.lexsort((rows, alike, -seen.severity[rows]))
    return (seen.ids[row] for row in rows[order].tolist())


def _may_be(seen: Gathered, wanted: Wanted, excess: np.ndarray) -> Flags:
    fits = np.ones(len(seen), dtype=np.bool_)
    if wanted.finding is not None:
        of = causes(seen, wanted.finding)
        first, last = (
            min((one.first_at for one in of), default=1.0),
            max((one.last_at for one in of), default=0.0),
        )
        fits &= (
            (seen.severity > rank(Severity.EQUAL)) & (seen.columns.at >= first) & (seen.columns.at <= last)
        )
    if wanted.severity is not None:
        unscored = (seen.columns.differs < 0) & (wanted.severity is Severity.INVALID)
        fits &= unscored | (seen.severity == rank(wanted.severity))
    if wanted.outcome is not None:
        fits &= seen.columns.candidate.outcome == CODE[wanted.outcome]
    if wanted.slower_s is not None:
        fits &= excess > wanted.slower_s
    return fits


def fits(item: Item, wanted: Wanted) -> bool:
    """Whether a pair that may be wanted is, now that its findings are at hand."""
    if wanted.severity is not None and severity(item) is not wanted.severity:
        return False
    return wanted.finding is None or bool(shares(item, wanted.finding))


def causes(seen: Gathered, pattern: str) -> list[Cause]:
    """Those of the run whose category is of that pattern."""
    return [one for one in seen.causes if fnmatchcase(one.category, pattern)]


def shares(item: Item, pattern: str) -> int:
    """In how many causes of that pattern a pair has its share: all pairs together have as many as the causes count."""
    return len({(one.category, one.comparator, one.side) for one in findings(item) if matches(one, pattern)})


def matches(finding: Finding, pattern: str) -> bool:
    """Whether its category is of that pattern; one that says EQUAL is none."""
    return finding.severity is not Severity.EQUAL and fnmatchcase(finding.category, pattern)


def findings(item: Item) -> list[Finding]:
    """Of a pair, the gravest first."""
    found = item.comparison.findings if item.comparison else ()
    return sorted(found, key=lambda finding: -rank(finding.severity))


def severity(item: Item) -> Severity:
    """Of a pair; INVALID where it was not scored."""
    return outcome(item.comparison) if item.comparison else Severity.INVALID
