"""Texts that cannot act: what a server or a model said, made harmless before any renderer shows it."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

_ACTING = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Control, format, surrogate, private, unassigned, line and paragraph separators."""
_JOINERS = "\u200c\u200d"
"""Change how letters join, and nothing else: Persian, Indic scripts and emoji need them."""
_MARKS = 4
"""Combining marks on one letter; more of them cover the lines around it."""


def plain(text: str, limit: int = 2_000, *, lines: bool = False) -> str:
    """At most ``limit`` characters without control or format characters (ANSI escapes, right-to-left overrides, NUL).

    Line ends become spaces unless ``lines``.
    """
    shown = "".join(_harmless(text[:limit], lines=lines))
    return shown + ("\u2026" if len(text) > limit else "")


def _harmless(text: str, *, lines: bool) -> Iterator[str]:
    marks = 0
    for char in text:
        category = unicodedata.category(char)
        marks = marks + 1 if category in ("Mn", "Me") else 0
        if char in "\n\t":
            yield "\n" if lines and char == "\n" else " "
        elif marks <= _MARKS:
            yield "\ufffd" if category in _ACTING and char not in _JOINERS else char


def columns(text: str) -> int:
    """How many terminal columns a harmless text takes."""
    return sum(map(_columns, text))


def _columns(char: str) -> int:
    if unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def clip(text: str, width: int) -> str:
    """One harmless line of at most ``width`` terminal columns, with an ellipsis where it was cut."""
    text = plain(text, 4 * width)
    if columns(text) <= width:
        return text
    return _head(text, width - 1) + "\u2026"


def wrap(text: str, width: int, *, first: str = "", rest: str = "") -> list[str]:
    """Harmless lines of at most ``width`` columns, the first behind ``first``, the others behind ``rest``."""
    lines, line = [], first
    for word in plain(text).split():
        gap = "" if line in (first, rest) else " "
        if gap and columns(line) + 1 + columns(word) > width:
            lines.append(line)
            line, gap = rest, ""
        while columns(line) + columns(word) > width:
            piece = _head(word, max(2, width - columns(line)))
            lines.append(line + piece)
            line, word = rest, word[len(piece) :]  # noqa: PLW2901 - an endless word is worked off in pieces
        line += gap + word
    return [*lines, line]


def _head(text: str, width: int) -> str:
    taken = 0
    for place, char in enumerate(text):
        taken += _columns(char)
        if taken > width:
            return text[:place]
    return text
