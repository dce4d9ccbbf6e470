"""Evidence that may be looked at as often as one likes: two primitives. What is read off them is in ``intervals``.

*Primitive A*, the signed-count e-process. Every pair gives a sign: +1 the candidate was worse, 0 the same, -1 better.
For a margin m, the product over pairs of ``1 + λ(sign - m)`` has mean at most 1 for as long as the mean sign is at most m,
whatever came before (0 <= λ < 1/(1+m)). So has a fixed mixture over λ, and by Ville's inequality the chance that it *ever*
reaches 1/alpha is at most alpha. Its state is three counts: order and batching of pairs do not matter.

*Primitive B*, the order-statistic confidence sequence of a quantile: a beta-mixture test of how many of n samples lie at
or below it.

Background: Howard et al. 2021 (arXiv:1810.08240), Waudby-Smith & Ramdas (arXiv:2010.09686), Howard & Ramdas 2022. All
evidence is in natural logarithms; 0 is "no evidence either way".
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Signs = NDArray[np.int8]
Counts = tuple[float, float, float]
"""Worse, same, better. Whole numbers where every pair is a session of its own (see ``sessions``)."""

_SHARES_OF_BET = np.append(np.geomspace(0.01, 0.95, 23), 0.98)
"""Bets as shares of the largest that is allowed; small ones suit noisy signs, large ones signs that are nearly all 0."""
_LIKELY = np.exp(-((np.log(_SHARES_OF_BET[:-1] / 0.22) / 1.1) ** 2) / 2)
_LOG_WEIGHTS = np.log(np.append(0.75 * _LIKELY / _LIKELY.sum(), 0.25))
"""Most is on bets near a fifth of the largest, which pay best where harm is twice a margin or there is none; that saves 4 to
12 % of the pairs that equal weights need. A quarter is on the largest: without any failure a margin of 1 point then needs
420 pairs and not 580."""
_PRIOR = 200.0
"""Strength of the beta mixture of Primitive B; the interval is tightest around this many samples and stays valid at all."""
_MOST_STARTS = 512


Test = Callable[[Any, Any, Any, Any, float], Floats]
"""(worse, same, better, margin, alpha), broadcast together: log evidence that the mean sign is above the margin. Where it
is not, the evidence reaches ``log(1/alpha)`` with a chance of at most ``alpha``."""


def anytime(worse: Any, same: Any, better: Any, margin: Any, alpha: float = 0.0) -> Floats:
    """Primitive A as a ``Test``: holds at every look and needs no ``alpha``."""
    worse, same, better, margin = (
        np.asarray(one, dtype=np.float64)[..., None] for one in (worse, same, better, margin)
    )
    up, flat, down = _log_factors(margin)
    return _log_sums_exp(_LOG_WEIGHTS + worse * up + same * flat + better * down)


def _log_factors(margin: float | Floats) -> tuple[Floats, Floats, Floats]:
    """Logarithms of a bet's factor for signs +1, 0 and -1 against "the mean sign is at most ``margin``"."""
    bet = _SHARES_OF_BET / (1 + margin)
    return np.log1p(bet * (1 - margin)), np.log1p(-bet * margin), np.log1p(-_SHARES_OF_BET)


def log_evidence_above(worse: float, same: float, better: float, margin: float) -> float:
    """Log evidence that the mean sign is above ``margin`` (-1 < margin < 1), from the counts of +1, 0 and -1."""
    return float(anytime(worse, same, better, margin))


def finite(value: float | None) -> float | None:
    """``None`` in place of what is infinite, NaN or not there."""
    return value if value is not None and math.isfinite(value) else None


def one_each(weight: Floats | None) -> bool:
    """Whether all weights are 1, so that counting does, which is quicker than adding."""
    return weight is None or not weight.size or float(weight.min()) == float(weight.max()) == 1


