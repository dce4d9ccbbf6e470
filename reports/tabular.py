"""Pairs and findings as rows of text for CSV, with the columns of ``frames`` and without pandas. Pure."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from reports.frames import FINDINGS, Column, finding_rows, pair_columns
from reports.render.text import plain
from reports.shown import Item

_FORMULA = tuple("=+-@")
"""A cell of text that begins so is run by spreadsheets."""


def pairs_csv(items: Iterable[Item], dimensions: Sequence[str], *, header: bool = True) -> str:
    """A line a pair. ``dimensions``: the labels that get a column (see ``slicing``)."""
    return _csv(items, pair_columns(dimensions), header)


def findings_csv(items: Iterable[Item], *, header: bool = True) -> str:
    """A line a finding."""
    return _csv(finding_rows(item.comparison for item in items if item.comparison), FINDINGS, header)


def _csv(rows: Iterable[Any], columns: dict[str, Column], header: bool) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    if header:
        writer.writerow(columns)
    writer.writerows(list(_cells(row, columns)) for row in rows)
    return out.getvalue()


def _cells(row: Any, columns: dict[str, Column]) -> Iterator[str]:
    for dtype, read in columns.values():
        yield _cell(read(row), dtype)


def _cell(value: Any, dtype: str) -> str:
    """Empty for None, times in ISO 8601, and texts that neither a terminal nor a spreadsheet acts on: a formula gets a ' before
    it, what cannot be printed is U+FFFD."""
    if value is None:
        return ""
    if dtype.startswith("datetime"):
        return datetime.fromtimestamp(value / 1e9, UTC).isoformat(timespec="microseconds")
    if dtype != "string":
        return str(value)
    text = plain(str(value), len(str(value)))
    return f"'{text}" if text.startswith(_FORMULA) else text
