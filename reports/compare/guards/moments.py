"""Dates, days of the week and times of day as they stand in a text, many spellings in one."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_HINTS = frozenset(
    """january february march april may june july august september october november december sept
    monday tuesday wednesday thursday friday saturday sunday mondays tuesdays wednesdays thursdays fridays saturdays sundays
    tues thurs""".split()  # noqa: SIM905
) | {*_MONTHS, *_DAYS}
_HOURS = {"noon": 43_200, "midday": 43_200, "midnight": 0}

# A pattern that begins with letters or digits is looked for much faster than one that begins with a look behind: so the
# first character comes first, and what stands before it is looked at then.
_MONTH = (
    r"(?:j(?<!\w.)(?:an(?:uary)?|une?|uly?)|f(?<!\w.)eb(?:ruary)?|m(?<!\w.)(?:ar(?:ch)?|ay)|a(?<!\w.)(?:pr(?:il)?|ug(?:ust)?)"
    r"|s(?<!\w.)ept?(?:ember)?|o(?<!\w.)ct(?:ober)?|n(?<!\w.)ov(?:ember)?|d(?<!\w.)ec(?:ember)?)\b\.?"
)
_YEAR = r"(?:1[5-9]|20|21)\d\d\b"
_DAY = r"\d(?<!\w.)\d?(?:st|nd|rd|th)?\b"
_YEAR_FIRST = re.compile(r"\d(?<![\w.,/:-].)\d{3}([-/.])(\d{1,2})\1(\d{1,2})(?:t(?=\d\d:)|(?![\w/]|[-.:]\d))")
_YEAR_LAST = re.compile(r"(\d(?<![\w.,/:-].)\d?)([-/.])(\d{1,2})\2(\d{4}|(?<=/)\d\d)(?![\w/]|[-.:]\d)")
_TO = r" ?(?:-|to|and|through) ?(?:the )?"
_DAY_MONTH = re.compile(rf"(?:({_DAY}){_TO})?({_DAY})(?: of)?[ -]({_MONTH})(?:,?[ -]({_YEAR}))?")
_MONTH_DAY = re.compile(rf"({_MONTH}) (?:the )?({_DAY})(?:{_TO}({_DAY}))?(?![:.]\d)(?:,? ({_YEAR}))?")
_MONTH_YEAR = re.compile(rf"({_MONTH}),? ({_YEAR})")
_MONTH_ALONE = re.compile(
    r"(?:january|february|april|june|july|august|september|october|november|december)\b"
    r"|(?:in|of|by|since|until|during|last|next|this|early|late) (?:march|may)\b"
)
_WEEKDAY = re.compile(
    r"(?:m(?<!\w.)on|t(?<!\w.)ue(?:s)?|w(?<!\w.)ed(?:nes)?|t(?<!\w.)hu(?:rs)?|f(?<!\w.)ri|s(?<!\w.)at(?:ur)?|s(?<!\w.)un)"
    r"(?:days?\b|\b(?=[.,]? ?\d|,))"
)
_HALF_DAY = re.compile(
    r"(\d(?<![\w.,:/$].)\d?)(?:[:h](\d\d)(?::(\d\d)(?:\.\d+)?)?)? ?([ap])(?:\.\s?m\b\.?|m\b)"
)
_CLOCK = re.compile(r"(\d(?<![\w.,:/$].)\d?)[:h](\d\d)(?::(\d\d)(?:\.\d+)?)?(?![\w:]|\.\d)")
_HOUR = re.compile(r"(?:noon|midday|midnight)\b")
_DIGITAL = re.compile(r"\d(?:[-/.]\d{1,2}[-/.]\d|[:h]\d| ?[ap]\.?\s?m\b)")

_BLOT = "\x00"
_BLOTS = re.compile(r"\x00+")

T = TypeVar("T")
Day = tuple[int | None, int | None, int | None]
"""Year, month and day, as far as they were given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moments:
    """What a text says of when. A date or a time is the set of what its spelling may mean."""

    dates: tuple[frozenset[Day], ...] = ()
    weekdays: frozenset[str] = frozenset()
    times: tuple[frozenset[int], ...] = ()
    """Seconds after midnight."""
    numbers: frozenset[str] = frozenset()
    """Days and years of the dates, as plain numbers."""
    rest: str
    """The text without them."""


