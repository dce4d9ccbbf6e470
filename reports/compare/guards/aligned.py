"""Which sentences of two texts speak of the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

from reports.compare.guards.polarity import Reading, joined, read
from reports.compare.normal import Plain

_WINDOW = 4
"""Sentences to either side of the proportional place that are looked at."""
_LIKE = 0.5
"""Share of common stems from which two sentences speak of the same …"""
_ALONE = 0.25
"""… and where they are all that the texts hold."""

Pairs = tuple[tuple[Reading, Reading], ...]


@lru_cache(maxsize=2)
def aligned(baseline: Plain, candidate: Plain) -> Pairs:
    """Sentences (baseline's, candidate's) that speak of the same, each once; those that stand on both sides are left out.

    Either may be two neighbours, for a sentence may have been cut in two. Swapping the texts swaps the pairs.
    """
    common = set(baseline.sentences) & set(candidate.sentences)
    old = [read(sentence) for sentence in baseline.sentences if sentence not in common]
    new = [read(sentence) for sentence in candidate.sentences if sentence not in common]
    like = _ALONE if len(old) == len(new) == 1 else _LIKE
    pairs = [*_closest(old, new, like), *((one, two) for two, one in _closest(new, old, like))]
    return tuple({(one.text, two.text): (one, two) for one, two in pairs}.values())


def overlap(one: frozenset[str], two: frozenset[str]) -> float:
    """Share of the stems of both that both have."""
    union = len(one | two)
    return len(one & two) / union if union else 0.0


def _closest(
    left: Sequence[Reading], right: Sequence[Reading], like: float
) -> Iterator[tuple[Reading, Reading]]:
    """Each of ``left`` with the most similar one of ``right`` around the same place, or with a neighbour taken in."""
    for at, one in enumerate(left):
        middle = at * len(right) // len(left)
        places = range(max(0, middle - _WINDOW), min(len(right), middle + _WINDOW + 1))
        place = max(places, default=None, key=lambda place: overlap(one.stems, right[place].stems))
        if place is None:
            return
        pairs = [
            (one, right[place]),
            *((one, two) for two in _wider(right, place)),
            *((wide, right[place]) for wide in _wider(left, at)),
        ]
        best = max(pairs, key=lambda pair: overlap(pair[0].stems, pair[1].stems))
        if overlap(best[0].stems, best[1].stems) >= like:
            yield best


def _wider(readings: Sequence[Reading], at: int) -> Iterator[Reading]:
    for first in (at - 1, at):
        if 0 <= first < len(readings) - 1:
            yield joined(readings[first], readings[first + 1])
