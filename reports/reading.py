"""What a rule reads: a sign per pair (candidate worse, same, better), and the yardsticks it may use.

All rules are weighed by the same primitive, so each has to say only what "worse" means and what is a missing value.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from replay.exchange import Outcome
from reports.columns import Answers, Columns
from reports.intervals import share_interval
from reports.policy import Policy
from reports.sessions import weights
from reports.stats import (
    Counts,
    Flags,
    Floats,
    Grid,
    Signs,
    Test,
    count_signs,
    finite,
    grid_of,
    median,
    one_each,
)

Latency = Callable[[Answers], Floats]
"""Which latency of an arm a rule reads, seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Yardstick:
    """The baseline's tail just before each pair: seconds, infinite in timeouts."""

    step: NDArray[np.int32]
    """Of each pair of the run: the place of its tail among those below; the last, which is NaN, before enough answers."""
    levels: Mapping[float, Floats]

    def tail(self, level: float, position: NDArray[np.int32]) -> Floats:
        """The tail at 0.95 or 0.99 before the pairs at ``position``; NaN before enough answers."""
        tails: Floats = self.levels[level].take(self.step.take(position))
        return tails


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """What a rule may know besides the pairs that count."""

    policy: Policy
    at: Floats
    """When each pair of the run was dispatched."""
    test: Test
    """How counts become evidence: at every look, or once at the end."""
    streamed: bool
    """Whether any request of the run was streamed."""
    tails: Mapping[Latency, Yardstick]
    """The baseline's tail of each latency; of those that only streams have, over streamed requests."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What one rule sees: signs with their times, and the same in the unit that people read."""

    run_at: Floats
    """When each pair of the run was dispatched."""
    position: NDArray[np.int32]
    """Of the pair behind each sign, in the run."""
    signs: Signs
    """For ROLLBACK, and for the estimate."""
    weight: Floats
    """Of each sign: pairs of one session count together as one (see ``sessions``)."""
    cautious: Counts
    """For GO: worse, same and better, where failed requests count as infinitely slow."""
    pairs: int
    """Behind ``cautious``."""
    delivered: int
    """Pairs read in which the candidate answered: failures never make up for missing pairs."""
    missing: int
    bar: float
    """The margin of the mean sign."""
    margin: float
    """The margin in the rule's unit; so are estimate, bounds and what the arms had."""
    estimate: float | None
    bounds: Callable[[], tuple[float, float]]
    """The interval of the estimate; worked out when it is asked for, because it costs more than the verdict."""
    baseline: float | None = None
    candidate: float | None = None
    note: str = ""
    """What a reader has to know of how it was read."""
    finer: Reading | None = None
    """The same with all labels, where some are too noisy to decide by: harm in it keeps GO away."""

    @property
    def at(self) -> Floats:
        """When the pair behind each sign was dispatched. Put together each time: of a million pairs it is 8 MB a rule."""
        return self.run_at.take(self.position)

    @property
    def span_s(self) -> float:
        """From the first sign to the last; 0 without any."""
        first, last = self.run_at[self.position[[0, -1]]] if self.signs.size else (0.0, 0.0)
        return float(last - first)

    def grid(self, *, block_s: float, period_s: float) -> Grid:
        """The blocks of its signs."""
        return grid_of(self.run_at, block_s=block_s, period_s=period_s, rows=self.position)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unread:
    """A rule that cannot be read, and why."""

    reason: str
    applicable: bool = True
    margin: float | None = None


