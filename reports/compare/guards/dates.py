"""Dates, days of the week and times of day: other spellings are no difference, other moments are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from reports.compare.guards.moments import Day, Moments, moments
from reports.compare.model import both
from reports.compare.normal import Plain
from reports.judgement import Finding, Severity

_MOST = 64
"""Different moments of a text that are looked at."""
_SHOWN = 3

T = TypeVar("T")


def guard_dates(baseline: Plain, candidate: Plain) -> Finding | None:
    """BLOCK when each side has a date, a weekday or a time that the other has not, or one side alone a whole date or a time.

    A date that is given in part fits every date with those parts, and 03/04 both of its readings.
    """
    old, new = moments(baseline.prose, baseline.words), moments(candidate.prose, candidate.words)
    for differ, category, what in (
        (_dates(old, new), "text.date", "dates"),
        (_days(old, new), "text.date", "days of the week"),
        (_times(old, new), "text.time", "times"),
    ):
        if differ is not None:
            message = f"{what} differ: the baseline has {_list(differ[0])}, the candidate {_list(differ[1])}"
            evidence = both(baseline.text, candidate.text)
            return Finding(
                comparator="text",
                category=category,
                severity=Severity.BLOCK,
                message=message,
                evidence=evidence,
            )
    return None


Both = tuple[list[str], list[str]]
"""What stands on the baseline's side only, and on the candidate's."""


def _dates(old: Moments, new: Moments) -> Both | None:
    gone, come = _unmatched(old.dates, new.dates, _same_date), _unmatched(new.dates, old.dates, _same_date)
    if not (gone and come):
        # A month by itself is soon said otherwise; a day is not.
        gone, come = [[date for date in side if any(day[2] for day in date)] for side in (gone, come)]
    return ([_date(one) for one in gone], [_date(one) for one in come]) if gone or come else None


def _days(old: Moments, new: Moments) -> Both | None:
    gone, come = sorted(old.weekdays - new.weekdays), sorted(new.weekdays - old.weekdays)
    return (gone, come) if gone and come else None


def _times(old: Moments, new: Moments) -> Both | None:
    gone = _unmatched(old.times, new.times, lambda one, two: not one.isdisjoint(two))
    come = _unmatched(new.times, old.times, lambda one, two: not one.isdisjoint(two))
    return ([_clock(one) for one in gone], [_clock(one) for one in come]) if gone or come else None


def _unmatched(some: Sequence[T], others: Sequence[T], same: Callable[[T, T], bool]) -> list[T]:
    known = set(others)
    return [
        one for one in some[:_MOST] if one not in known and not any(same(one, two) for two in others[:_MOST])
    ]


def _same_date(one: frozenset[Day], two: frozenset[Day]) -> bool:
    return any(_fits(a, b) for a in one for b in two)


def _fits(one: Day, two: Day) -> bool:
    return all(a == b or a is None or b is None for a, b in zip(one, two, strict=True))


def _date(options: Iterable[Day]) -> str:
    return " or ".join(sorted("-".join(f"{part:02}" if part else "…" for part in day) for day in options))


def _clock(options: Iterable[int]) -> str:
    seconds = min(options)
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}" + (f":{seconds % 60:02}" if seconds % 60 else "")


def _list(values: list[str]) -> str:
    return ", ".join(values[:_SHOWN] + ["…"] * (len(values) > _SHOWN)) or "none of its own"
