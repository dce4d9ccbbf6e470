"""A run as it went: errors, latency and disagreement in pieces of time. Descriptions for people, not evidence. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from replay.exchange import Arm
from reports.columns import Answers, Columns
from reports.stats import Flags, Floats
from reports.times import iso

_MOST, _PAIRS = 60, 40
"""Pieces, and how many pairs they should hold on average."""
_MINUTE, _HOUR, _DAY = 60.0, 3_600.0, 86_400.0
_WIDTHS = (
    *(1.0, 2.0, 5.0, 10.0, 15.0, 30.0),
    *(minutes * _MINUTE for minutes in (1, 2, 5, 10, 15, 30)),
    *(hours * _HOUR for hours in (1, 2, 3, 6, 12)),
)
_FEWEST = {"errors": 1, "disagreement": 5, "p50": 5, "p95": 20}
"""Requests of a piece below which nothing is said of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One measure of one arm, a value for each piece of time."""

    measure: str
    """``errors`` or ``disagreement``, shares from 0 to 1, or ``p50`` or ``p95`` of end to end, seconds."""
    arm: Arm
    """Disagreement is with the baseline: of the candidate, or of the baseline's repeat, which is the noise."""
    values: tuple[float | None, ...]
    """``None`` where there are too few requests."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """All pairs of a run by the time of their dispatch, those that are no evidence too."""

    start: str
    """Of the first piece, ISO 8601."""
    width_s: float
    pairs: tuple[int, ...]
    """Of each piece."""
    series: tuple[Series, ...]
    """Those that have any value."""


def timeline(table: Columns) -> Timeline | None:
    """At most 60 pieces; ``None`` of pairs that all came within a second, or of none."""
    if not len(table) or table.at[-1] - table.at[0] < 1:
        return None
    width = _width(float(table.at[-1] - table.at[0]), max(2, min(_MOST, len(table) // _PAIRS)))
    start = math.floor(table.at[0] / width) * width
    piece = ((table.at - start) // width).astype(np.int64)
    count = int(piece[-1]) + 1
    series = (
        Series(measure=name, arm=arm, values=values) for name, arm, values in _series(table, piece, count)
    )
    return Timeline(
        start=iso(start),
        width_s=width,
        pairs=tuple(np.bincount(piece, minlength=count).tolist()),
        series=tuple(one for one in series if any(value is not None for value in one.values)),
    )


def _width(span: float, most: int) -> float:
    """A round one, for at most so many pieces."""
    found = next((width for width in _WIDTHS if span / width <= most - 1), None)
    return found or math.ceil(span / (most - 1) / _DAY) * _DAY


Values = tuple[float | None, ...]


def _series(table: Columns, piece: NDArray[np.int64], count: int) -> Iterator[tuple[str, Arm, Values]]:
    def shares(name: str, known: Flags, of: Flags) -> Values:
        all_, some = (np.bincount(piece[rows], minlength=count) for rows in (known, known & of))
        return tuple(
            float(part / whole) if whole >= _FEWEST[name] else None
            for part, whole in zip(some.tolist(), all_.tolist(), strict=True)
        )

    for arm, answers in ((Arm.BASELINE, table.baseline), (Arm.CANDIDATE, table.candidate)):
        yield "errors", arm, shares("errors", ~answers.missing, answers.failed)
        for name, level in (("p50", 0.50), ("p95", 0.95)):
            yield name, arm, _quantiles(answers, piece, count, level, _FEWEST[name])
    yield "disagreement", Arm.CANDIDATE, shares("disagreement", table.differs >= 0, table.differs > 0)
    repeated = table.repeat_differs >= 0
    yield "disagreement", Arm.BASELINE_REPEAT, shares("disagreement", repeated, table.repeat_differs > 0)


def _quantiles(
    answers: Answers, piece: NDArray[np.int64], count: int, level: float, fewest: int
) -> tuple[float | None, ...]:
    """Nearest rank, of the answered requests of each piece."""
    known = np.flatnonzero(answers.answered & ~np.isnan(answers.e2e))
    cuts = np.searchsorted(piece[known], np.arange(1, count))
    return tuple(_quantile(answers.e2e[rows], level, fewest) for rows in np.split(known, cuts))


def _quantile(seconds: Floats, level: float, fewest: int) -> float | None:
    if seconds.size < fewest:
        return None
    rank = math.ceil(level * seconds.size - 1e-9) - 1
    return float(np.partition(seconds, rank)[rank])
