"""Numbers with their units and currencies: what a reader would act on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from decimal import Decimal

from reports.compare.guards.moments import moments
from reports.compare.guards.quantities import Quantity, quantities
from reports.compare.guards.units import in_base, may_be_same
from reports.compare.model import both
from reports.compare.normal import Plain
from reports.judgement import Finding, Severity

_LONGEST = 27
_SHOWN = 4

Grouped = dict[str, list[Quantity]]
"""Quantities by value."""


def guard_numbers(baseline: Plain, candidate: Plain) -> Finding | None:
    """BLOCK when a number, or its unit, stands on one side only. Order and repetition do not count, nor do numbers of dates."""
    old_dates, new_dates = moments(baseline.prose, baseline.words), moments(candidate.prose, candidate.words)
    old, new = (
        _grouped(quantities(old_dates.rest, baseline.words)),
        _grouped(quantities(new_dates.rest, candidate.words)),
    )
    gone = [value for value in old if value not in new and value not in new_dates.numbers]
    come = [value for value in new if value not in old and value not in old_dates.numbers]
    if gone and come:
        gone, come = _unconverted(gone, old, come, new)
    if not (gone and come):
        # A spelled-out number that has no rival ("the two of them") is a way of speaking.
        gone, come = _digits(gone, old), _digits(come, new)
    if gone or come:
        message = f"numbers differ: the baseline has {_list(gone)}, the candidate {_list(come)}"
        return _finding("text.number", message, baseline, candidate)
    for value, was in old.items():
        now = new.get(value, [])
        if was != now and (units := _rivals(was, now)):
            message = f"units of {value[:_LONGEST]} differ: baseline {units[0]}, candidate {units[1]}"
            return _finding("text.unit", message, baseline, candidate)
    return None


def _grouped(found: Iterator[Quantity]) -> Grouped:
    groups: Grouped = {}
    for quantity in found:
        groups.setdefault(quantity.value, []).append(quantity)
    return groups


def _digits(values: list[str], groups: Grouped) -> list[str]:
    return [value for value in values if not all(quantity.word for quantity in groups[value])]


def _unconverted(gone: list[str], old: Grouped, come: list[str], new: Grouped) -> tuple[list[str], list[str]]:
    """What is left when 90 minutes and 1.5 hours are one amount."""
    was, now = _amounts(gone, old), _amounts(come, new)
    common = set(was.values()) & set(now.values())
    return [value for value in gone if was.get(value) not in common], [
        value for value in come if now.get(value) not in common
    ]


def _amounts(values: list[str], groups: Grouped) -> dict[str, tuple[Decimal, str]]:
    found = {value: in_base(value, groups[value][0].unit) for value in values}
    return {value: amount for value, amount in found.items() if amount is not None}


def _rivals(was: list[Quantity], now: list[Quantity]) -> tuple[str, str] | None:
    """The units of one number that each side has more often than the other, when they cannot be the same."""
    old, new = (Counter(one.unit for one in side if one.unit) for side in (was, now))
    gone, come = sorted(old - new), sorted(new - old)
    if not (gone and come) or any(may_be_same(one, two) for one in gone for two in come):
        return None
    return ", ".join(gone), ", ".join(come)


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
