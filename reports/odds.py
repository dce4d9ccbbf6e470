"""When signs that come so and so often will have decided: runs drawn by chance, weighed by the engine's own evidence. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache

import numpy as np
from numpy.typing import NDArray

from reports.policy import Policy
from reports.stats import Flags, Floats
from reports.weighing import Scale, evidences_above, scale

HORIZON_S = 14 * 86_400.0
"""What takes longer cannot be decided at this traffic."""
HALF, MOST = 0.5, 0.8
"""Shares of runs."""
Chance = Callable[[float], float]
"""The share of runs that have decided so many seconds after their start."""

_RUNS_GO, _RUNS_ROLLBACK = 150, 32
_HORIZONS_S = (600.0, 7_200.0, 86_400.0, HORIZON_S / 4, HORIZON_S)
"""A short one is drawn in finer steps, and most things are decided in it."""
_STEPS = 256
_STARTS = 24
"""Of evidence in a horizon. Harm is there from the start, so that later starts add next to nothing and only cost time."""
_LOOKS = 24
_LAST_LOOKS = (0.85, 1.0)
"""Evidence of harm grows nearly always, and a look at it is costly."""
_SOONEST_S = 60.0
_CLOSE = 1.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Signs:
    """How many of each sign come in a second."""

    worse: float
    same: float
    better: float
    bar: float
    """The margin of the mean sign."""
    begins_s: float
    """When the first of them counts, from the start of the run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Seconds from the start of a run by which half of the runs, and four in five, have decided; ``None``: over 14 days."""

    half_s: float | None
    most_s: float | None


NEVER = Span(half_s=None, most_s=None)


def span(chance: Chance) -> Span:
    """When ``chance`` reaches one half and four in five."""
    half = when(chance, HALF, start=_SOONEST_S)
    return Span(half_s=half, most_s=None if half is None else when(chance, MOST, start=half))


def when(chance: Chance, share: float, *, start: float, most: float = HORIZON_S) -> float | None:
    """The first time from ``start`` on, to 5 %, by which ``share`` of the runs have decided; ``None``: later than ``most``."""
    low = high = start
    while chance(high) < share:
        if high >= most:
            return None
        low, high = high, min(4 * high, most)
    while high > _CLOSE * low:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if chance(middle) >= share else (middle, high)
    return high


def go(signs: Signs, policy: Policy, *seed: int) -> Chance:
    """The chance that a look by then showed harm to be below the margin."""

    def decided(of: _Drawn, blocks: int) -> Flags:
        looks = np.unique(np.ceil(blocks * np.arange(1, _LOOKS + 1) / _LOOKS).astype(np.int64)) - 1
        worse, same, better = np.moveaxis(of.counts[:, :blocks].cumsum(axis=1)[:, looks], 2, 0)
        evidence = of.scale.test(better, same, worse, -signs.bar, of.scale.alpha)
        enough: Flags = evidence.max(axis=1) >= of.scale.needed_go
        return enough

    return _chance(signs, policy, decided, seed, runs=_RUNS_GO, trimmed=False)


@lru_cache(maxsize=256)
def rollback(signs: Signs, policy: Policy, seed: int) -> Span:
    """When harm is shown to be above the margin. Rules whose signs come equally often share the work."""

    def decided(of: _Drawn, blocks: int) -> Flags:
        looks = {max(1, round(blocks * share)) for share in _LAST_LOOKS}
        evidence = [
            evidences_above(of.counts[:, :look], of.period[:look], signs.bar, of.scale) for look in looks
        ]
        enough: Flags = np.max(evidence, axis=0) >= of.scale.needed_rollback
        return enough

    return span(_chance(signs, policy, decided, (seed,), runs=_RUNS_ROLLBACK, trimmed=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Drawn:
    """Signs of many runs that have just begun."""

    counts: Floats
    """(run, block, sign): +1, 0 and -1."""
    period: NDArray[np.int64]
    """Of each block."""
    step_s: float
    scale: Scale


def _chance(
    signs: Signs,
    policy: Policy,
    decided: Callable[[_Drawn, int], Flags],
    seed: tuple[int, ...],
    *,
    runs: int,
    trimmed: bool,
) -> Chance:
    """The share of ``runs`` that have ``decided`` by the end of so many blocks, over time."""

    @cache
    def drawn(horizon: float) -> _Drawn:
        measure = scale(policy, span_s=horizon)
        step = measure.block_s if trimmed and math.isfinite(measure.most) else horizon / _STEPS
        chance = np.random.default_rng((*seed, int(horizon)))
        return _draw(signs, measure, math.ceil(horizon / step), step, runs, chance)

    def share(at: float) -> float:
        lasted = min(at - signs.begins_s, HORIZON_S)
        if lasted <= 0:
            return 0.0
        of = drawn(next(one for one in _HORIZONS_S if lasted <= one))
        return float(decided(of, max(1, int(lasted / of.step_s))).mean())

    return share


def _draw(
    signs: Signs, measure: Scale, blocks: int, step: float, runs: int, chance: np.random.Generator
) -> _Drawn:
    means = np.array([signs.worse, signs.same, signs.better]) * step
    period = max(measure.period_s, blocks * step / _STARTS)
    return _Drawn(
        counts=chance.poisson(means, (runs, blocks, 3)).astype(np.float64),
        period=np.floor(np.arange(blocks) * step / period).astype(np.int64),
        step_s=step,
        scale=measure,
    )
