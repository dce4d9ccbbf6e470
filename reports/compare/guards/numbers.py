"""Numbers with their units and currencies: what a reader would act on."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

from reports.compare.guards.units import CURRENCIES, SCALES, WORDS, unit_of
from reports.compare.model import both
from reports.compare.normal import Plain
from reports.judgement import Finding, Severity

_TOKEN = re.compile(r"\d+(?:[.:]\d+)*|[^\W\d_]+|[$€£¥₹%°]|\S")
_HALF_DAY = re.compile(r"\b([ap])\.\s?m\b\.?", re.IGNORECASE)
_ORDINALS = frozenset({"st", "nd", "rd", "th"})
_LONGEST = 27
"""Digits beyond which a number is compared as it is spelled."""
_SHOWN = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantity:
    """A number in a text. ``value`` is canonical: ``5``, ``42.1``, ``18:30``, ``m8``."""

    value: str
    unit: str | None = None
    """Canonical unit or currency; ``None``: none was given."""
    word: bool = False
    """Spelled out, as in "three"."""


def guard_numbers(baseline: Plain, candidate: Plain) -> Finding | None:
    """BLOCK when a number, or its unit, stands on one side only. Order and repetition do not count."""
    old, new = _grouped(quantities(baseline.text)), _grouped(quantities(candidate.text))
    gone, come = _without(old, new), _without(new, old)
    if not (gone and come):
        # A spelled-out number that has no rival ("the two of them") is a way of speaking.
        gone, come = _digits(gone, old), _digits(come, new)
    if gone or come:
        message = f"numbers differ: the baseline has {_list(gone)}, the candidate {_list(come)}"
        return _finding("text.number", message, baseline, candidate)
    for value, units in old.items():
        if value in new and _conflict(_units(units), _units(new[value])):
            message = f"units of {value} differ: baseline {_names(units)}, candidate {_names(new[value])}"
            return _finding("text.unit", message, baseline, candidate)
    return None


def quantities(text: str) -> Iterator[Quantity]:
    """The numbers in a normalised text, in order."""
    tokens = list(_TOKEN.finditer(_HALF_DAY.sub(r"\1m", text)))
    at = 0
    while at < len(tokens):
        word = tokens[at][0]
        if word[0].isdigit():
            quantity, at = _number(tokens, at)
            yield quantity
        elif word.lower() in WORDS and not _touches(tokens, at):
            quantity, at = _spelled(tokens, at)
            yield quantity
        else:
            at += 1


def _number(tokens: list[re.Match[str]], at: int) -> tuple[Quantity, int]:
    before, text = _word(tokens, at - 1), tokens[at][0]
    if before.isalpha() and _touches(tokens, at, after=False) and before not in CURRENCIES:
        return Quantity(value=before.lower() + text), at + 1
    value, end = _value(tokens, at), at + 1
    if value is None:
        return Quantity(value=text), end
    following = _word(tokens, end)
    if following.lower() in ("am", "pm") and (clock := _clock(text, following)):
        return Quantity(value=clock), end + 1
    if ":" in text:
        return Quantity(value=_clock(text, "") or text), end
    if following in _ORDINALS and _touches(tokens, end, after=False):
        return Quantity(value=_plain(value)), end + 1
    return _measured(tokens, at, end, value)


def _measured(
    tokens: list[re.Match[str]], at: int, end: int, value: Decimal, word: bool = False
) -> tuple[Quantity, int]:
    """The scale and the unit around a number: "5 million dollars", "$5m", "USD 5"."""
    following = _word(tokens, end)
    touching = _touches(tokens, end, after=False)
    before = _word(tokens, at - 1 - (_word(tokens, at - 1) in ("-", "+")))
    unit = CURRENCIES.get(before)
    scale = (
        SCALES.get(following.upper() if unit else following) if touching else SCALES.get(following.lower())
    )
    if scale is not None and (touching or len(following) > 2):
        value, end = value * scale, end + 1
        following = _word(tokens, end)
    if unit is None:
        unit = unit_of("°" + _word(tokens, end + 1) if following == "°" else following)
        end += (unit is not None) + (following == "°")
    return Quantity(value=_plain(value), unit=unit, word=word), end


def _spelled(tokens: list[re.Match[str]], at: int) -> tuple[Quantity, int]:
    value, end = WORDS[tokens[at][0].lower()], at + 1
    joint = end + (_word(tokens, end) == "-")
    unit = _word(tokens, joint).lower()
    units = 1 if unit == "one" else WORDS.get(unit)
    if value >= 20 and units is not None and units < 10:
        value, end = value + units, joint + 1
    return _measured(tokens, at, end, Decimal(value), word=True)


def _value(tokens: list[re.Match[str]], at: int) -> Decimal | None:
    """``None`` for versions, addresses and numbers too long to be anything but a name."""
    text = tokens[at][0]
    if len(text) > _LONGEST or text.count(".") > 1 or not text.isascii():
        return None
    if ":" in text:
        return Decimal(0)
    return -Decimal(text) if _negative(tokens, at) else Decimal(text)


def _negative(tokens: list[re.Match[str]], at: int) -> bool:
    """A minus sign, not the dash of a range or of a name."""
    if _word(tokens, at - 1) != "-" or not _touches(tokens, at, after=False):
        return False
    before = tokens[at - 2] if at >= 2 else None
    return before is None or before.end() < tokens[at - 1].start() or before[0] in "(=$€£¥₹"


def _clock(text: str, half: str) -> str | None:
    """A time of day as HH:MM; ``None`` when it is none."""
    hour, _, minute = text.partition(":")
    if not (hour.isdigit() and len(hour) <= 2 and (minute or "0").isdigit() and len(minute) in (0, 2)):
        return None
    number = int(hour)
    if half:
        number = number % 12 + 12 * (half.lower() == "pm")
    return f"{number:02}:{minute or '00'}"


def _plain(value: Decimal) -> str:
    text = f"{value:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _word(tokens: list[re.Match[str]], at: int) -> str:
    return tokens[at][0] if 0 <= at < len(tokens) else ""


def _touches(tokens: list[re.Match[str]], at: int, after: bool = True) -> bool:
    """Whether a token is glued to a letter or digit before it, or (``after``) behind it."""
    if not 0 <= at < len(tokens):
        return False
    token, last, following = tokens[at], _word(tokens, at - 1), _word(tokens, at + 1)
    glued = bool(last) and tokens[at - 1].end() == token.start() and (last[-1].isalnum() or last in "-°$€£¥₹")
    if not after:
        return glued
    return (glued and last != "-") or (
        bool(following) and following[0].isdigit() and token.end() == tokens[at + 1].start()
    )


Grouped = dict[str, list[Quantity]]


def _grouped(found: Iterator[Quantity]) -> Grouped:
    groups: Grouped = {}
    for quantity in found:
        groups.setdefault(quantity.value, []).append(quantity)
    return groups


def _without(one: Grouped, two: Grouped) -> list[str]:
    return [value for value in one if value not in two]


def _digits(values: list[str], groups: Grouped) -> list[str]:
    return [value for value in values if not all(quantity.word for quantity in groups[value])]


def _units(quantities: list[Quantity]) -> set[str]:
    return {quantity.unit for quantity in quantities if quantity.unit is not None}


def _conflict(one: set[str], two: set[str]) -> bool:
    return bool(one) and bool(two) and one.isdisjoint(two)


def _names(quantities: list[Quantity]) -> str:
    return ", ".join(sorted(_units(quantities)))


def _list(values: list[str]) -> str:
    shown = [value[:_LONGEST] for value in values[:_SHOWN]]
    return ", ".join(shown + ["…"] * (len(values) > _SHOWN)) or "none of its own"


def _finding(category: str, message: str, baseline: Plain, candidate: Plain) -> Finding:
    return Finding(
        comparator="text",
        category=category,
        severity=Severity.BLOCK,
        message=message,
        evidence=both(baseline.text, candidate.text),
    )