def median(values: Floats) -> float:
    """That of at least one value, as NumPy has it. Partitioned by one rank, which takes a tenth of the time of two."""
    upper = values.size // 2
    parted = np.partition(values, upper)
    high = float(parted[upper])
    return high if values.size % 2 else (float(parted[:upper].max()) + high) / 2


def count_signs(signs: Signs, weight: Floats | None = None) -> Counts:
    """How much weight is on the signs +1, 0 and -1; ``None``: 1 on each."""
    if weight is None or one_each(weight):
        worse, better = float(np.count_nonzero(signs > 0)), float(np.count_nonzero(signs < 0))
        return worse, float(signs.size) - worse - better, better
    worse, better = float(weight[signs > 0].sum()), float(weight[signs < 0].sum())
    return worse, float(weight[signs == 0].sum()), better


@dataclass(frozen=True, slots=True)
class Grid:
    """The blocks of signs in time order. A block has a number from 0, without gaps, and at least one sign."""

    signs: int
    first: NDArray[np.int64]
    """The place of the first sign of each block."""
    period: NDArray[np.int64]
    """The period of each block."""

    @property
    def block(self) -> NDArray[np.int64]:
        """The block of each sign."""
        return np.repeat(np.arange(self.first.size), np.diff(self.first, append=self.signs))

    def counts(self, signs: Signs, weight: Floats | None = None) -> Floats:
        """``counts_by_block`` of these blocks."""
        if not one_each(weight):
            return counts_by_block(signs, self.block, self.first.size, weight)
        worse, better = (np.add.reduceat(of, self.first, dtype=np.int64) for of in (signs > 0, signs < 0))
        same = np.diff(self.first, append=self.signs) - worse - better
        return np.stack([worse, same, better], axis=1).astype(np.float64)


def grid_of(
    at: Floats, *, block_s: float, period_s: float, rows: NDArray[np.integer[Any]] | None = None
) -> Grid:
    """The blocks of ascending times, or of those at ``rows``, that hold any; a block never crosses the border of a period."""
    size = at.size if rows is None else rows.size
    if not size:
        return Grid(signs=0, first=np.empty(0, np.int64), period=np.empty(0, np.int64))

    numbers = math.ceil(period_s / block_s) + 1

    def since(places: NDArray[np.int64]) -> Floats:
        start, *_ = at[:1] if rows is None else at[rows[:1]]
        elapsed: Floats = at[places if rows is None else rows[places]] - start
        return elapsed

    def numbered(places: NDArray[np.int64]) -> NDArray[np.int64]:
        elapsed = since(places)
        period = np.floor(elapsed / period_s)
        number: Floats = period * numbers + np.floor((elapsed - period * period_s) / block_s)
        return number.astype(np.int64)

    # Times ascend: a block can begin only between two of different ones.
    some = numbered(np.append(np.arange(0, size, _STRIDE), size - 1))
    near = _STRIDE * np.flatnonzero(np.diff(some))[:, None] + np.arange(_STRIDE + 1)
    near = np.minimum(near, size - 1)
    first = np.append(0, near[:, 1:][np.diff(numbered(near), axis=1) > 0])
    return Grid(signs=size, first=first, period=np.floor(since(first) / period_s).astype(np.int64))


_STRIDE = 16
"""Signs of which one is looked at first."""


def counts_by_block(
    signs: Signs, block: NDArray[np.int64], blocks: int, weight: Floats | None = None
) -> Floats:
    """How much weight is on the signs +1, 0 and -1 (columns) in each block (rows); ``None``: 1 on each sign."""
    place = 3 * block + 1 - signs
    counts = np.bincount(place, None if one_each(weight) else weight, minlength=3 * blocks)
    return counts.reshape(blocks, 3).astype(np.float64)


