"""A text that says one thing again and again."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from reports.compare.model import both, excerpt, odd_one
from reports.compare.normal import Plain
from reports.judgement import Finding, Severity

_WORDS = 20_000
"""Words of a text that are looked at."""
_LONGEST = 60
"""Words of the longest phrase that can repeat."""
_SPACELESS = 20
_TIMES = 4
_SHARE = 0.3
"""A loop is a phrase that stands this often in a row and makes up this share of the text or ..."""
_MANY = 24
"""... that many words."""


def guard_loops(baseline: Plain, candidate: Plain) -> Finding | None:
    """BLOCK when one side alone is caught in a loop."""
    old, new = loop(baseline.text), loop(candidate.text)
    side, phrase = odd_one(old is not None, new is not None), old or new
    if side is None or phrase is None:
        return None
    return Finding(
        comparator="text",
        category="text.loop",
        severity=Severity.BLOCK,
        message=f"the {side}'s answer repeats itself: {excerpt(phrase, 80)}",
        side=side,
        evidence=both(baseline.text[-160:], candidate.text[-160:]),
    )


def loop(text: str) -> str | None:
    """The phrase that a text repeats four times in a row or more, at length; ``None`` when it does not.

    One pass: a word that also stood ``n`` words before continues a repetition of period ``n``, where ``n`` is the
    distance to its last occurrence.
    """
    words: Sequence[str] = text.split()[:_WORDS]
    if len(text) > _SPACELESS * len(words):
        words = text[:_WORDS]  # a script without spaces: each character is a word
    if len(words) - len(set(pairwise(words))) < min(_MANY, len(words) * _SHARE) * (1 - 1 / _TIMES):
        return None  # neighbours that stand together twice are too few for a loop
    last: dict[str, int] = {}
    period, run, best, at_best = 0, 0, 0, (0, 0)
    for at, word in enumerate(words):
        if period and at >= period and words[at - period] == word:
            run += 1
        else:
            gap = at - last.get(word, -_LONGEST - 1)
            period, run = (gap, 1) if gap <= _LONGEST else (0, 0)
        if period and run >= period * (_TIMES - 1) and run + period > best:
            best, at_best = run + period, (at, period)
        last[word] = at
    end, length = at_best
    phrase = " ".join(words[end - length + 1 : end + 1])
    if best and (best >= _MANY or best >= len(words) * _SHARE) and any(map(str.isalpha, phrase)):
        return phrase
    return None
