"""All pairs and all findings of a run as two files, CSV or Parquet, some thousand pairs at a time."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any

from migrate.errors import ConfigError
from reports.frames import findings, pairs
from reports.shown import Item
from reports.slicing import DIMENSIONS
from reports.tabular import findings_csv, pairs_csv

TABLES = ("csv", "parquet")
"""Formats of ``write``."""
Parts = Iterable[Sequence[Item]]


def ready(form: str) -> None:
    """Raises ConfigError where Parquet cannot be written. CSV needs no extra."""
    if form == "parquet" and not (find_spec("pandas") and find_spec("pyarrow")):
        raise ConfigError("--format parquet needs two extras: pip install 'llm-migrate[pandas,parquet]'")


def targets(base: Path, form: str) -> tuple[Path, Path]:
    """The files of pairs and of findings: ``report.csv`` becomes ``report.pairs.csv`` and ``report.findings.csv``."""
    stem = base.with_suffix("")
    pairs_file, findings_file = (
        stem.with_name(f"{stem.name}.{kind}.{form}") for kind in ("pairs", "findings")
    )
    return pairs_file, findings_file


def write(parts: Parts, base: Path, form: str) -> tuple[Path, Path]:
    """Writes both files, whole or not at all, in the memory of one part. Returns their paths."""
    made = targets(base, form)
    unfinished = [file.with_name(f".{file.name}.part") for file in made]
    try:
        with contextlib.ExitStack() as stack:
            opened = [stack.enter_context(file.open("wb")) for file in unfinished]
            _FORMS[form](parts, *opened)
        for part, file in zip(unfinished, made, strict=True):
            part.replace(file)
    finally:
        for part in unfinished:
            part.unlink(missing_ok=True)
    return made


def _csv(parts: Parts, of_pairs: IO[bytes], of_findings: IO[bytes]) -> None:
    for number, part in enumerate(_at_least_one(parts)):
        of_pairs.write(pairs_csv(part, DIMENSIONS, header=not number).encode())
        of_findings.write(findings_csv(part, header=not number).encode())


def _parquet(parts: Parts, of_pairs: IO[bytes], of_findings: IO[bytes]) -> None:
    with contextlib.ExitStack() as stack:
        write_pairs, write_findings = (
            stack.enter_context(_writing(file)) for file in (of_pairs, of_findings)
        )
        for part in _at_least_one(parts):
            write_pairs(pairs(part, DIMENSIONS))
            write_findings(findings(item.comparison for item in part if item.comparison))


_FORMS = {"csv": _csv, "parquet": _parquet}


def _at_least_one(parts: Parts) -> Iterator[Sequence[Item]]:
    """A run without a pair has tables too, with their columns."""
    found = False
    for part in parts:
        found = True
        yield part
    if not found:
        yield ()


@contextlib.contextmanager
def _writing(file: IO[bytes]) -> Iterator[Callable[[Any], None]]:
    """What appends a frame; all have the columns of the first."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    writer: Any = None

    def append(frame: Any) -> None:
        nonlocal writer
        table = pa.Table.from_pandas(frame, schema=writer and writer.schema, preserve_index=False)
        writer = writer or pq.ParquetWriter(file, table.schema, compression="zstd")
        writer.write_table(table)

    try:
        yield append
    finally:
        if writer is not None:
            writer.close()
