"""Latency distributions as they are drawn: a bounded number of points of each empirical distribution function, and of each
histogram. Pure."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from replay.exchange import Arm
from reports.counted import Counted
from reports.gathered import Gathered

METRICS = ("ttft", "itl", "e2e")
_BINS, _FEWEST = 36, 50
_OUTSIDE = 0.005
"""Of the values of any arm, at either end: they go into the outermost bins, or one outlier would leave no room for the rest."""
_LEVELS = np.concatenate(
    [np.linspace(0, 0.9, 73), np.linspace(0.9, 0.99, 37)[1:], np.linspace(0.99, 1, 41)[1:]]
)
"""Where a curve is read. Denser in the tail, which is what is looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """One metric of one arm over its answered requests: ``share[n]`` of the values are at most ``seconds[n]``."""

    metric: str
    """``ttft``, ``itl`` or ``e2e``."""
    arm: Arm
    seconds: tuple[float, ...]
    """Rising."""
    share: tuple[float, ...]
    """Rising, 0 to 1; the last is 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Histogram:
    """One metric of all arms, in bins whose borders grow by equal factors."""

    metric: str
    """``ttft``, ``itl`` or ``e2e``."""
    borders: tuple[float, ...]
    """Seconds; one more than bins. What is beyond the first or the last is counted in the bin beside it."""
    share: dict[str, tuple[float, ...]]
    """By arm: the share of its values in each bin; they sum to 1."""


def histograms(seen: Gathered) -> tuple[Histogram, ...]:
    """TTFT, ITL and end to end; a metric of which no arm has 50 values, or all are equal, has none."""
    found = (_histogram(metric, {arm: seen.timed(metric, arm).seconds for arm in Arm}) for metric in METRICS)
    return tuple(one for one in found if one is not None)


def _histogram(metric: str, arms: dict[Arm, Counted]) -> Histogram | None:
    known = {arm: values for arm, values in arms.items() if values.size and values.values[-1] > 0}
    ends = [_ends(values) for values in known.values()]
    if max((values.size for values in known.values()), default=0) < _FEWEST:
        return None
    if not 0 < (low := min(first for first, _ in ends)) < (high := max(last for _, last in ends)):
        return None
    borders = np.geomspace(low, high, _BINS + 1)
    return Histogram(
        metric=metric,
        borders=tuple(borders.tolist()),
        share={
            arm.value: tuple(
                (np.diff(values.upto(borders[1:-1]), prepend=0, append=values.size) / values.size)
                .round(6)
                .tolist()
            )
            for arm, values in known.items()
        },
    )


def _ends(values: Counted) -> tuple[float, float]:
    """The smallest and the largest value within which all but ``_OUTSIDE`` of those above 0 lie, at either end."""
    low, high = values.at(np.rint(np.array([_OUTSIDE, 1 - _OUTSIDE]) * (values.size - 1)).astype(np.int64))
    above = values.values[values.values > 0]
    return max(float(low), float(above[0])), float(high)


def curves(seen: Gathered) -> tuple[Curve, ...]:
    """TTFT, ITL and end-to-end curves of both arms and of the baseline's repeat; an arm without values has none."""
    found = (_curve(metric, arm, seen.timed(metric, arm).seconds) for metric in METRICS for arm in Arm)
    return tuple(curve for curve in found if curve is not None)


def _curve(metric: str, arm: Arm, values: Counted) -> Curve | None:
    if not values.size:
        return None
    seconds = np.unique(values.at((_LEVELS * (values.size - 1)).round().astype(np.int64)))
    share = values.upto(seconds) / values.size
    return Curve(
        metric=metric, arm=arm, seconds=tuple(seconds.tolist()), share=tuple(share.round(6).tolist())
    )
