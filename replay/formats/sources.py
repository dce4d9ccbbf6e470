"""Where records come from: files, compressed or not, and standard input, read once and in constant memory."""

from __future__ import annotations

import csv
import gzip
import io
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, cast

import ijson

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd


HEAD = 64 * 1024
"""Bytes by which a format is told."""
_MOST_FIELD = 2**27
_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"


class Source:
    """One input. ``head`` is its beginning, decompressed; everything else reads it once, from the start."""

    def __init__(self, path: Path | None) -> None:
        """``path``: a file; ``None`` is standard input. Raises OSError."""
        self.name = "standard input" if path is None else str(path)
        self.size = path.stat().st_size if path is not None else None
        """Bytes on disk; ``None`` when they are not known."""
        raw: IO[bytes] = sys.stdin.buffer if path is None else path.open("rb")
        self._raw = _Counted(raw)
        self._plain = io.BufferedReader(cast("io.RawIOBase", _peeled(self._raw)), 2**20)
        self.head = self._plain.peek(HEAD)[:HEAD]
        if self.head.startswith(b"\xef\xbb\xbf"):
            self._plain.read(3)
            self.head = self.head[3:]

    @property
    def done(self) -> int:
        """Bytes read from the disk so far."""
        return self._raw.count

    def close(self) -> None:
        self._plain.close()

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """Lines that are not blank, numbered from 1. Only LF ends a line: U+2028 stands within JSON texts."""
        number = 0
        for line in self._plain:
            if stripped := line.strip():
                number += 1
                yield number, stripped

    def blocks(self, mark: bytes) -> Iterator[bytes]:
        """The bytes between marks."""
        rest = b""
        while piece := self._plain.read(2**20):
            *whole, rest = (rest + piece).split(mark)
            yield from whole
        if rest.strip():
            yield rest

    def items(self, prefix: str) -> Iterator[Any]:
        """The values of a list within one JSON document, by ``ijson``'s prefix. Raises ijson.JSONError."""
        return iter(ijson.items(self._plain, prefix, use_float=True))

    def rows(self) -> Iterator[tuple[int, dict[str, str | None]]]:
        """The rows of a CSV file by column name, numbered from 1; a missing cell is None."""
        csv.field_size_limit(_MOST_FIELD)
        with io.TextIOWrapper(self._plain, encoding="utf-8", errors="replace", newline="") as text:
            yield from enumerate(csv.DictReader(text), 1)


class _Counted(io.RawIOBase):
    """Counts what is read, for a progress bar."""

    def __init__(self, inner: IO[bytes]) -> None:
        self._inner = io.BufferedReader(cast("io.RawIOBase", inner)) if not hasattr(inner, "peek") else inner
        self.count = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._inner.read(len(buffer))
        buffer[: len(data)] = data
        self.count += len(data)
        return len(data)

    def start(self) -> bytes:
        return cast("io.BufferedReader", self._inner).peek(4)[:4]

    def close(self) -> None:
        self._inner.close()
        super().close()


def _peeled(raw: _Counted) -> Any:
    start = raw.start()
    if start.startswith(_GZIP):
        return gzip.GzipFile(fileobj=cast("IO[bytes]", raw))
    if start.startswith(_ZSTD):
        return zstd.ZstdFile(cast("IO[bytes]", raw))
    return raw