@lru_cache(maxsize=4)
def moments(text: str, words: frozenset[str]) -> Moments:
    """The moments in a normalised text, whose words in lower case are ``words``. Two guards ask, so the last are kept."""
    left = text.lower()
    named = not words.isdisjoint(_HINTS)
    if len(left) != len(text) or not (named or not words.isdisjoint(_HOURS) or _DIGITAL.search(left)):
        return Moments(rest=text)
    dates: dict[frozenset[Day], None] = {}
    weekdays: dict[frozenset[str], None] = {}
    times: dict[frozenset[int], None] = {}
    left = _taken(left, _YEAR_FIRST, _year_first, dates)
    left = _taken(left, _YEAR_LAST, _year_last, dates)
    if named:
        left = _taken(left, _DAY_MONTH, lambda m: _named(m[3], m[4], m[1], m[2]), dates)
        left = _taken(left, _MONTH_DAY, lambda m: _named(m[1], m[4], m[2], m[3]), dates)
        left = _taken(left, _MONTH_YEAR, lambda m: _named(m[1], m[2], None), dates)
        left = _taken(left, _MONTH_ALONE, lambda m: _named(m[0].rpartition(" ")[2], None, None), dates)
        left = _taken(left, _WEEKDAY, lambda m: [{m[0][:3]}], weekdays)
    left = _taken(left, _HALF_DAY, _half_day, times)
    left = _taken(left, _CLOCK, _clock, times)
    left = _taken(left, _HOUR, lambda m: [{_HOURS[m[0]]}], times)
    return Moments(
        dates=tuple(dates),
        weekdays=frozenset(day for days in weekdays for day in days),
        times=tuple(times),
        numbers=frozenset(str(part) for date in dates for y, _, d in date for part in (y, d) if part),
        rest=_rest(text, left),
    )


def _taken(
    text: str,
    pattern: re.Pattern[str],
    meaning: Callable[[re.Match[str]], Sequence[set[T]]],
    found: dict[frozenset[T], None],
) -> str:
    """The text with what was found blotted out, so that nothing is read twice; a match that means nothing stays.

    ``meaning`` gives the moments of a match, each as the set of what it may be.
    """

    def blotted(match: re.Match[str]) -> str:
        meant = [frozenset(options) for options in meaning(match) if options]
        found.update(dict.fromkeys(meant))
        return _BLOT * len(match[0]) if meant else match[0]

    return pattern.sub(blotted, text)


def _rest(text: str, left: str) -> str:
    """The text without what is blotted out in ``left``, which is as long."""
    parts, at = [], 0
    for blot in _BLOTS.finditer(left):
        parts.append(text[at : blot.start()])
        at = blot.end()
    return "; ".join((*parts, text[at:]))


def _year_first(match: re.Match[str]) -> list[set[Day]]:
    return [_days((int(match[0][:4]), int(match[2]), int(match[3])))]


def _year_last(match: re.Match[str]) -> list[set[Day]]:
    """03/04/2025 may be in March or in April."""
    one, two, year = int(match[1]), int(match[3]), int(match[4])
    year = year if len(match[4]) == 4 else year + (2000 if year < 70 else 1900)
    return [_days((year, one, two), (year, two, one))]


def _days(*options: tuple[int, int, int]) -> set[Day]:
    return {(year, month, day) for year, month, day in options if 1 <= month <= 12 and 1 <= day <= 31}


def _named(month: str, year: str | None, *days: str | None) -> list[set[Day]]:
    """The days of a month, two of them for "March 3-5"; the month itself without any."""
    known = int(year) if year else None, _MONTHS.index(month[:3]) + 1
    numbers = [int(day.rstrip("stndrh")) for day in days if day]
    return [{(*known, number)} for number in numbers if 1 <= number <= 31] if numbers else [{(*known, None)}]


def _half_day(match: re.Match[str]) -> list[set[int]]:
    hour = int(match[1])
    rest = _within_hour(match[2], match[3])
    return [{(hour % 12 + 12 * (match[4] == "p")) * 3600 + rest}] if 1 <= hour <= 12 and rest >= 0 else []


def _clock(match: re.Match[str]) -> list[set[int]]:
    """6:30 may be in the evening; 06:30 and 18:30 may not."""
    hour, rest = int(match[1]), _within_hour(match[2], match[3])
    if hour > 24 or rest < 0:
        return []
    hours = {hour % 24, (hour + 12) % 24} if 1 <= hour <= 12 and match[1][0] != "0" else {hour % 24}
    return [{one * 3600 + rest for one in hours}]


def _within_hour(minute: str | None, second: str | None) -> int:
    """Seconds; negative where there are no such minutes or seconds."""
    minutes, seconds = int(minute or 0), int(second or 0)
    return minutes * 60 + seconds if minutes < 60 and seconds < 60 else -1
