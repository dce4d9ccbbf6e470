"""Latency distributions as they are drawn: a bounded number of points of each empirical distribution function. Pure."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from replay.exchange import Arm
from reports.counted import Counted
from reports.gathered import Gathered

METRICS = ("ttft", "itl", "e2e")
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
