"""Descriptions for people, not evidence: quantiles of latency per arm, each with its interval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from replay.exchange import Arm
from reports.counted import Counted
from reports.gathered import Gathered, Timed
from reports.intervals import quantile_ranks
from reports.stats import Floats

LEVELS = (0.50, 0.95, 0.99)
_FEWEST = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantile:
    """One quantile, seconds. ``value`` is ``None`` with fewer than 1/(1 - level) samples (and fewer than 20); an end of
    the interval that the samples cannot bound is ``None``."""

    level: float
    value: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Distribution:
    """One metric of one arm."""

    metric: str
    """``ttft``, ``itl`` or ``e2e``."""
    arm: Arm
    requests: int
    """Requests that have the metric. Failed ones have none."""
    samples: int
    """Values; above ``requests`` for ITL, which has one per gap between content chunks."""
    quantiles: tuple[Quantile, ...]


def quantiles(
    values: Sequence[float] | Floats | Counted,
    levels: Sequence[float] = LEVELS,
    *,
    alpha: float = 0.05,
    units: int | None = None,
) -> tuple[Quantile, ...]:
    """Quantiles (nearest rank) with order-statistic intervals that hold at every look, each end with chance ``alpha / 2``.

    ``units`` is the number of independent requests behind the values when several come from one (gaps of one stream):
    the interval is then as wide as that many samples would make it. Raises ValueError on NaN, infinite or negative values.
    """
    if not isinstance(values, Counted):
        values = Counted.of(np.asarray(values, dtype=np.float64))
    distinct = values.values
    if distinct.size and not (np.isfinite(distinct).all() and distinct[0] >= 0):
        raise ValueError("a latency is NaN, infinite or negative")
    return tuple(_quantile(values, level, alpha, units or values.size) for level in levels)


def _quantile(values: Counted, level: float, alpha: float, units: int) -> Quantile:
    if units < max(_FEWEST, math.ceil(1 / (1 - level) - 1e-9)):
        return Quantile(level=level, value=None, low=None, high=None)
    size = values.size
    fewest, most = _ranks(units, level, alpha)
    # The interval's ranks for ``units`` samples, as shares of all values.
    low, high = (fewest - 1) * size // units, -(-(most + 1) * size // units) - 1
    ranks = np.array([math.ceil(level * size - 1e-9) - 1, max(low, 0), min(high, size - 1)])
    value, lowest, highest = values.at(ranks).tolist()
    return Quantile(
        level=level,
        value=value,
        low=lowest if fewest > 0 else None,
        high=highest if most < units else None,
    )


_ranks = cache(quantile_ranks)
"""The metrics of an arm mostly have as many requests each."""


def distributions(seen: Gathered, *, alpha: float = 0.05) -> tuple[Distribution, ...]:
    """TTFT, ITL and end-to-end quantiles of both arms and of the baseline's repeat, over answered requests."""
    return tuple(
        _distribution(metric, arm, seen.timed(metric, arm), alpha)
        for metric in ("ttft", "itl", "e2e")
        for arm in Arm
    )


def _distribution(metric: str, arm: Arm, timed: Timed, alpha: float) -> Distribution:
    return Distribution(
        metric=metric,
        arm=arm,
        requests=timed.requests,
        samples=timed.seconds.size,
        quantiles=quantiles(timed.seconds, alpha=alpha, units=timed.requests),
    )
