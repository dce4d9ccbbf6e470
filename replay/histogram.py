"""Quantiles of any number of durations in bounded memory, for what is shown while a run goes on. Pure.

Buckets grow by 2 %, so a quantile is right within 1 % of its value; what a verdict rests on is computed from the stored
values themselves.
"""

from __future__ import annotations

import math
from collections import Counter

_GROWTH = math.log(1.02)
_LEAST = 1e-6


class Histogram:
    """Counts of durations, in seconds; below a microsecond is a microsecond."""

    __slots__ = ("_buckets", "count")

    def __init__(self) -> None:
        self._buckets: Counter[int] = Counter()
        self.count = 0

    def add(self, seconds: float) -> None:
        """One more duration."""
        self._buckets[round(math.log(max(seconds, _LEAST)) / _GROWTH)] += 1
        self.count += 1

    def quantile(self, share: float) -> float | None:
        """The nearest-rank quantile, the middle of its bucket; ``None`` of nothing."""
        rank = max(1, math.ceil(share * self.count))
        for bucket in sorted(self._buckets):
            rank -= self._buckets[bucket]
            if rank <= 0:
                return math.exp(bucket * _GROWTH)
        return None
