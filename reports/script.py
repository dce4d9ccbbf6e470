"""Which script a text is written in. Pure."""

from __future__ import annotations

import unicodedata
from collections import Counter

_LOOKED_AT = 1_000
"""Characters that are looked at: enough to tell, and bounded work for any text."""
_JAPANESE = ("hiragana", "katakana")


def script(text: str) -> str | None:
    """The script of most letters of its beginning (``latin``, ``cyrillic``, ``cjk`` …); ``None`` without letters.

    Japanese is ``japanese``: it mixes its own scripts with Chinese characters.
    """
    head = text[:_LOOKED_AT]
    if head.isascii():
        return "latin" if any(map(str.isalpha, head)) else None
    letters = Counter(char for char in head if char.isalpha())
    counts: Counter[str] = Counter()
    for letter, count in letters.items():
        counts[unicodedata.name(letter, "unknown").partition(" ")[0].lower()] += count
    if not counts:
        return None
    if any(counts[own] for own in _JAPANESE) and max(counts, key=counts.__getitem__) in (*_JAPANESE, "cjk"):
        return "japanese"
    return min(counts, key=lambda name: (-counts[name], name))
