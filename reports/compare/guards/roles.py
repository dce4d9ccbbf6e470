"""Who does what to whom: two parts of a sentence that have changed places."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from reports.compare.guards.aligned import aligned
from reports.compare.guards.lexicon import FUNCTION, stem, words
from reports.compare.guards.polarity import Reading
from reports.compare.model import both
from reports.compare.normal import Plain
from reports.judgement import Finding, Severity

_TOKEN = re.compile(r"[^\W_]+(?:[.:'][^\W_]+)*|[,;&]")
_LONGEST = 64
"""Content words of a sentence that is looked into."""
_PHRASE = 4
"""Content words of a part that has changed places."""
_JOINING = words("and or nor & , ; versus vs plus")
_PREPOSITIONS = words(
    "to from with of in on at for into onto over under than before after as against like between above below through"
)
_MUTUAL = frozenset(
    map(stem, words("mix combine blend compare meet marry share agree merge differ equal same similar"))
)
"""With them it does not matter which is named first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Word:
    text: str
    stem: str
    preposition: str
    joined: bool
    """"And", "or" or a comma stands before it."""


def guard_roles(baseline: Plain, candidate: Plain) -> Finding | None:
    """BLOCK when two sentences of the same words differ in that two parts stand in each other's place.

    Not where the parts are joined by "and" or "or", where they take their prepositions with them, or where one of
    the sentences only is in the passive.
    """
    for one, two in aligned(baseline, candidate):
        if one.stems == two.stems and (parts := swapped(one, two)):
            return Finding(
                comparator="text",
                category="text.roles",
                severity=Severity.BLOCK,
                message=f'"{parts[0]}" and "{parts[1]}" have changed places',
                evidence=both(one.text, two.text),
            )
    return None


def swapped(one: Reading, two: Reading) -> tuple[str, str] | None:
    """The two parts, in the order of ``one``; ``None`` when nothing has changed its role."""
    if (" by " in one.text) != (" by " in two.text) or one.stems & _MUTUAL:
        return None
    old, new = _words(one.text), _words(two.text)
    if len(old) != len(new) or len(old) > _LONGEST:
        return None
    old, new = _core(old, new)
    for first in range(1, min(_PHRASE, len(old) - 1) + 1):
        for last in range(1, min(_PHRASE, len(old) - first) + 1):
            if _exchanged(old, new, first, last):
                return _name(old[:first]), _name(old[-last:])
    return None


def _words(text: str) -> list[_Word]:
    """The content words, each with the preposition before it."""
    found: list[_Word] = []
    preposition, joined = "", False
    for match in _TOKEN.finditer(text):
        word = match[0].lower()
        if word in _JOINING:
            preposition, joined = "", True
        elif word in _PREPOSITIONS:
            preposition = word
        elif word not in FUNCTION:
            found.append(_Word(text=match[0], stem=stem(word), preposition=preposition, joined=joined))
            preposition, joined = "", False
    return found


def _core(old: list[_Word], new: list[_Word]) -> tuple[list[_Word], list[_Word]]:
    """Without what both begin and end with."""
    low, high = 0, len(old)
    while low < high and old[low].stem == new[low].stem:
        low += 1
    while high > low and old[high - 1].stem == new[high - 1].stem:
        high -= 1
    return old[low:high], new[low:high]


def _exchanged(old: Sequence[_Word], new: Sequence[_Word], first: int, last: int) -> bool:
    """Whether ``new`` is ``old`` with its ``first`` and its ``last`` words in each other's place."""
    middle = old[first : len(old) - last]
    parts = [*old[len(old) - last :], *middle, *old[:first]]
    if [word.stem for word in parts] != [word.stem for word in new]:
        return False
    there, back = old[len(old) - last], new[len(new) - first]
    here, there, back = old[0], old[len(old) - last], new[len(new) - first]
    slots = [word.preposition for word in (here, *middle, there)]
    moved = new[last : len(new) - first]
    if slots != [word.preposition for word in (new[0], *moved, back)]:
        return False  # a part that takes its preposition with it keeps its role
    if not middle:
        return here.preposition != there.preposition and not there.joined
    return not all(word.joined for word in (*middle, there))


def _name(part: Sequence[_Word]) -> str:
    return " ".join(word.text for word in part)
