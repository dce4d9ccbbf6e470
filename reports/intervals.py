"""Bounds of shares, medians, tails and quantiles: what the evidence of ``stats`` does not reject. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reports.stats import Flags, Floats, Test, anytime, log_evidence_not, one_each


def share_interval(
    worse: float, same: float, better: float, alpha: float, test: Test = anytime
) -> tuple[float, float]:
    """Bounds of the mean sign, each wrong at most with chance ``alpha``; (-1, 1) when nothing is known.

    The margins that ``test`` does not reject. Never zero wide: at 0 worse of n the upper end is about 4/n.
    """
    low, high = share_intervals(np.array([[worse, same, better]]), alpha, test)
    return float(low[0]), float(high[0])


def share_intervals(counts: NDArray[Any], alpha: float, test: Test = anytime) -> tuple[Floats, Floats]:
    """The lower and the upper bounds of ``share_interval`` for many (worse, same, better) counts at once."""
    return -_upper_bounds(counts[:, ::-1], alpha, test), _upper_bounds(counts, alpha, test)


def _upper_bounds(counts: NDArray[Any], alpha: float, test: Test) -> Floats:
    """The smallest margin from which on "the mean sign is below it" is shown; 1 where it never is."""
    low, high = np.full(len(counts), -1.0), np.full(len(counts), 1.0)
    worse, same, better = counts.T
    for _ in range(40):
        middle = (low + high) / 2
        shown = test(better, same, worse, -middle, alpha) >= math.log(1 / alpha)
        low, high = np.where(shown, low, middle), np.where(shown, middle, high)
    return high


def median_interval(
    values: Floats, alpha: float, weight: Floats | None = None, test: Test = anytime
) -> tuple[float, float]:
    """Bounds of the median of ``values`` (which may hold ±inf): the shifts that the sign test does not reject.

    Each bound is wrong at most with chance ``alpha``; an end that the data cannot bound is infinite.
    """
    total = float(values.size if weight is None else weight.sum())
    needed = _weight_beyond(total, alpha, test)
    if needed is None:
        return -math.inf, math.inf
    if weight is None or one_each(weight):
        low, high = values.size - int(needed), int(needed) - 1
        return float(np.partition(values, low)[low]), float(np.partition(values, high)[high])
    order = np.argsort(values, kind="stable")
    ordered, weight = values[order], weight[order]
    upto = np.cumsum(weight)
    slack = total * 1e-12  # of a sum of weights
    first = int(np.searchsorted(upto, needed - slack))
    last = int(np.searchsorted(upto - weight, total - needed + slack, side="right")) - 1
    return float(ordered[last]), float(ordered[first])


def _weight_beyond(total: float, alpha: float, test: Test) -> float | None:
    """The least weight of ``total`` below a number that shows it to be above the median, to a whole pair."""
    needed = math.log(1 / alpha)

    def enough(more: float) -> bool:
        return bool(test(more, 0.0, total - more, 0.0, alpha) >= needed)

    if not total or not enough(total):
        return None
    low, high = math.floor(total / 2), math.ceil(total)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(min(middle, total)) else (middle, high)
    return min(float(high), total)


def exceedance_bound(
    candidate: Floats,
    base_exceeds: Flags,
    alpha: float,
    *,
    upper: bool,
    weight: Floats | None = None,
    test: Test = anytime,
) -> float:
    """Bound of the shift at which the candidate exceeds a fixed threshold exactly as often as the baseline does.

    ``candidate`` is its latency minus the threshold (+inf: exceeds every shift), paired with ``base_exceeds``. That
    shift is the difference of the two arms' quantiles at the level where the baseline crosses the threshold. It is found by
    inverting ``test`` with margin 0 on ``1{candidate exceeds threshold + shift} - 1{baseline exceeds threshold}``.
    """
    weight = np.ones(candidate.size) if weight is None else weight
    tail = _MORE_THAN_TAIL * int(base_exceeds.sum()) + 1_000
    if tail < candidate.size:  # the bound nearly always lies there, and sorting the tail is much less work
        cut = float(np.partition(candidate, candidate.size - tail)[candidate.size - tail])
        found = _exceedance_bound(candidate, base_exceeds, alpha, weight, test, upper=upper, cut=cut)
        if found is not None and found > cut:
            return found
    found = _exceedance_bound(candidate, base_exceeds, alpha, weight, test, upper=upper, cut=-math.inf)
    return found if found is not None else math.inf if upper else -math.inf


_MORE_THAN_TAIL = 4


def _exceedance_bound(
    candidate: Floats,
    base_exceeds: Flags,
    alpha: float,
    weight: Floats,
    test: Test,
    *,
    upper: bool,
    cut: float,
) -> float | None:
    """The bound among the shifts from ``cut`` on; ``None`` when there is none, or none there."""
    plain, slow = (_Upto.of(candidate[of], weight[of], cut) for of in (~base_exceeds, base_exceeds))
    shifts = np.unique(candidate[np.isfinite(candidate) & (candidate >= cut)])
    needed, total = math.log(1 / alpha), plain.total + slow.total

    def shown(index: int) -> bool:
        shift = shifts[index]
        worse = plain.total - plain.upto(shift, equal=upper)
        better = slow.upto(shift, equal=upper)
        same = max(0.0, total - worse - better)
        evidence = test(better, same, worse, 0.0, alpha) if upper else test(worse, same, better, 0.0, alpha)
        return bool(evidence >= needed)

    found = _first_index(shown, shifts.size) if upper else _last_index(shown, shifts.size)
    return None if found is None else float(shifts[found])


@dataclass(frozen=True, slots=True)
class _Upto:
    """How much weight lies at or below a value, from a cut on."""

    ordered: Floats
    sums: Floats

    @classmethod
    def of(cls, values: Floats, weight: Floats, cut: float) -> _Upto:
        beyond = values >= cut
        before, values, weight = float(weight[~beyond].sum()), values[beyond], weight[beyond]
        order = np.argsort(values, kind="stable")
        return cls(values[order], before + np.concatenate([[0.0], np.cumsum(weight[order])]))

    @property
    def total(self) -> float:
        return float(self.sums[-1])

    def upto(self, value: float, *, equal: bool) -> float:
        return float(self.sums[np.searchsorted(self.ordered, value, side="right" if equal else "left")])


def _first_index(holds: Callable[[int], bool], size: int) -> int | None:
    """The first index at which ``holds`` (false, then true) is true."""
    low, high = 0, size
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low if low < size else None


def _last_index(holds: Callable[[int], bool], size: int) -> int | None:
    """The last index at which ``holds`` (true, then false) is true."""
    found = _first_index(lambda index: not holds(index), size)
    last = size - 1 if found is None else found - 1
    return last if last >= 0 else None


def quantile_ranks(total: int, level: float, alpha: float) -> tuple[int, int]:
    """Fewest and most samples of ``total`` that may lie at or below the ``level`` quantile, over all looks at once."""
    counts = np.arange(total + 1)
    admissible = np.flatnonzero(log_evidence_not(level, counts, total) < math.log(1 / alpha))
    return int(admissible[0]), int(admissible[-1])


def quantile_interval(ordered: Floats, level: float, alpha: float) -> tuple[float, float]:
    """Confidence sequence of the ``level`` quantile of ascending ``ordered`` samples; an unbounded end is infinite."""
    fewest, most = quantile_ranks(int(ordered.size), level, alpha)
    low = float(ordered[fewest - 1]) if fewest > 0 else -math.inf
    return low, float(ordered[most]) if most < ordered.size else math.inf
