"""What one side denies and the other affirms, in sentences that otherwise speak of the same."""

from __future__ import annotations

from reports.compare.guards.aligned import aligned, overlap
from reports.compare.guards.polarity import Reading
from reports.compare.model import both, excerpt
from reports.compare.normal import Plain
from reports.judgement import Finding, Severity

_VERY_LIKE = 0.75
"""Share of common stems from which a word like "only" on one side makes a difference by itself."""


def guard_negation(baseline: Plain, candidate: Plain) -> Finding | None:
    """BLOCK when of two sentences that speak of the same one denies what the other affirms, or tells of another quantity."""
    for one, two in aligned(baseline, candidate):
        if why := conflict(one, two):
            return _finding(one, two, why)
    return None


def conflict(one: Reading, two: Reading) -> str | None:
    """What the two sentences contradict each other in; ``None`` when they need not."""
    very_like = overlap(one.stems, two.stems) >= _VERY_LIKE
    if word := _denied(one, two, very_like) or _denied(two, one, very_like):
        return f'"{word}" is denied on one side only'
    if words := _opposed(one, two) or _opposed(two, one):
        return f"{words} mean the opposite"
    if one.counts and two.counts and one.counts.isdisjoint(two.counts):
        return " against ".join(", ".join(sorted(side.counts)) for side in (one, two))
    return _nuance(one, two) if very_like else None


def _denied(one: Reading, two: Reading, very_like: bool) -> str | None:
    """A word that a negation of ``one`` stands before, and that ``two`` has with the other sign.

    With that sign only; or, in sentences that are very like, as often and with other signs. Where the head is a guess,
    the sentences must have the same words.
    """
    for head in one.heads:
        guess = not head.follows and one.stems != two.stems
        if guess or not all(name in two.signs for name in head.stems):
            continue
        name = head.stems[0]
        old, new = one.signs[name], two.signs[name]
        if set(old) == {head.sign} and set(new) == {-head.sign}:
            return name
        if very_like and len(old) == len(new) and old != new:
            return name
    return None


def _opposed(one: Reading, two: Reading) -> str | None:
    """A word of ``one`` in whose place ``two`` has its opposite."""
    for name, other, sign in one.turned:
        if name not in two.stems and other not in one.stems and set(two.signs.get(other, ())) == {-sign}:
            return f'"{name}" and "{other}"'
    return None


def _nuance(one: Reading, two: Reading) -> str | None:
    """What makes a difference in sentences that are otherwise very like."""
    if one.focused != two.focused:
        return '"only" stands on one side only'
    if ("not all" in one.counts) != ("not all" in two.counts) and one.counts and two.counts:
        return "one side speaks of all, the other of not all"
    if one.heads and two.heads and ("few" in one.counts) != ("few" in two.counts):
        return "one side leaves a few, the other none"
    if one.stems == two.stems and one.places != two.places:
        return "the negation belongs to other words"
    return None


def _finding(old: Reading, new: Reading, why: str) -> Finding:
    return Finding(
        comparator="text",
        category="text.negation",
        severity=Severity.BLOCK,
        message=f"one side denies what the other says: {excerpt(why, 100)}",
        evidence=both(old.text, new.text),
    )
