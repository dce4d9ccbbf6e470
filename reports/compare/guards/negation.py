"""What one side denies and the other affirms, in sentences that otherwise speak of the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from reports.compare.guards.polarity import Reading, joined, read
from reports.compare.model import both, excerpt
from reports.compare.normal import Plain
from reports.judgement import Finding, Severity

_WINDOW = 4
"""Sentences to either side of the proportional place that are looked at."""
_LIKE = 0.5
"""Share of common stems from which two sentences speak of the same thing …"""
_ALONE = 0.25
"""… and where they are all that the texts hold."""
_VERY_LIKE = 0.75
"""Share from which a word like "only" on one side makes a difference by itself."""


def guard_negation(baseline: Plain, candidate: Plain) -> Finding | None:
    """BLOCK when of two sentences that speak of the same one denies what the other affirms, or of another quantity.

    Sentences that stand on both sides are passed over.
    """
    common = set(baseline.sentences) & set(candidate.sentences)
    old = [read(sentence) for sentence in baseline.sentences if sentence not in common]
    new = [read(sentence) for sentence in candidate.sentences if sentence not in common]
    like = _ALONE if len(old) == len(new) == 1 else _LIKE
    for one, two in _closest(old, new, like):
        if why := conflict(one, two):
            return _finding(one, two, why)
    for two, one in _closest(new, old, like):
        if why := conflict(one, two):
            return _finding(one, two, why)
    return None


def conflict(one: Reading, two: Reading) -> str | None:
    """What the two sentences contradict each other in; ``None`` when they need not. Symmetric."""
    if word := _denied(one, two) or _denied(two, one):
        return f'"{word}" is denied on one side only'
    if words := _opposed(one, two) or _opposed(two, one):
        return f"{words} mean the opposite"
    if one.counts and two.counts and one.counts.isdisjoint(two.counts):
        return " against ".join(", ".join(sorted(side.counts)) for side in (one, two))
    if overlap(one.stems, two.stems) < _VERY_LIKE:
        return None
    if one.focused != two.focused:
        return '"only" stands on one side only'
    if one.heads and two.heads and ("few" in one.counts) != ("few" in two.counts):
        return "one side leaves a few, the other none"
    if one.stems == two.stems and len(one.places) == len(two.places) and one.places != two.places:
        return "the negation belongs to other words"
    return None


def _denied(one: Reading, two: Reading) -> str | None:
    """A word that a negation of ``one`` stands before, and that ``two`` has with the other sign only."""
    for names, sign in one.heads:
        known = all(name in two.signs for name in names)
        if known and one.signs[names[0]] == frozenset({sign}) and two.signs[names[0]] == frozenset({-sign}):
            return names[0]
    return None


def _opposed(one: Reading, two: Reading) -> str | None:
    """A word of ``one`` in whose place ``two`` has its opposite."""
    for name, other, sign in one.turned:
        if name not in two.stems and other not in one.stems and two.signs.get(other) == frozenset({-sign}):
            return f'"{name}" and "{other}"'
    return None


def overlap(one: frozenset[str], two: frozenset[str]) -> float:
    """Share of the stems of both that both have."""
    union = len(one | two)
    return len(one & two) / union if union else 0.0


def _closest(
    left: Sequence[Reading], right: Sequence[Reading], like: float
) -> Iterator[tuple[Reading, Reading]]:
    """Each sentence of ``left`` with the most similar one of ``right`` around the same place; either may take in a
    neighbour, for a sentence may have been cut in two."""
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


def _finding(old: Reading, new: Reading, why: str) -> Finding:
    return Finding(
        comparator="text",
        category="text.negation",
        severity=Severity.BLOCK,
        message=f"one side denies what the other says: {excerpt(why, 100)}",
        evidence=both(old.text, new.text),
    )
