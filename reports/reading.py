"""What a rule reads: a sign per pair (candidate worse, same, better), and the yardsticks it may use.

All rules are weighed by the same primitive, so each has to say only what "worse" means and what is a missing value.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from replay.exchange import Outcome
from reports.columns import Answers, Columns
from reports.policy import Policy
from reports.stats import Flags, Floats, Signs, count_signs, share_interval

Latency = Callable[[Answers], Floats]
"""Which latency of an arm a rule reads: ``e2e`` or ``ttft``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Yardstick:
    """The baseline's tail just before each pair, by position: seconds, NaN before enough answers, infinite in timeouts."""

    p95: Floats
    p99: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """What a rule may know besides the pairs that count."""

    policy: Policy
    streamed: bool
    """Whether any request of the run was streamed."""
    e2e: Yardstick
    ttft: Yardstick


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What one rule sees: signs with their times, and the same in the unit that people read."""

    at: Floats
    position: NDArray[np.int64]
    """Of the pair behind each sign, in the run."""
    signs: Signs
    """For ROLLBACK, and for the estimate."""
    cautious: Signs
    """For GO: failed requests count as infinitely slow."""
    delivered: int
    """Pairs read in which the candidate answered: failures never make up for missing pairs."""
    missing: int
    bar: float
    """The margin of the mean sign."""
    margin: float
    """The margin in the rule's unit; so are estimate, low, high and what the arms had."""
    estimate: float | None
    low: float
    high: float
    baseline: float | None = None
    candidate: float | None = None
    note: str = ""
    """What a reader has to know of how it was read."""
    finer: Reading | None = None
    """The same with all labels, where some are too noisy to decide by: harm in it keeps GO away."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unread:
    """A rule that cannot be read, and why."""

    reason: str
    applicable: bool = True
    margin: float | None = None


def window(policy: Policy) -> int:
    """How many baseline answers a yardstick is read from: a quarter of ``minimum_pairs``, at least 100."""
    return max(100, policy.minimum_pairs // 4)


def untied(seconds: Floats, position: NDArray[np.int64]) -> Floats:
    """Latencies made distinct by less than a nanosecond each, spread evenly: constant ones would have no tail at all."""
    spread: Floats = seconds + np.mod(position * 0.6180339887498949, 1.0) * 1e-9
    return spread


def yardstick(columns: Columns, final: Flags, size: int, latency: Latency) -> Yardstick:
    """p95 and p99 of the last ``size`` answers of the baseline before each pair, renewed at every tenth of ``size``.

    Reads only earlier pairs, so it is fixed before the pair it is used on. It follows the load of the day: what slows both
    arms is no harm. Timeouts count as infinite, other failures not at all; ``final`` marks the pairs that may be used.
    """
    base, count = columns.baseline, len(columns)
    values = np.where(base.having(Outcome.TIMEOUT), math.inf, np.where(base.answered, latency(base), np.nan))
    used = np.flatnonzero(~np.isnan(values) & final)
    if used.size < size:
        return Yardstick(p95=np.full(count, np.nan), p99=np.full(count, np.nan))
    step = size // 10
    distinct = untied(values[used], columns.position[used])
    windows = np.lib.stride_tricks.sliding_window_view(distinct, size)[::step]
    before = np.searchsorted(used, np.arange(count))
    index = np.clip((before - size) // step, 0, len(windows) - 1)
    ranks = [min(size, math.ceil(level * (size + 1))) - 1 for level in (0.95, 0.99)]
    ordered = np.partition(windows, ranks, axis=1)
    p95, p99 = (np.where(before >= size, ordered[index, rank], np.nan) for rank in ranks)
    return Yardstick(p95=p95, p99=p99)


def e2e(answers: Answers) -> Floats:
    """End-to-end latencies of an arm, seconds."""
    return answers.e2e


def ttft(answers: Answers) -> Floats:
    """Times to first token of an arm, seconds."""
    return answers.ttft


def signs_of(worse: Flags, better: Flags) -> Signs:
    """+1 where only ``worse`` holds, -1 where only ``better``, else 0."""
    return worse.astype(np.int8) - better.astype(np.int8)


def mean(flags: Flags) -> float | None:
    """The share that is true; ``None`` of nothing."""
    return float(flags.mean()) if flags.size else None


def share_reading(
    known: Columns, base: Flags, candidate: Flags, *, missing: int, margin: float, alpha: float
) -> Reading:
    """The reading of something that happens to an arm or not: sign = 1{candidate} - 1{baseline}."""
    signs = signs_of(candidate, base)
    low, high = share_interval(*count_signs(signs), alpha)
    return Reading(
        at=known.at,
        position=known.position,
        signs=signs,
        cautious=signs,
        delivered=int(known.candidate.answered.sum()),
        missing=missing,
        bar=margin,
        margin=margin,
        estimate=float(signs.mean()) if signs.size else None,
        low=low,
        high=high,
        baseline=mean(base),
        candidate=mean(candidate),
    )
