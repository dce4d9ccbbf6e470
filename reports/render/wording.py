"""Where two texts differ, word by word. Pure."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import groupby

_JOINERS = "\u200c\u200d"
_SCRIPTS = ("CJK", "HIRAGANA", "KATAKANA", "HANGUL", "THAI")
"""Written without spaces: each letter is a word."""
_MOST_MATCHES = 8_000
_FEWEST_ALIKE = 0.2
"""Of the words; below, two texts have nothing in common that is worth reading around."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Some of a text."""

    text: str
    differs: bool


def compared(baseline: str, candidate: str) -> tuple[tuple[Part, ...], tuple[Part, ...]]:
    """Both texts in parts, those marked that the other has otherwise; unmarked where they have hardly a word in common.

    Spaces are no difference. Where the same words come too often to be told apart, all is marked between the first and the
    last difference.
    """
    old, new = list(words(baseline)), list(words(candidate))
    steps = _steps([word.strip() for word in old], [word.strip() for word in new])
    alike = sum(end - start for kind, start, end, _, _ in steps if kind == "equal")
    if 2 * alike < _FEWEST_ALIKE * (len(old) + len(new)):
        return _whole(baseline), _whole(candidate)
    before = (("".join(old[start:end]), kind != "equal") for kind, start, end, _, _ in steps)
    after = (("".join(new[start:end]), kind != "equal") for kind, _, _, start, end in steps)
    return tuple(_parts(before)), tuple(_parts(after))


def words(text: str) -> Iterator[str]:
    """Words and single signs, each with the spaces behind it; together they make up the text."""
    held = ""
    for piece in _pieces(text):
        if held and not piece.isspace():
            yield held
            held = ""
        held += piece
    if held:
        yield held


def _pieces(text: str) -> Iterator[str]:
    for kind, letters in groupby(text, _kind):
        if kind in ("word", "space"):
            yield "".join(letters)
        else:
            yield from _with_marks("".join(letters))


_Step = tuple[str, int, int, int, int]


def _steps(old: Sequence[str], new: Sequence[str]) -> Sequence[_Step]:
    """As of ``SequenceMatcher.get_opcodes``, whose time grows with the third power of how often the same words come."""
    counts = Counter(old), Counter(new)
    if sum(count * counts[1][word] for word, count in counts[0].items()) <= _MOST_MATCHES:
        return SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    start = _common(old, new)
    end = _common(old[start:][::-1], new[start:][::-1])
    was, now = len(old) - end, len(new) - end
    return [
        ("equal", 0, start, 0, start),
        ("replace", start, was, start, now),
        ("equal", was, len(old), now, len(new)),
    ]


def _common(old: Sequence[str], new: Sequence[str]) -> int:
    shorter = min(len(old), len(new))
    return next((at for at in range(shorter) if old[at] != new[at]), shorter)


def _kind(char: str) -> str:
    if char.isspace():
        return "space"
    category = unicodedata.category(char)
    alone = char > "\u0e00" and unicodedata.name(char, "").startswith(_SCRIPTS)
    return "sign" if alone or not (category[0] in "LMN" or category == "So" or char in _JOINERS) else "word"


def _with_marks(text: str) -> Iterator[str]:
    """Signs, each with the marks that combine with it."""
    start = 0
    for place in range(1, len(text) + 1):
        if place == len(text) or not unicodedata.category(text[place]).startswith("M"):
            yield text[start:place]
            start = place


def _whole(text: str) -> tuple[Part, ...]:
    return (Part(text=text, differs=False),) if text else ()


def _parts(steps: Iterable[tuple[str, bool]]) -> Iterator[Part]:
    """The spaces behind what differs do not differ."""
    split = (part for text, differs in steps for part in _without_end(text, differs))
    for differs, parts in groupby(split, lambda part: part[1]):
        yield Part(text="".join(text for text, _ in parts), differs=differs)


def _without_end(text: str, differs: bool) -> Iterator[tuple[str, bool]]:
    inside = text.rstrip() if differs else text
    yield from ((some, of) for some, of in ((inside, differs), (text[len(inside) :], False)) if some)
