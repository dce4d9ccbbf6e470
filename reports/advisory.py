"""What a report says beside the rules, as values: labels, quality without a reference, slices. None of it moves a verdict.

Evidence is in natural logarithms; ``None`` where nothing was measured. What is named passed e-BH over all of its kind.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """How often answers differ by one label, and how often the baseline's own repeat does. Shares are 0 to 1."""

    label: str
    pairs: int
    """Pairs that were compared."""
    differs: float | None
    """Share of these that differ by the label."""
    repeats: int
    """Pairs with a comparable repeat; the rest is about these."""
    noise: float | None
    """Share of repeats that differ from their own baseline."""
    candidate: float | None
    excess: float | None
    low: float | None
    high: float | None
    evidence: float | None
    """For an excess above the margin of the disagreement."""
    named: bool
    too_noisy: bool
    """Nothing is gated on this label."""
    fallback: str | None
    """The coarser label that is gated on instead."""
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """One thing that can be counted in an answer by itself, in both arms of the same pairs."""

    name: str
    unit: str
    """``share``: the estimate is candidate - baseline; ``ratio``: the median of candidate / baseline, pair by pair."""
    pairs: int
    baseline: float | None
    """The share, or the median."""
    candidate: float | None
    estimate: float | None
    low: float | None
    high: float | None
    noise: float | None
    """The same estimate between the baseline and its repeat."""
    tolerated: float
    """Drift that is not worth a word: a difference of shares, or a ratio either way."""
    evidence: float | None
    """For a drift beyond that in either direction."""
    named: bool
    reason: str


class Looked(StrEnum):
    """What became of one rule in one slice."""

    TESTED = "tested"
    TOO_THIN = "too_thin"
    TOO_NOISY = "too_noisy"
    WHOLE_RUN = "whole_run"
    """All pairs are in it: the rule itself says it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """One rule among the requests that share a label."""

    dimension: str
    value: str
    rule: str
    looked: Looked
    pairs: int
    """Pairs of the slice that count as evidence."""
    share: float
    """Of the pairs that count as evidence."""
    read: int
    """Pairs of the slice that the rule could read."""
    estimate: float | None
    low: float | None
    high: float | None
    elsewhere: float | None
    """The same estimate over all other pairs."""
    margin: float
    evidence: float | None
    """For harm above the margin."""
    named: bool
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Slices:
    """All slices; what broke comes first, the most out of line with the rest of the run leading."""

    rows: tuple[Slice, ...] = ()
    dimensions: tuple[str, ...] = ()
    tested: int = 0
    """Rows that were tested: the number that e-BH pays for."""
    too_thin: int = 0
    """Rows with too few pairs to say anything."""
    too_noisy: int = 0

    @property
    def broke(self) -> tuple[Slice, ...]:
        """What is named."""
        return tuple(row for row in self.rows if row.named)


@dataclass(frozen=True, slots=True, kw_only=True)
class Grown:
    """The evidence of the pairs dispatched until ``at`` (ISO 8601); natural logarithms."""

    at: str
    pairs: int
    go: float | None
    """Harm is below the margin; ``None`` when it is infinite. So is ``rollback``: harm is above it."""
    rollback: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """One rule's; the last point is the evidence of its verdict."""

    rule: str
    needed_go: float
    needed_rollback: float
    points: tuple[Grown, ...]
