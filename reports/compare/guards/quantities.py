"""Numbers with their units and currencies, as they stand in a text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache

from reports.compare.guards.units import CURRENCIES, SCALES, WORDS, unit_of

_DIGITS = re.compile(r"\d+(?:[.:]\d+)*")
_BEHIND = re.compile(
    r"([^\W\d_]+)|[ -]?(?:degrees? ?([CFcf]|[Cc]elsius|[Ff]ahrenheit)\b|°\s?([CFcf])\b|(per cent\b|[%$€£¥₹₩₽]|[^\W\d_]+))"
)
"""What stands behind a number: glued letters, or a unit with at most one space or hyphen between."""
_SCALE_WORDS = ("hundred", "thousand", "million", "billion", "trillion")
_NUMBER_WORD = "|".join(sorted((*WORDS, *_SCALE_WORDS), key=len, reverse=True))
_SPELLED = re.compile(rf"(?:{_NUMBER_WORD})\b(?:(?:[ -]| and )(?:{_NUMBER_WORD})\b)*")
_SPELLABLE = frozenset((*WORDS, *_SCALE_WORDS)) - {"one"}
_ORDINALS = frozenset({"st", "nd", "rd", "th"})
_SYMBOLS = frozenset("$€£¥₹₩₽")
_WORDS = 16
"""Words of one spelled number; a run of more is not one."""
_BEFORE_MINUS = ("", *" (=$€£¥₹")
_BEFORE, _BEHIND_IT = 14, 40
"""Characters around a number that can belong to it."""
_LONGEST = 27
"""Digits beyond which a number is compared as it is spelled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantity:
    """A number in a text. ``value`` is canonical: ``5``, ``42.1``, ``m8``."""

    value: str
    unit: str | None = None
    """Canonical unit or currency; ``None``: none was given."""
    word: bool = False
    """Spelled out, as in "three"."""


def quantities(text: str, words: frozenset[str]) -> Iterator[Quantity]:
    """The numbers in a normalised text; ``words`` are its words in lower case. Those in digits come first."""
    for match in _DIGITS.finditer(text):
        start, end = match.span()
        yield _in_digits(text[max(0, start - _BEFORE) : start], match[0], text[end : end + _BEHIND_IT])
    if not words.isdisjoint(_SPELLABLE):
        for match in _SPELLED.finditer(text.lower()):
            if match.start() == 0 or not text[match.start() - 1 : match.start()].isalnum():
                yield from _in_words(text, match)


@lru_cache(maxsize=1024)
def _in_digits(before: str, digits: str, behind: str) -> Quantity:
    """Both answers mostly hold the same numbers in the same words, so the last readings are kept."""
    letters = _letters_at_the_end(before)
    currency = CURRENCIES.get(letters) if letters else _currency_at_the_end(before)
    if letters and currency is None:
        return Quantity(value=letters.lower() + digits)
    if len(digits) > _LONGEST or digits.count(".") > 1 or ":" in digits or not digits.isascii():
        # Versions, addresses, ratios, and numbers too long to be anything but a name.
        return Quantity(value=digits)
    value = _plain(digits)
    if before.endswith("-") and before[-2:-1] in _BEFORE_MINUS:
        value = "-" + value
    return _measured(behind, value, currency)


def _letters_at_the_end(before: str) -> str:
    """Letters glued to a number, as in M8: a name, or the code of a currency."""
    at = len(before)
    while at and before[at - 1].isalpha():
        at -= 1
    return before[at:]


def _currency_at_the_end(before: str) -> str | None:
    """The sign or the code before a number, with a space and a sign of plus or minus between at most."""
    before = before.removesuffix("-").removesuffix("+").removesuffix(" ")
    last = before[-1:]
    if last in _SYMBOLS:
        return CURRENCIES.get(before[-3:]) or CURRENCIES.get(before[-2:]) or CURRENCIES.get(last)
    return CURRENCIES.get(before[-3:]) if last.isupper() and not before[-4:-3].isalnum() else None


def _measured(text: str, value: str, currency: str | None, word: bool = False) -> Quantity:
    """The number with the scale and the unit that stand behind it in ``text``: "5 million dollars", "$5m", "5-hour"."""
    match = _BEHIND.match(text)
    glued, degrees, sign, following = match.groups() if match else (None, None, None, None)
    name = glued or following or ""
    if match and (scale := _scale(glued, following, currency)):
        return _measured(text[match.end() :], _plain(f"{Decimal(value) * scale:f}"), currency, word)
    if (
        match is None
        or currency
        or glued in _ORDINALS
        or (glued and text[match.end() : match.end() + 1].isdigit())
    ):
        return Quantity(value=value, unit=currency, word=word)
    letter = degrees or sign
    return Quantity(value=value, unit=f"°{letter[0].lower()}" if letter else _unit(name), word=word)


def _scale(glued: str | None, following: str | None, currency: str | None) -> int | None:
    """Letters are a scale only where they touch the number, and a small m or b is one only of money."""
    if glued:
        return None if len(glued) > 2 or (glued in ("m", "b") and not currency) else SCALES.get(glued.lower())
    return SCALES.get(following.lower()) if following and len(following) > 2 else None


def _unit(word: str) -> str | None:
    return "%" if word == "per cent" else unit_of(word)


def _plain(digits: str) -> str:
    if "." in digits:
        digits = digits.rstrip("0").rstrip(".")
    return digits.lstrip("0").replace(".", "0.", 1) if digits.startswith("0.") else digits.lstrip("0") or "0"


def _in_words(text: str, match: re.Match[str]) -> Iterator[Quantity]:
    """Numbers of a run of number words: "one hundred and five" is one, "two three" are two."""
    words = re.findall(r"[a-z]+", match[0].lower())
    if words[0] not in WORDS and text[max(0, match.start() - 2) : match.start()][:1].isdigit():
        return  # the "million" of "1.2 million" was read with its digits
    values = list(_values(words))
    for value in values[:-1]:
        yield Quantity(value=str(value), word=True)
    if values and not (values[-1] == 1 and match[0].lower() == "one"):
        yield _measured(text[match.end() : match.end() + _BEHIND_IT], str(values[-1]), None, word=True)


def _values(words: list[str]) -> Iterator[int]:
    total, below, last = 0, 0, 0
    for word in words[:_WORDS]:
        if word == "and":
            if last < 100:
                yield from _said(total + below)
                total, below, last = 0, 0, 0
            continue
        size = WORDS.get(word) or SCALES[word]
        if size == 100:
            below = max(1, below) * 100
        elif size > 100:
            total, below = total + max(1, below) * size, 0
        elif last == 0 or last >= 100 or (last >= 20 and size < 10):
            below += size
        else:
            yield from _said(total + below)
            total, below = 0, size
        last = size
    yield from _said(total + below)


def _said(value: int) -> tuple[int, ...]:
    return (value,) if value else ()
