"""Latency distributions as they are drawn: a bounded number of points of each empirical distribution function. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from replay.exchange import Arm, Outcome
from reports.judgement import Measured, Pair
from reports.stats import Floats

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


def curves(pairs: Sequence[Pair]) -> tuple[Curve, ...]:
    """TTFT, ITL and end-to-end curves of both arms and of the baseline's repeat; an arm without values has none."""
    found = (_curve(metric, arm, _values(pairs, metric, arm)) for metric in METRICS for arm in Arm)
    return tuple(curve for curve in found if curve is not None)


def _curve(metric: str, arm: Arm, values: Floats) -> Curve | None:
    if not values.size:
        return None
    ordered = np.sort(values)
    seconds = np.unique(ordered[(_LEVELS * (values.size - 1)).round().astype(np.int64)])
    share = np.searchsorted(ordered, seconds, side="right") / values.size
    return Curve(
        metric=metric, arm=arm, seconds=tuple(seconds.tolist()), share=tuple(share.round(6).tolist())
    )


def _values(pairs: Sequence[Pair], metric: str, arm: Arm) -> Floats:
    measured = (_arm(pair, arm) for pair in pairs)
    answered = (one for one in measured if one is not None and one.outcome is Outcome.OK)
    return np.array([value for one in answered for value in _seconds(one, metric)], dtype=np.float64)


def _arm(pair: Pair, arm: Arm) -> Measured | None:
    return {Arm.BASELINE: pair.baseline, Arm.CANDIDATE: pair.candidate, Arm.BASELINE_REPEAT: pair.repeat}[arm]


def _seconds(one: Measured, metric: str) -> tuple[float, ...]:
    if metric == "itl":
        return one.itl_s
    value = one.ttft_s if metric == "ttft" else one.e2e_s
    return () if value is None else (value,)