def log_evidences_over_time(
    counts: NDArray[Any], period: NDArray[np.int64], margin: float, *, trim: int, most: float = math.inf
) -> Floats:
    """Log evidence for "above ``margin``" that also sees late harm and does not rest on a few blocks, of several series at once.

    ``counts``: (series, block, sign), signs in the order +1, 0, -1; ``period`` of each block (see ``grid_of``). Half the
    weight is on evidence from the start; the rest is shared by starts at every period with weights 1/(s(s+1)): a regression
    after a good day is not drowned by that day. For each bet a block adds at most ``most``, and from each start's evidence
    the ``trim`` blocks that favour harm most are taken away, so it only ever gets smaller: one incident of the candidate is
    not a trend. Start times are fixed in advance; all keep Ville's inequality.
    """
    if not period.size:
        return np.zeros(len(counts))
    gains = np.minimum(log_gains(counts, margin), most)
    start, of = np.unique(np.minimum(period, _MOST_STARTS), return_inverse=True)  # later ones have no weight
    shape = len(counts), start.size, _SHARES_OF_BET.size
    place = np.arange(shape[0])[:, None, None] * shape[1] + of[:, None]
    place = place * shape[2] + np.arange(shape[2])
    added = np.bincount(place.ravel(), gains.ravel(), minlength=math.prod(shape)).reshape(shape)
    total = _LOG_WEIGHTS + added[:, ::-1].cumsum(axis=1)  # the latest start first
    if trim:
        total -= _largest(gains, of, trim)
    weight = [_log_start_weight(period) for period in start[::-1].tolist()]
    return _log_sums_exp(weight + _log_sums_exp(total))


def log_gains(counts: NDArray[Any], margin: float) -> Floats:
    """What each block adds to the logarithm of each bet (last axis), before anything is cut; ``counts`` as above."""
    gains: Floats = counts.astype(np.float64) @ np.stack(_log_factors(margin))
    return gains


def _log_sums_exp(terms: Floats) -> Floats:
    """``log_sum_exp`` along the last axis."""
    top = terms.max(axis=-1, keepdims=True)
    sums: Floats = top[..., 0] + np.log(np.exp(terms - top).sum(axis=-1))
    return sums


def _largest(gains: Floats, of: NDArray[np.int64], keep: int) -> Floats:
    """The sum of the ``keep`` largest gains from each start on, the latest first, as far as they are above 0.

    ``of``: the number of the start that each block follows.
    """
    largest, found = np.zeros((len(gains), keep, _SHARES_OF_BET.size)), []
    for start in range(int(of[-1]), -1, -1):
        some = np.concatenate([largest, np.maximum(gains[:, of == start], 0)], axis=1)
        rest = some.shape[1] - keep
        largest = np.partition(some, rest, axis=1)[:, rest:]
        found.append(largest.sum(axis=1))
    return np.stack(found, axis=1)


def _log_start_weight(start: int) -> float:
    if start == 0:
        return math.log(0.5)
    return -math.log(2 * start * (start + 1)) if start < _MOST_STARTS else -math.inf


def pairs_until_below(
    worse: float, same: float, better: float, margin: float, alpha: float, test: Test = anytime
) -> int | None:
    """How many more pairs until the evidence for "below ``margin``" suffices, if they come as the pairs so far.

    In the counts' own measure (see ``sessions``). 0 when it suffices now; ``None`` when even a thousand times as many would
    not decide.
    """
    total = worse + same + better
    if not total:
        return None

    def enough(factor: float) -> bool:
        evidence = test(better * factor, same * factor, worse * factor, -margin, alpha)
        return bool(evidence >= math.log(1 / alpha))

    low, high = 1.0, 1.0
    while not enough(high):
        low, high = high, high * 2
        if high > 1000:
            return None
    for _ in range(20):
        middle = (low + high) / 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return 0 if high == 1.0 else math.ceil((high - 1) * total)


def log_evidence_not(share: float, count: Any, total: float) -> Any:
    """Log evidence that ``count`` of ``total`` is not a draw with chance ``share`` (0 < share < 1): a beta mixture."""
    a, b = _PRIOR * share, _PRIOR * (1 - share)
    mixture = betaln(count + a, total - count + b) - betaln(a, b)
    return mixture - count * math.log(share) - (total - count) * math.log1p(-share)
