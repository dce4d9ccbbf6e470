"""Descriptions for people, not evidence: quantiles of latency per arm, each with its interval."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from replay.exchange import Arm, Outcome
from reports.intervals import quantile_interval, quantile_ranks
from reports.judgement import Measured, Pair
from reports.stats import Floats, finite

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
    values: Sequence[float] | Floats,
    levels: Sequence[float] = LEVELS,
    *,
    alpha: float = 0.05,
    units: int | None = None,
) -> tuple[Quantile, ...]:
    """Quantiles (nearest rank) with order-statistic intervals that hold at every look, each end with chance ``alpha / 2``.

    ``units`` is the number of independent requests behind the values when several come from one (gaps of one stream):
    the interval is then as wide as that many samples would make it. Raises ValueError on NaN, infinite or negative values.
    """
    ordered = np.sort(np.asarray(values, dtype=np.float64))
    if ordered.size and not (np.isfinite(ordered).all() and ordered[0] >= 0):
        raise ValueError("a latency is NaN, infinite or negative")
    return tuple(_quantile(ordered, level, alpha, units or int(ordered.size)) for level in levels)


def _quantile(ordered: Floats, level: float, alpha: float, units: int) -> Quantile:
    if units < max(_FEWEST, math.ceil(1 / (1 - level) - 1e-9)):
        return Quantile(level=level, value=None, low=None, high=None)
    value = float(ordered[math.ceil(level * ordered.size - 1e-9) - 1])
    low, high = (
        quantile_interval(ordered, level, alpha)
        if units == ordered.size
        else _clustered_interval(ordered, level, alpha, units)
    )
    return Quantile(level=level, value=value, low=finite(low), high=finite(high))


def _clustered_interval(ordered: Floats, level: float, alpha: float, units: int) -> tuple[float, float]:
    """The interval's ranks for ``units`` samples, as shares of all values."""
    fewest, most = quantile_ranks(units, level, alpha)
    size = ordered.size
    low = float(ordered[(fewest - 1) * size // units]) if fewest > 0 else -math.inf
    return low, float(ordered[-(-(most + 1) * size // units) - 1]) if most < units else math.inf


def distributions(pairs: Iterable[Pair], *, alpha: float = 0.05) -> tuple[Distribution, ...]:
    """TTFT, ITL and end-to-end quantiles of both arms and of the baseline's repeat, over answered requests."""
    pairs = tuple(pairs)
    arms = (
        (Arm.BASELINE, [pair.baseline for pair in pairs]),
        (Arm.CANDIDATE, [pair.candidate for pair in pairs]),
        (Arm.BASELINE_REPEAT, [pair.repeat for pair in pairs if pair.repeat]),
    )
    return tuple(
        _distribution(metric, arm, [one for one in measured if one.outcome is Outcome.OK], alpha)
        for metric in ("ttft", "itl", "e2e")
        for arm, measured in arms
    )


def _distribution(metric: str, arm: Arm, answered: list[Measured], alpha: float) -> Distribution:
    per_request = [values for one in answered if (values := _values(one, metric))]
    samples = [value for values in per_request for value in values]
    return Distribution(
        metric=metric,
        arm=arm,
        requests=len(per_request),
        samples=len(samples),
        quantiles=quantiles(samples, alpha=alpha, units=len(per_request)),
    )


def _values(one: Measured, metric: str) -> tuple[float, ...]:
    if metric == "itl":
        return one.itl_s
    value = one.ttft_s if metric == "ttft" else one.e2e_s
    return () if value is None else (value,)
