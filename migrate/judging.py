"""From a file of measured pairs to columns: JSON Lines, CSV or Parquet, told apart by their content, in constant memory but
for the columns."""

from __future__ import annotations

import csv
import io
import json
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any

import orjson

from migrate.errors import ConfigError
from replay.formats.sources import Source
from reports.cells import NAMES, Unreadable, check_names, check_twice, of_records, of_table, of_words
from reports.columns import Columns
from reports.measured import Measurements

Chunk = tuple[Mapping[str, Sequence[Any]], Sequence[int]]
"""Cells by name, and the line (the row, in Parquet) of each."""
Tell = Callable[[int], None]
"""Called with the pairs so far."""

_ROWS = 1_000
"""Of a chunk: a million lines take 7 s so, and 13 s at 10,000, where Python's search for cycles has more to look at."""
_LONGEST = 2**20
"""Bytes of a line."""
_PARQUET = b"PAR1"
_KINDS = "JSON Lines, CSV with a header such as id,at,baseline.outcome,baseline.e2e_s, nor Parquet"


def measured(source: Source, tell: Tell) -> Columns:
    """The pairs of a file as columns. Raises Unreadable with the first line that holds none, ConfigError where Parquet cannot be
    read here."""
    found = Measurements()
    try:
        for cells, lines in _chunks(source):
            found.add(cells, lines)
            tell(found.size)
    except Unreadable as error:
        for _, why in source.ended(error.line):  # perhaps that is why the line is what it is
            error.what += f"; {why.detail}"
        raise
    return found.columns()


def is_parquet(source: Source) -> bool:
    """Whether the line of an Unreadable is a row."""
    return source.head.startswith(_PARQUET)


def _chunks(source: Source) -> Iterator[Chunk]:
    if is_parquet(source):
        return _of_parquet(source)
    start = source.head.lstrip()
    return _of_lines(source) if start[:1] in (b"{", b"[", b"") else _of_csv(source)


def _of_lines(source: Source) -> Iterator[Chunk]:
    plain = source.file()
    lines = enumerate(iter(partial(plain.readline, _LONGEST), b""), 1)
    number = 0
    while some := list(islice(lines, _ROWS)):
        number = some[-1][0]
        full = [(at, line) for at, line in some if not line.isspace()]
        if full:
            numbers = [at for at, _ in full]
            yield of_records([_object(at, line) for at, line in full], numbers), numbers
    _whole(source, number)


def _object(number: int, line: bytes) -> Any:
    if len(line) >= _LONGEST:
        raise Unreadable(number, f"longer than {_LONGEST // 2**20} MiB")
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError as error:
        return _with_constants(number, line, f"{error.msg}, column {error.pos + 1}; each line is one pair")


def _with_constants(number: int, line: bytes, why: str) -> Any:
    """What JSON has no word for and many programs write: NaN and Infinity. They are read in order to say where they stand."""
    try:
        value = json.loads(line.decode(), parse_int=float)
        orjson.dumps(value)
    except (ValueError, TypeError, RecursionError):
        raise Unreadable(number, f"not JSON: {why}") from None
    return value


def _of_csv(source: Source) -> Iterator[Chunk]:
    reader = csv.reader(_texts(source.file()), strict=True)
    try:
        names = [name.strip() for name in next(reader, [])]
        if not any(name in NAMES for name in names):
            raise Unreadable(1, f"neither {_KINDS}")
        check_names(names)
        while some := list(islice(_rows(reader, len(names)), _ROWS)):
            yield of_words(names, [row for _, row in some]), [at for at, _ in some]
    except csv.Error as error:
        raise Unreadable(reader.line_num, f"not CSV: {error}") from None
    except UnicodeDecodeError:
        raise Unreadable(reader.line_num + 1, "not UTF-8") from None
    _whole(source, reader.line_num)


def _texts(plain: io.BufferedReader[Any]) -> Iterator[str]:
    """The lines of a CSV file, which may end in CR alone; each is decoded by itself, so that an error has its place."""
    for number, line in enumerate(iter(partial(plain.readline, _LONGEST), b""), 1):
        if len(line) >= _LONGEST:
            raise Unreadable(number, f"longer than {_LONGEST // 2**20} MiB")
        yield from io.StringIO(line.decode(), newline="")


def _rows(reader: Any, width: int) -> Iterator[tuple[int, list[str]]]:
    for row in reader:
        if row and len(row) != width:
            raise Unreadable(reader.line_num, f"{len(row)} cells; the header has {width}")
        if row:
            yield reader.line_num, row


def _whole(source: Source, lines: int) -> None:
    """Refuses a file whose compressed data stopped early."""
    for at, why in source.ended(lines):
        raise Unreadable(at, why.detail)


def _of_parquet(source: Source) -> Iterator[Chunk]:
    try:
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile
    except ImportError:
        raise ConfigError(
            f"{source.name}: reading Parquet needs pyarrow: pip install 'llm-migrate[parquet]'"
        ) from None
    number = 0
    with tempfile.TemporaryFile() as file:
        shutil.copyfileobj(source.file(), file)
        _whole(source, 0)
        try:
            whole = ParquetFile(file)
            check_twice(whole.schema_arrow.names)
            for batch in whole.iter_batches(batch_size=_ROWS):
                lines = range(number + 1, number + batch.num_rows + 1)
                yield _cells(batch, lines), lines
                number += batch.num_rows
        except (ArrowException, OSError) as error:
            raise Unreadable(number + 1, f"not Parquet: {str(error).splitlines()[0]}") from None


def _cells(batch: Any, lines: Sequence[int]) -> dict[str, Any]:
    """Columns as lists; those of structs and maps hold objects, others have dotted names."""
    table = {field.name: _values(column) for field, column in zip(batch.schema, batch.columns, strict=True)}
    found = of_table(table, lines)
    check_names([*found], lines[0])
    return found


def _values(column: Any) -> list[Any]:
    """A column as a list; a map, which comes as keys with their values, as objects."""
    values: list[Any] = column.to_pylist()
    if str(column.type).startswith("map<"):
        return [None if one is None else dict(one) for one in values]
    return values
