"""Another name in the same place: a person, a place, a product, a day."""

from __future__ import annotations

import re

from reports.compare.guards.aligned import aligned, overlap
from reports.compare.guards.lexicon import FUNCTION, stem
from reports.compare.model import both
from reports.compare.normal import Plain
from reports.judgement import Finding, Severity

_TOKEN = re.compile(r"[^\W_]+(?:[.'-][^\W_]+)*|[^\s,]")
_CAPITAL = re.compile(r"[A-Z]\w+")
Name = tuple[str, ...]
_PEOPLES = ("sh", "ch", "ese", "an")
_LETTERS = 4
"""Letters with which two spellings of one name begin: Greek and Greece."""
_LIKE = 0.5
"""Share of common stems, names aside, from which two names stand in the same place."""
_TITLED = 0.5
"""Share of capitalised words from which a sentence is a title, in which they say nothing."""
_MOST = 16
"""Names of a sentence that are looked at."""


def guard_names(baseline: Plain, candidate: Plain) -> Finding | None:
    """BLOCK when in sentences that speak of the same each side has a name that the other text does not have.

    English only: a name is told by its capital letter within a sentence.
    """
    for one, two in aligned(baseline, candidate):
        old, new = names(one.text), names(two.text)
        if not old or not new:
            continue
        gone, come = _without(old, candidate.text, two.text), _without(new, baseline.text, one.text)
        if len(gone) != len(come) or any(_same(here, there) for here in gone for there in come):
            continue
        apart = frozenset(stem(word.lower()) for name in gone + come for word in name)
        if gone and overlap(one.stems - apart, two.stems - apart) >= _LIKE:
            return _finding(one.text, two.text, " ".join(gone[0]), " ".join(come[0]))
    return None


def names(sentence: str) -> list[Name]:
    """Words with a capital letter that begin neither the sentence nor what stands behind a mark; none of a title.

    Those that stand together are one name.
    """
    found: list[list[str]] = []
    capitals, count, before = 0, 0, "."
    for match in _TOKEN.finditer(sentence):
        word = match[0]
        named = word[0].isupper() and before[0].isalnum() and word.lower() not in FUNCTION
        if named and found and found[-1][-1] == before:
            found[-1].append(word.removesuffix("'s"))
        elif named and len(found) < _MOST:
            found.append([word.removesuffix("'s")])
        if word[0].isalnum():
            count += 1
            capitals += word[0].isupper()
        before = word
    return [tuple(name) for name in found] if capitals <= _TITLED * count else []


def _without(found: list[Name], text: str, sentence: str) -> list[Name]:
    """Names of which the other text has no word, and not the initials either."""
    lower = text.casefold()
    initials = "".join(word[0] for word in _CAPITAL.findall(sentence))
    return [
        name
        for name in found
        if not any(word.casefold() in lower or word.replace(".", "") in initials for word in name)
    ]


def _same(one: Name, two: Name) -> bool:
    """Whether two names may be spellings of one: Greek and Greece, French and France, US and United."""
    left, right = sorted((one[0].casefold(), two[0].casefold()), key=len)
    if right.startswith(left[:_LETTERS]) or (
        left[:2] == right[:2] and (left.endswith(_PEOPLES) or right.endswith(_PEOPLES))
    ):
        return True
    return (one[0].isupper() or two[0].isupper()) and left[0] == right[0]


def _finding(old: str, new: str, gone: str, come: str) -> Finding:
    return Finding(
        comparator="text",
        category="text.name",
        severity=Severity.BLOCK,
        message=f"names differ: the baseline has {gone[:40]}, the candidate {come[:40]}",
        evidence=both(old, new),
    )
