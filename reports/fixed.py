"""The exact analysis of a sample whose size was known before: one look, at the end. More power, no second look. Pure.

Of n pairs, (worse, same, better) are multinomial. Given how many are better, the worse ones of the rest are binomial with
chance p/(1 - q), p and q the chances of worse and of better. "The mean sign is at most m", p <= q + m, is tested at the q
for which it is hardest to reject within an exact upper bound of q, which itself is wrong with a tenth of alpha (Berger &
Boos 1994); with m below 0 likewise given the worse ones, where none of them needs no bound: 0 is certain. For m = 0 the
sign test (exact McNemar) needs none either. Exact for independent pairs; the weighted counts of sessions are no binomials, and
for them it is an approximation.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import betainc, betaincinv

from reports.stats import Floats

_PAID = 0.1
"""Share of alpha that pays for the bound of the chance that is not known."""


def fixed(worse: Any, same: Any, better: Any, margin: Any, alpha: float) -> Floats:
    """-log(p) of "the mean sign is at most ``margin``", a ``stats.Test``. Counts of weighted pairs need not be whole."""
    worse, same, better, margin = np.broadcast_arrays(
        *(np.asarray(one, dtype=np.float64) for one in (worse, same, better, margin))
    )
    total = worse + same + better
    beta = _PAID * alpha
    chance = np.where(
        margin > 0,
        _at_least(worse, total - better, _chance(_upper(better, total, beta), margin)) + beta,
        np.where(
            margin < 0,
            _at_most(better, total - worse, _chance(_lower(worse, total, beta), -margin))
            + np.where(worse > 0, beta, 0.0),
            _at_least(worse, worse + better, 0.5),
        ),
    )
    return np.asarray(-np.log(np.clip(np.where(total > 0, chance, 1.0), 1e-300, 1.0)), dtype=np.float64)


def _chance(other: Floats, margin: Floats) -> Floats:
    """Of the one sign among the pairs that have not the other, where the two differ by ``margin``."""
    clipped = np.clip((other + margin) / np.maximum(1 - other, 1e-12), 0.0, 1.0)
    return np.asarray(clipped, dtype=np.float64)


def _at_least(count: Floats, total: Floats, chance: Any) -> Floats:
    """P(X >= count) of a binomial X."""
    tail = betainc(np.maximum(count, 1e-12), np.maximum(total - count, 0.0) + 1, chance)
    return np.where(count > 0, np.asarray(tail, dtype=np.float64), 1.0)


def _at_most(count: Floats, total: Floats, chance: Any) -> Floats:
    """P(X <= count) of a binomial X."""
    return np.where(
        count < total, betainc(np.maximum(total - count, 1e-12), count + 1, 1 - np.asarray(chance)), 1.0
    )


def _upper(count: Floats, total: Floats, beta: float) -> Floats:
    """Clopper-Pearson, one-sided."""
    return np.where(count < total, betaincinv(count + 1, np.maximum(total - count, 1e-12), 1 - beta), 1.0)


def _lower(count: Floats, total: Floats, beta: float) -> Floats:
    return np.where(count > 0, betaincinv(np.maximum(count, 1e-12), total - count + 1, beta), 0.0)
