"""Which script a text is written in, and which language as far as it can be told. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter

from reports.language import language

_LOOKED_AT = 1_000
"""Characters that are looked at: enough to tell, and bounded work for any text."""
_JAPANESE = ("hiragana", "katakana")
_HEAD = 300
"""Characters whose words are looked at for the language."""
_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")


def spoken(text: str) -> str | None:
    """The language of a text where its small words tell it (``German``), else its script (``latin script``).

    ``None`` without letters.
    """
    found = language(frozenset(_WORD.findall(text[:_HEAD].lower())))
    if found is not None:
        return found
    written = script(text)
    return None if written is None else f"{written} script"


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
