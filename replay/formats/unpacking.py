"""Bytes as they are meant: decompressed up to where they are damaged, without a byte order mark, counted for a progress bar."""

from __future__ import annotations

import gzip
import io
import re
import sys
import zlib
from typing import IO, Any, cast

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

BUFFER = 2**20
_GZIP, _ZSTD, _BOM = b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"\xef\xbb\xbf"
_LAST_COMMA = re.compile(rb",[\s\]]{0,64}\Z")


class Unpacked:
    """An open input: ``raw`` counts what is read from the disk, ``plain`` is decompressed."""

    def __init__(self, inner: IO[bytes]) -> None:
        self.raw = _Counted(inner)
        packed = _peeled(self.raw)
        self._unpacked = None if packed is None else _Whole(packed)
        self.plain: io.BufferedReader[Any] = io.BufferedReader(self._unpacked or self.raw, BUFFER)
        if self.plain.peek(len(_BOM)).startswith(_BOM):
            self.plain.read(len(_BOM))

    @property
    def broken(self) -> str | None:
        """How the compressed data stopped early: ``cut off`` or ``damaged (…)``; ``None``: they did not."""
        return None if self._unpacked is None else self._unpacked.broken

    @property
    def unpacked(self) -> int:
        """Bytes that came out of compressed data so far."""
        return 0 if self._unpacked is None else self._unpacked.count

    def close(self) -> None:
        self.plain.close()
        self.raw.close()


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


class _Whole(io.RawIOBase):
    """Decompressed bytes up to where they are damaged; what came before is kept."""

    def __init__(self, inner: Any) -> None:
        self._read = getattr(inner, "read1", inner.read)
        self.broken: str | None = None
        self.count = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        filled = 0
        while filled < len(buffer) and self.broken is None:
            try:
                data = self._read(len(buffer) - filled)
            except EOFError:
                self.broken = "cut off"
                break
            except (gzip.BadGzipFile, zlib.error, zstd.ZstdError) as error:
                self.broken = f"damaged ({error})"
                break
            if not data:
                break
            buffer[filled : filled + len(data)] = data
            filled += len(data)
        self.count += filled
        return filled


class Mended:
    """JSON without a comma after the last element of a list, which some exporters leave there."""

    def __init__(self, inner: IO[bytes]) -> None:
        self._inner, self._held = inner, b""

    def read(self, size: int = -1) -> bytes:
        while data := self._inner.read(size):
            data = self._held + data
            found = _LAST_COMMA.search(data, max(0, len(data) - 80))
            cut = found.start() if found else len(data)
            self._held = data[cut:]
            if cut or size == 0:
                return data[:cut]
        rest, self._held = self._held, b""
        return rest[1:]


def _peeled(raw: _Counted) -> Any:
    """A reader of what is compressed; ``None`` when nothing is."""
    start = raw.start()
    if start.startswith(_GZIP):
        return gzip.GzipFile(fileobj=cast("IO[bytes]", raw))
    if start.startswith(_ZSTD):
        return zstd.ZstdFile(cast("IO[bytes]", raw))
    return None
