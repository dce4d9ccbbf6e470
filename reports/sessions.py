"""Requests of one conversation are not independent of each other: together they speak once. Pure.

A *unit* is at most 30 consecutive requests of one session within an hour. In every rule each of its pairs weighs 1/size of
the unit. For factors f of one unit the geometric mean is at most the arithmetic one, so evidence whose factors are raised
to these weights has mean at most 1 whatever the dependence inside a unit is: Ville's inequality holds over whole units. A look
in the midst of one weighs its turns so far; that much is calibrated (docs/verdicts.md), not proven.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from reports.stats import Floats

_LONGEST = 30
"""A key that never ends (one user for a whole pipeline) would else count as one request for ever."""
_HOUR = 3600.0


def units(session: NDArray[np.int64], at: Floats) -> NDArray[np.int64]:
    """The unit of each pair, numbered from 0. ``session`` is negative for a pair of its own; ``at`` in ascending seconds."""
    own = session < 0
    if own.all():
        return np.arange(session.size)
    hour = np.floor((at - at[0]) / _HOUR)
    order = np.lexsort((at, hour, session))
    begins = (np.diff(session[order], prepend=-2) != 0) | (np.diff(hour[order], prepend=-1) != 0) | own[order]
    starts = np.flatnonzero(begins)
    rank = np.arange(session.size) - np.repeat(starts, np.diff(starts, append=session.size))
    unit = np.empty(session.size, dtype=np.int64)
    unit[order] = np.cumsum(rank % _LONGEST == 0) - 1
    return unit


def weights(unit: NDArray[np.int64]) -> Floats:
    """1/size of the unit that each pair is in, among these pairs. A negative number is a pair of its own."""
    if (unit[1:] > unit[:-1]).all():  # each is another: what a run without sessions is, and quick to see
        return np.broadcast_to(np.array(1.0), unit.shape)
    weight = np.ones(unit.size)
    known = unit >= 0
    sizes = np.bincount(unit[known])
    if sizes.size and sizes.max() > 1:
        weight[known] = 1 / sizes[unit[known]]
    return weight


def design_effect(unit: NDArray[np.int64]) -> float:
    """Pairs for each that counts: 1 when all are independent; NaN of none."""
    weight = weights(unit)
    return float(weight.size / weight.sum()) if weight.size else float("nan")
