"""Measured pairs from anywhere as columns: every value is checked, some thousand rows at a time. Pure.

What is kept is arrays, so that a million pairs take some hundred megabytes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from types import NoneType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from replay.exchange import Outcome
from reports.arrays import of_arrays
from reports.cells import (
    ARMS,
    FLAGS,
    LABEL,
    MEASURES,
    NUMBERS,
    OF_AN_ARM,
    TEXTS,
    Cells,
    InvalidNumber,
    Unreadable,
    refuse,
    shown,
    typed,
)
from reports.columns import Columns
from reports.judgement import Check, Judgement, Verdict
from reports.stats import Floats

MOST_LABELS = 32

_CODE = {outcome.value: code for code, outcome in enumerate(Outcome)}
_NOT_SENT = _CODE[Outcome.NOT_SENT]
_LAST = 1e11
"""Epoch seconds of the year 5138; milliseconds of today are above it, and nothing takes this long."""
_TEXT = np.dtypes.StringDType()


def unjudged(code: str, reason: str) -> Judgement:
    """HOLD on pairs that could not all be read: nothing is judged by half."""
    return Judgement(
        verdict=Verdict.HOLD,
        code=code,
        reason=reason,
        rules=(),
        checks=(Check(code=code, passed=False, message=reason),),
        ledger={"dispatched": 0},
        span_s=0.0,
    )


class Measurements:
    """Measured pairs as they come, chunk by chunk."""

    def __init__(self) -> None:
        self.size = 0
        self._pieces: dict[str, list[NDArray[Any]]] = defaultdict(list)
        self._labels: dict[str, dict[str, int]] = {}

    def add(self, cells: Cells, lines: Sequence[int]) -> None:
        """One chunk; ``lines`` says where each row stands. Raises Unreadable, or InvalidNumber, for the first bad value of a
        column; nothing of the chunk may be judged then."""
        numbers = {name: _numbers(name, cells[name], lines) for name in NUMBERS if name in cells}
        self._put("at", _times(numbers.get("at"), lines))
        for arm in ARMS:
            measured = {key: numbers[f"{arm}.{key}"] for key in MEASURES if f"{arm}.{key}" in numbers}
            self._put(f"{arm}.outcome", _outcomes(arm, cells.get(f"{arm}.outcome"), measured, lines))
            for key in MEASURES:
                self._put(f"{arm}.{key}", measured.get(key, _constant(np.nan, len(lines))))
        for name in FLAGS:
            self._put(name, _flags(name, cells.get(name), lines))
        for name in TEXTS:
            self._put(name, _texts(name, cells.get(name), lines, required=name == "id"))
        self._put("line", np.asarray(lines, dtype=np.int64))
        self._add_labels({name: cells[name] for name in cells if name.startswith(LABEL)}, lines)
        self.size += len(lines)

    def columns(self) -> Columns:
        """All of them, by time, then id: the order of the rows does not matter. They are handed over, and gone from here.

        Raises Unreadable for an id that is given twice.
        """
        if not self.size:
            return of_arrays(np.empty(0), baseline={}, candidate={})
        at = self._whole("at")
        order = self._order(at)

        def taken(name: str) -> NDArray[Any]:
            return self._whole(name)[order]

        def arm(name: str) -> dict[str, NDArray[Any]]:
            return {key: taken(f"{name}.{key}") for key in OF_AN_ARM}

        return of_arrays(
            at[order],
            baseline=arm("baseline"),
            candidate=arm("candidate"),
            repeat=arm("baseline_repeat"),
            differs=taken("differs"),
            repeat_differs=taken("repeat_differs"),
            session=_groups(taken("session")),
            labels={
                name: np.array([*values, None], dtype=object)[taken(LABEL + name)].tolist()
                for name, values in self._labels.items()
            },
        )

    def _whole(self, name: str) -> NDArray[Any]:
        return np.concatenate(self._pieces.pop(name))

    def _put(self, name: str, piece: NDArray[Any]) -> None:
        self._pieces[name].append(piece)

    def _add_labels(self, cells: Cells, lines: Sequence[int]) -> None:
        for name, column in cells.items():
            known = self._labels.setdefault(name.removeprefix(LABEL), {})
            if not self._pieces[name] and self.size:
                self._put(name, _constant(-1, self.size, np.int32))
            words = typed(name, column, lines, (str, int, NoneType), "a text")
            places = [-1 if word is None else known.setdefault(str(word), len(known)) for word in words]
            self._put(name, np.array(places, dtype=np.int32))
        if len(self._labels) > MOST_LABELS:
            raise Unreadable(lines[0], f"more than {MOST_LABELS} labels by now; a label is a kind of request")
        for label in self._labels:
            if LABEL + label not in cells:
                self._put(LABEL + label, _constant(-1, len(lines), np.int32))

    def _order(self, at: Floats) -> NDArray[np.int64]:
        ids, lines = self._whole("id"), self._whole("line")
        order = np.argsort(ids, kind="stable")
        ordered = ids[order]
        if (again := np.flatnonzero(ordered[1:] == ordered[:-1])).size:
            first, second = lines[order[again[0]]], lines[order[again[0] + 1]]
            raise Unreadable(int(second), f"id {shown(ordered[again[0]])} is that of line {first} too")
        by_time: NDArray[np.int64] = order[np.argsort(at[order], kind="stable")]
        return by_time


def _numbers(name: str, values: Sequence[Any], lines: Sequence[int]) -> Floats:
    """None becomes NaN. A NaN that was given is refused, or it would pass every comparison in silence."""
    what = "a number of seconds" if name == "at" or name.endswith("_s") else "a number"
    column: Floats = np.array(typed(name, values, lines, (float, int, NoneType), what), dtype=np.float64)
    most = np.inf if name == "at" else _LAST  # of a time something else is said
    suspicious = np.flatnonzero(~((column >= 0) & (column < most)))
    for place in suspicious.tolist():
        if values[place] is not None:
            bound = "below 1e11" if most <= column[place] < np.inf else "finite and not negative"
            raise InvalidNumber(lines[place], f"{name} is {values[place]!r}; a number must be {bound}")
    return column


def _times(at: Floats | None, lines: Sequence[int]) -> Floats:
    """Every pair has a time, and it is in seconds."""
    if at is None or np.isnan(at).any():
        place = 0 if at is None else int(np.isnan(at).argmax())
        raise Unreadable(lines[place], "at is missing")
    if (late := at > _LAST).any():
        place = int(late.argmax())
        raise Unreadable(
            lines[place],
            f"at is {at[place]:.17g}, which looks like milliseconds; it is in seconds since 1970, UTC",
        )
    return at


def _outcomes(
    arm: str, values: Sequence[Any] | None, measured: Mapping[str, Floats], lines: Sequence[int]
) -> NDArray[np.int8]:
    """An arm of which nothing is said was not sent; one of which something is said has an outcome."""
    name = f"{arm}.outcome"
    cells = [None] * len(lines) if values is None else values
    typed(name, cells, lines, (str, NoneType), "a word")
    absent = np.array([word is None for word in cells], dtype=np.bool_)
    codes = np.array([-1 if word is None else _CODE.get(word, -1) for word in cells], dtype=np.int8)
    unknown = (codes < 0) & ~absent
    for numbers in measured.values():
        unknown |= absent & ~np.isnan(numbers)
    if unknown.any():
        refuse(name, cells, lines, unknown.tolist(), f"one of {', '.join(_CODE)}")
    codes[absent] = _NOT_SENT
    return codes


def _flags(name: str, values: Sequence[Any] | None, lines: Sequence[int]) -> NDArray[np.int8]:
    if values is None:
        return _constant(-1, len(lines), np.int8)
    typed(name, values, lines, (bool, NoneType), "true or false")
    return np.array([-1 if value is None else value for value in values], dtype=np.int8)


def _texts(name: str, values: Sequence[Any] | None, lines: Sequence[int], *, required: bool) -> NDArray[Any]:
    """Texts, or whole numbers as their digits; an empty text is none."""
    words = [None] * len(lines) if values is None else values
    typed(name, words, lines, (str, int, NoneType), "a text")
    kept = ["" if word is None else str(word) for word in words]
    if required and not all(kept):
        place = kept.index("")
        raise Unreadable(lines[place], f"{name} is missing")
    return np.array(kept, dtype=_TEXT)


def _groups(texts: NDArray[Any]) -> NDArray[np.int64]:
    """A number for each text, the same for equal ones; -1 where it is empty."""
    order = np.argsort(texts, kind="stable")
    ordered = texts[order]
    numbers = np.empty(len(texts), dtype=np.int64)
    numbers[order] = np.cumsum(np.append(False, ordered[1:] != ordered[:-1]))
    return np.where(texts == "", -1, numbers)


def _constant(value: float, size: int, dtype: type = np.float64) -> NDArray[Any]:
    """An array of one value that takes no memory."""
    return np.broadcast_to(np.array(value, dtype=dtype), (size,))
