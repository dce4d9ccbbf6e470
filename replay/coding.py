"""Content codings: gzip, deflate, brotli and zstd, piece by piece, so that each piece keeps the time at which it came."""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

import brotli

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

Chunks = tuple[tuple[float, bytes], ...]

LIMIT = 256 * 2**20
"""Decoded bytes of one answer; a small body that unpacks to more is refused."""
_STEP = 2**20
_SLICE = 2**14


class _Unpacker(Protocol):
    def feed(self, data: bytes, limit: int) -> bytes:
        """At most about ``limit`` more decoded bytes."""

    def done(self) -> bool:
        """Whether the coded stream has ended as it should."""


def plain(chunks: Chunks, coding: str | None, limit: int = LIMIT) -> tuple[Chunks, str]:
    """The chunks without their coding, and what was wrong with it: empty, or a few words.

    ``coding`` is the value of Content-Encoding, several codings in the order in which they were applied. What decodes before
    something goes wrong is kept: an answer that was cut off still shows its beginning.
    """
    names = [name.strip().lower() for name in (coding or "").split(",")]
    problem = ""
    for name in reversed([name for name in names if name not in ("", "identity", "none")]):
        if name not in _CODINGS:
            return (), f"unknown content coding {name[:40]!r}"
        chunks, problem = _unpacked(chunks, name, limit)
        if problem and not chunks:
            break
    return chunks, problem


def _unpacked(chunks: Chunks, name: str, limit: int) -> tuple[Chunks, str]:
    unpacker = _CODINGS[name](b"".join(data for _, data in chunks[:3])[:2])
    out: list[tuple[float, bytes]] = []
    left = limit
    try:
        for at, data in _sliced(chunks):
            piece = unpacker.feed(data, left + 1)
            left -= len(piece)
            if left < 0:
                return tuple(out), f"{name} body unpacks to more than {limit >> 20} MiB"
            if piece:
                out.append((at, piece))
    except (zlib.error, zstd.ZstdError, brotli.error, EOFError) as error:
        return tuple(out), f"body is not {name}: {error}"
    return tuple(out), "" if unpacker.done() else f"{name} body is cut off"


def _sliced(chunks: Chunks) -> Iterator[tuple[float, bytes]]:
    """In pieces of bounded size: what is left behind each of many small members is copied."""
    for at, data in chunks:
        for start in range(0, len(data), _SLICE):
            yield at, data[start : start + _SLICE]


class _Zlib:
    """gzip with any number of members, zlib, and the bare deflate that some servers call ``deflate``."""

    def __init__(self, wbits: int) -> None:
        self._wbits = wbits
        self._inner = zlib.decompressobj(wbits)
        self._begun = False

    def feed(self, data: bytes, limit: int) -> bytes:
        parts: list[bytes] = []
        while data and limit > 0:
            if self._inner.eof:
                if self._wbits != 31 or not data.startswith(b"\x1f"):  # padding, or a stray line end
                    break
                self._inner = zlib.decompressobj(self._wbits)
            self._begun = True
            parts.append(self._inner.decompress(data, limit))
            limit -= len(parts[-1])
            data = self._inner.unused_data or self._inner.unconsumed_tail
        return b"".join(parts)

    def done(self) -> bool:
        return self._inner.eof or not self._begun


class _Brotli:
    def __init__(self) -> None:
        self._inner = brotli.Decompressor()
        self._begun = False

    def feed(self, data: bytes, limit: int) -> bytes:
        self._begun = self._begun or bool(data)
        return _drained(lambda more, step: self._inner.process(more, output_buffer_limit=step), data, limit)

    def done(self) -> bool:
        return bool(self._inner.is_finished()) or not self._begun


class _Zstd:
    """Any number of frames."""

    def __init__(self) -> None:
        self._inner = zstd.ZstdDecompressor()
        self._begun = False

    def feed(self, data: bytes, limit: int) -> bytes:
        parts: list[bytes] = []
        while data and limit > 0:
            if self._inner.eof:
                self._inner = zstd.ZstdDecompressor()
            self._begun = True
            while limit > 0:
                parts.append(self._inner.decompress(data, min(limit, _STEP)))
                limit -= len(parts[-1])
                data = b""
                if self._inner.eof or self._inner.needs_input:
                    break
            data = self._inner.unused_data if self._inner.eof else b""
        return b"".join(parts)

    def done(self) -> bool:
        return self._inner.eof or not self._begun


def _drained(step: Callable[[bytes, int], bytes], data: bytes, limit: int) -> bytes:
    """Everything that ``data`` unpacks to, at most ``limit`` bytes, in steps that bound the memory of each."""
    parts = [step(data, min(limit, _STEP))]
    total = len(parts[0])
    while parts[-1] and total < limit:
        parts.append(step(b"", min(limit - total, _STEP)))
        total += len(parts[-1])
    return b"".join(parts)


def _deflate(start: bytes) -> _Unpacker:
    """RFC 9110 means zlib by ``deflate``; a first byte pair that is no zlib header is bare deflate (RFC 1950, section 2.2)."""
    zlib_header = len(start) == 2 and start[0] & 0x0F == 8 and int.from_bytes(start) % 31 == 0
    return _Zlib(15 if zlib_header else -15)


_CODINGS: dict[str, Callable[[bytes], _Unpacker]] = {
    "gzip": lambda _: _Zlib(31),
    "x-gzip": lambda _: _Zlib(31),
    "deflate": _deflate,
    "br": lambda _: _Brotli(),
    "zstd": lambda _: _Zstd(),
}


def joined(chunks: Iterable[tuple[float, bytes]]) -> bytes:
    """The bytes of all chunks."""
    return b"".join(data for _, data in chunks)