def window(policy: Policy) -> int:
    """How many baseline answers a yardstick is read from: a quarter of ``minimum_pairs``, at least 100."""
    return max(100, policy.minimum_pairs // 4)


def untied(seconds: Floats, position: NDArray[np.int32]) -> Floats:
    """Latencies made distinct by less than a nanosecond each, spread evenly: constant ones would have no tail at all."""
    place = position * 0.6180339887498949
    spread: Floats = seconds + (place - np.floor(place)) * 1e-9
    return spread


def yardstick(columns: Columns, final: Flags, size: int, latency: Latency) -> Yardstick:
    """p95 and p99 of the last ``size`` answers of the baseline before each pair, renewed at every tenth of ``size``.

    Reads only earlier pairs, so it is fixed before the pair it is used on. It follows the load of the day: what slows both
    arms is no harm. Timeouts count as infinite, other failures not at all; ``final`` marks the pairs that may be used.
    """
    base, count = columns.baseline, len(columns)
    values = np.where(base.having(Outcome.TIMEOUT), math.inf, np.where(base.answered, latency(base), np.nan))
    usable = ~np.isnan(values) & final
    used = np.flatnonzero(usable)
    if used.size < size:
        return Yardstick(step=np.zeros(count, np.int32), levels=dict.fromkeys(_LEVELS, np.array([np.nan])))
    step = size // 10
    distinct = untied(values[used], columns.position[used])
    windows = np.lib.stride_tricks.sliding_window_view(distinct, size)[::step]
    before = np.cumsum(usable, dtype=np.int32) - usable
    place = np.where(before >= size, np.minimum((before - size) // step, len(windows) - 1), len(windows))
    low, high = (min(size, math.ceil(level * (size + 1))) - 1 for level in _LEVELS)
    upper = np.partition(windows, low, axis=1)[:, low:]
    tails = upper[:, 0], np.partition(upper, high - low, axis=1)[:, high - low]
    levels = {level: np.append(tail, np.nan) for level, tail in zip(_LEVELS, tails, strict=True)}
    return Yardstick(step=place.astype(np.int32), levels=levels)


_LEVELS = (0.95, 0.99)


def e2e(answers: Answers) -> Floats:
    """End-to-end latencies of an arm, seconds."""
    return answers.e2e


def ttft(answers: Answers) -> Floats:
    """Times to first token of an arm, seconds."""
    return answers.ttft


def itl(answers: Answers) -> Floats:
    """The p95 of each answer's gaps between chunks, seconds."""
    return answers.itl


def tpot(answers: Answers) -> Floats:
    """Times per output token after the first, seconds."""
    return answers.tpot


def signs_of(worse: Flags, better: Flags) -> Signs:
    """+1 where only ``worse`` holds, -1 where only ``better``, else 0."""
    return worse.astype(np.int8) - better.astype(np.int8)


def mean(values: Flags | Signs, weight: Floats | None = None) -> float | None:
    """The mean, of flags the share that is true; ``None`` of nothing."""
    if not values.size:
        return None
    return float(values.mean() if one_each(weight) else np.average(values, weights=weight))


def middle(values: Floats, weight: Floats) -> float | None:
    """The median; ``None`` when it is infinite or there is none."""
    if not values.size:
        return None
    if weight.min() < 1:
        order = np.argsort(values, kind="stable")
        upto = np.cumsum(weight[order])
        return finite(float(values[order][np.searchsorted(upto, upto[-1] / 2)]))
    return finite(median(values))


def share_reading(
    known: Columns, base: Flags, candidate: Flags, *, missing: int, margin: float, frame: Frame
) -> Reading:
    """The reading of something that happens to an arm or not: sign = 1{candidate} - 1{baseline}."""
    signs, weight = signs_of(candidate, base), weights(known.session)
    counts = count_signs(signs, weight)
    return Reading(
        run_at=frame.at,
        position=known.position,
        signs=signs,
        weight=weight,
        cautious=counts,
        pairs=signs.size,
        delivered=int(np.count_nonzero(known.candidate.answered)),
        missing=missing,
        bar=margin,
        margin=margin,
        estimate=mean(signs, weight),
        bounds=lambda: share_interval(*counts, frame.policy.alpha, frame.test),
        baseline=mean(base, weight),
        candidate=mean(candidate, weight),
    )
