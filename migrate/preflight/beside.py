"""Two backends' lines side by side: where they differ, and what to change. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from migrate.preflight.lines import Line, Result
from migrate.preflight.traffic import Uses

CHECKS = (
    "name",
    "connect",
    "tls",
    "key",
    "health",
    "models",
    "model",
    "answer",
    "stream",
    "warm",
    "tools",
    "schema",
    "logprobs",
    "seed",
    "usage",
    "other fields",
    "other models",
    "errors",
    "context",
)
"""In the order in which a person would look; fields that the traffic asks with follow."""
_GRAVITY = (Result.FAIL, Result.DIFFERS, Result.NOT_CHECKED, Result.OK)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One check of all backends."""

    check: str
    result: Result
    sides: Mapping[str, Line]
    """By arm; an arm whose preflight ended before this check has none."""
    changes: tuple[str, ...] = ()
    """What to change, each beginning with the arm."""


def beside(arms: Mapping[str, tuple[Line, ...]], traffic: Uses | None = None) -> tuple[Row, ...]:
    """The rows for the lines of each arm. A check that no arm came to has none.

    ``traffic``: what captured requests use. What only the baseline can serve of it is a failure, where it would else be a
    difference; ``None``: nothing is known of the traffic.
    """
    by_arm = {arm: {line.check: line for line in lines} for arm, lines in arms.items()}
    rows = []
    others = dict.fromkeys(
        line.check for lines in arms.values() for line in lines if line.check not in CHECKS
    )
    for check in (*CHECKS, *others):
        sides = {arm: lines[check] for arm, lines in by_arm.items() if check in lines}
        if sides:
            row = _row(check, sides, among=len(arms))
            rows.append(_used(row, traffic) if traffic else row)
    return tuple(rows)


def _row(check: str, sides: dict[str, Line], *, among: int) -> Row:
    result = _result(check, sides, among)
    shown = sides if result in (Result.FAIL, Result.DIFFERS) else {}
    least = min((line.value for line in sides.values() if isinstance(line.value, int)), default=None)
    changes = (
        f"{arm}: {line.change}"
        for arm, line in shown.items()
        if line.change and (line.result is not Result.OK or line.value == least)
    )
    return Row(check=check, result=result, sides=sides, changes=tuple(changes))


def _used(row: Row, traffic: Uses) -> Row:
    """The row in the light of what the traffic uses."""
    line = row.sides.get("candidate")
    if row.result is not Result.DIFFERS or line is None or line.value in (None, "served"):
        return row
    room = line.value if isinstance(line.value, int) else None
    count = traffic.features.get(row.check, 0) if room is None else traffic.beyond(room)
    if not count:
        return row
    words = (
        f"candidate: {count:,} of {traffic.requests:,} captured requests need it, and would fail or differ"
    )
    return replace(row, result=Result.FAIL, changes=(*row.changes, words))


def _result(check: str, sides: dict[str, Line], among: int) -> Result:
    worst = min((line.result for line in sides.values()), key=_GRAVITY.index)
    values = [line.value for line in sides.values()]
    if worst is Result.FAIL:
        return worst
    if len(sides) < among:
        return Result.NOT_CHECKED
    if None in values or among == 1 or check == "warm":
        return worst
    if check == "context":  # a candidate with more room takes whatever the baseline takes
        first, *others = (value for value in values if isinstance(value, int))
        return Result.DIFFERS if any(value < first for value in others) else Result.OK
    return Result.OK if len(set(values)) == 1 else Result.DIFFERS
