"""Which sentences of two texts speak of the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache, reduce

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
        choices = [
            ((at,), (place,)),
            *(((at,), wide) for wide in _wider(right, place)),
            *((wide, (place,)) for wide in _wider(left, at)),
        ]
        scored = [(overlap(_stems(left, here), _stems(right, there)), here, there) for here, there in choices]
        best, here, there = max(scored, key=lambda found: found[0])
        if best >= like:
            yield _taken(left, here), _taken(right, there)


Places = tuple[int, ...]
"""One sentence, or two neighbours."""


def _wider(readings: Sequence[Reading], at: int) -> list[Places]:
    return [(first, first + 1) for first in (at - 1, at) if 0 <= first < len(readings) - 1]


def _stems(readings: Sequence[Reading], places: Places) -> frozenset[str]:
    return frozenset().union(*(readings[place].stems for place in places))


def _taken(readings: Sequence[Reading], places: Places) -> Reading:
    return reduce(joined, (readings[place] for place in places))
