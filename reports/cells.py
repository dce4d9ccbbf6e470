"""Rows of measured pairs as *cells*: lists of equal length by dotted name (``at``, ``baseline.outcome``, ``labels.route`` …), and
None where there is no value. Names are checked here, values in ``reports.measured``. Pure.
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from types import NoneType
from typing import Any, NoReturn

from reports.render.text import plain

ARMS = ("baseline", "candidate", "baseline_repeat")
MEASURES = ("e2e_s", "ttft_s", "output_tokens")
OF_AN_ARM = ("outcome", *MEASURES)
TEXTS = ("id", "session")
FLAGS = ("differs", "repeat_differs")
NUMBERS = ("at", *(f"{arm}.{measure}" for arm in ARMS for measure in MEASURES))
LABEL = "labels."
"""Before the name of a label."""
NAMES = (*TEXTS, *FLAGS, *(f"{arm}.outcome" for arm in ARMS), *NUMBERS)
"""All names of cells but those of labels."""

_NESTED = (*ARMS, "labels")
_KEYS = ("id", "at", "session", *_NESTED, *FLAGS)
_LONGEST = 60
_WORDS = {"": None, "true": True, "false": False}

Cells = Mapping[str, Sequence[Any]]


class Unreadable(ValueError):
    """A row that holds no measured pair; ``line`` counts from 1, ``what`` is one line for a person."""

    code = "unreadable"

    def __init__(self, line: int, what: str) -> None:
        self.line = line
        self.what = plain(what)
        super().__init__(f"{line}: {self.what}")


class InvalidNumber(Unreadable):
    """A number that nothing can have measured: NaN, infinite or negative."""

    code = "invalid_number"


def of_records(records: Sequence[Any], lines: Sequence[int]) -> dict[str, Sequence[Any]]:
    """The cells of JSON objects, one for each of ``lines``. Raises Unreadable for what is none, and for unknown keys."""
    for line, record in zip(lines, records, strict=True):
        if type(record) is not dict:
            raise Unreadable(line, f"{shown(record)} is no JSON object")
    present = _known(records, lines, _KEYS, "")
    return of_table({key: [record.get(key) for record in records] for key in present}, lines)


def of_table(table: Cells, lines: Sequence[int]) -> dict[str, Sequence[Any]]:
    """The cells of columns, some of which may hold objects: ``baseline`` in place of ``baseline.outcome`` and others."""
    found: dict[str, Sequence[Any]] = {}
    for name, column in table.items():
        cells = _inner(name, column, lines) if name in _NESTED else {name: column}
        if twice := found.keys() & cells.keys():
            raise Unreadable(lines[0], f"{min(twice)} is given twice, within an object and beside it")
        found |= cells
    return found


def _inner(name: str, values: Sequence[Any], lines: Sequence[int]) -> dict[str, Sequence[Any]]:
    """The cells of objects, such as arms; none where no row has one."""
    typed(name, values, lines, (dict, NoneType), "an object")
    objects = [value or {} for value in values]
    keys = _known(objects, lines, OF_AN_ARM if name in ARMS else None, f"{name}.")
    return {f"{name}.{key}": [one.get(key) for one in objects] for key in keys}


def of_words(names: Sequence[str], rows: Sequence[Sequence[str]]) -> dict[str, list[Any]]:
    """The cells of CSV rows, all as long as ``names``: numbers and true or false by the name of their column, an empty cell is
    None. A word that is not what its column wants stays as it is, and is refused later with its line."""
    table: Iterable[Sequence[str]] = zip(*rows, strict=True) if rows else [()] * len(names)
    return {name: _words(name, list(column)) for name, column in zip(names, table, strict=True)}


def _words(name: str, column: list[str]) -> list[Any]:
    if name in NUMBERS:
        return [_number(word) for word in column]
    if name in FLAGS:
        return [_WORDS.get(word.lower(), word) for word in column]
    return [word or None for word in column]


def _number(word: str) -> float | str | None:
    if not word:
        return None
    try:
        return word if "_" in word else float(word)  # Python reads 1_000, no other program does
    except ValueError:
        return word


def check_names(names: Sequence[str], line: int = 1) -> None:
    """Raises Unreadable for a column of a table that is unknown or named twice."""
    for name in names:
        if name not in NAMES and (not name.startswith(LABEL) or name == LABEL):
            raise Unreadable(line, f"no such column {shown(name)}{_nearest(name, NAMES)}")
    check_twice(names, line)


def check_twice(names: Sequence[str], line: int = 1) -> None:
    """Raises Unreadable for a column that is named twice."""
    if again := [name for name, times in Counter(names).items() if times > 1]:
        raise Unreadable(line, f"the column {shown(again[0])} is given twice")


def _known(
    objects: Sequence[dict[str, Any]], lines: Sequence[int], keys: Sequence[str] | None, where: str
) -> list[str]:
    """All keys of objects, which are some of ``keys``; ``None``: any."""
    present = set().union(*objects)
    unknown = set() if keys is None else present.difference(keys)
    for line, one in zip(lines, objects, strict=True) if unknown else ():
        for key in one:
            if key in unknown:
                raise Unreadable(line, f"no such key {shown(where + key)}{_nearest(key, keys or ())}")
    return sorted(present)


def _nearest(word: str, words: Sequence[str]) -> str:
    close = difflib.get_close_matches(word, words, n=1, cutoff=0.5)
    return f"; did you mean {close[0]}?" if close else f"; valid: {', '.join(words)}"


def typed(
    name: str, values: Sequence[Any], lines: Sequence[int], types: tuple[type, ...], what: str
) -> Sequence[Any]:
    """The values, when all are of these types exactly: to Python true is a whole number, to us it is none."""
    if not set(map(type, values)) <= set(types):
        refuse(name, values, lines, [type(value) not in types for value in values], what)
    return values


def refuse(
    name: str, values: Sequence[Any], lines: Sequence[int], bad: Sequence[bool], what: str
) -> NoReturn:
    """Raises Unreadable for the first value that is ``bad``: it must be ``what``."""
    place = list(bad).index(True)
    value = values[place]
    said = f"{name} is missing" if value is None else f"{name} is {shown(value)}; it must be {what}"
    raise Unreadable(lines[place], said)


def shown(value: object) -> str:
    """A value as an error shows it."""
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}\N{HORIZONTAL ELLIPSIS}"
