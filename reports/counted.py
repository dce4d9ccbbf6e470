"""Values with how often each occurs: the distribution of millions of gaps in the memory of the distinct ones. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reports.stats import Floats


@dataclass(frozen=True, slots=True)
class Counted:
    """Ascending distinct values, and the count of each."""

    values: Floats
    counts: NDArray[np.int64]

    @classmethod
    def of(cls, values: Floats) -> Counted:
        """Any values, in any order."""
        return cls(*np.unique(values, return_counts=True))

    @classmethod
    def together(cls, parts: Iterable[Counted]) -> Counted:
        """All of several."""
        some = [part for part in parts if part.values.size]
        if not some:
            return cls(np.empty(0), np.empty(0, np.int64))
        values, place = np.unique(np.concatenate([part.values for part in some]), return_inverse=True)
        counts = np.zeros(values.size, np.int64)
        np.add.at(counts, place, np.concatenate([part.counts for part in some]))
        return cls(values, counts)

    @property
    def size(self) -> int:
        """How many values there are, equal ones counted each."""
        return int(self.counts.sum())

    def at(self, ranks: NDArray[np.int64]) -> Floats:
        """The values at these ranks, from 0, of all in ascending order."""
        return self.values[np.searchsorted(np.cumsum(self.counts), ranks, side="right")]

    def upto(self, values: Floats) -> NDArray[np.int64]:
        """How many are at most each of these."""
        sums = np.append(0, np.cumsum(self.counts))
        found: NDArray[np.int64] = sums[np.searchsorted(self.values, values, side="right")]
        return found


class Counting:
    """Values that come in parts, of which a few are held apart before they are put together."""

    def __init__(self) -> None:
        self._parts: list[Counted] = []

    def add(self, part: Counted) -> None:
        """Some more."""
        self._parts.append(part)
        first, *rest = (some.values.size for some in self._parts)
        if sum(rest) > max(first, _MANY):
            self._parts = [Counted.together(self._parts)]

    def all(self) -> Counted:
        """Those that came."""
        return Counted.together(self._parts)


_MANY = 2**19
