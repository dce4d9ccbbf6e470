"""Where records come from: files, compressed or not, and standard input, read once and in constant memory."""

from __future__ import annotations

import csv
import errno
import io
import sys
from collections.abc import Iterator
from functools import cached_property, partial
from pathlib import Path
from typing import IO, Any

import ijson

from replay.formats.fields import Unusable, loaded
from replay.formats.unpacking import BUFFER, Mended, Unpacked

HEAD = 64 * 1024
"""Bytes by which a format is told."""
_MOST = 2**27
"""Bytes of the longest line and of the longest field of a CSV file."""
_BLOCK = 2**25
"""Bytes of the longest block; GoReplay ends a message at 5 MB."""


class Source:
    """One input. ``head`` is its beginning, decompressed; everything else reads it once, from the start.

    A file is open only while it is read, so that there may be thousands of them. Pipes, standard input among them, cannot be
    opened again and stay open.
    """

    def __init__(self, path: Path | None) -> None:
        """``path``: a file; ``None`` is standard input. Raises OSError."""
        self.name = "standard input" if path is None else str(path)
        self.stem = "" if path is None else path.name.split(".", 1)[0]
        self._again = path is not None and path.is_file()
        self.size = path.stat().st_size if path is not None and self._again else None
        """Bytes on disk; ``None`` when they are not known."""
        self.incomplete: str | None = None
        """Where and how its compressed data stopped early, as far as they were read; ``None``: they did not."""
        self._path, self._done = path, 0
        self._open: Unpacked | None = None
        self.head = self._opened().peek(HEAD)[:HEAD]
        self._look(0)
        self.close()
        self._done = 0

    @property
    def done(self) -> int:
        """Bytes read from the disk so far."""
        return self._done if self._open is None else self._open.raw.count

    def close(self) -> None:
        """Lets go of the file."""
        if self._open is not None and self._again:
            self._open.close()
            self._done, self._open = self._open.raw.count, None

    @cached_property
    def first(self) -> dict[str, Any]:
        """The first record as far as the head holds it; empty when there is no JSON."""
        return _first_value(self.head)

    def file(self) -> io.BufferedReader[Any]:
        """All bytes, decompressed."""
        return self._opened()

    def ended(self, number: int = 0) -> Iterator[tuple[int, Unusable]]:
        """A last row that says so when compressed data stopped early. ``number``: the last record that is whole. Lets go of
        the file."""
        self._look(number)
        self.close()
        if self.incomplete:
            yield number + 1, Unusable("incomplete", f"the file is {self.incomplete}")

    def _look(self, number: int) -> None:
        if self._open is not None and self._open.broken is not None:
            place = f"record {number}, " if number else ""
            self.incomplete = (
                f"{self._open.broken} after {place}byte {self._open.unpacked:,} of the unpacked data"
            )

    @property
    def _broken(self) -> bool:
        return self._open is not None and self._open.broken is not None

    def lines(self) -> Iterator[tuple[int, Any]]:
        """Lines that are not blank, numbered from 1. Only LF ends a line: U+2028 stands within JSON texts."""
        plain, number = self._opened(), 0
        for line in iter(partial(plain.readline, _MOST), b""):
            if stripped := line.strip():
                if self._broken and not line.endswith(b"\n") and loaded(stripped) is None:
                    break  # half a line is no record
                number += 1
                yield number, stripped if len(line) < _MOST or line.endswith(b"\n") else _too_long(plain)
        yield from self.ended(number)

    def blocks(self, mark: bytes) -> Iterator[bytes | Unusable]:
        """The bytes between marks; without one for long they are cut."""
        plain, rest, number = self._opened(), b"", 0
        while piece := plain.read(BUFFER):
            *whole, rest = (rest + piece).split(mark)
            number += len(whole)
            yield from whole
            if len(rest) > _BLOCK:
                number += 1
                yield rest
                rest = b""
        if rest.strip() and not self._broken:
            yield rest
        yield from (why for _, why in self.ended(number))

    def objects(self, page: str | None = None, *, table: bool = False) -> Iterator[tuple[int, Any]]:
        """The records of a file, numbered from 1: of lines, of a list, of one document, of CSV where ``table``.

        ``page``: the key under which a document or a line may hold a list of them.
        """
        start = self._opened().peek(BUFFER).lstrip()
        if start.startswith(b"["):
            yield from self.items("item")
        elif table and not start.startswith(b"{"):
            yield from self.rows()
        elif _is_document(start, page):
            yield from self.items(f"{page}.item" if _holds(start, page) else "")
        elif page is None:
            yield from self.lines()
        else:
            yield from enumerate(self._unpaged(page), 1)

    def items(self, prefix: str) -> Iterator[tuple[int, Any]]:
        """The values of a list within JSON documents, by ``ijson``'s prefix, numbered from 1."""
        number = 0
        try:
            for number, value in enumerate(
                ijson.items(Mended(self._opened()), prefix, use_float=True, multiple_values=True), 1
            ):
                yield number, value
        except (ijson.JSONError, UnicodeDecodeError) as error:
            if not self._broken:  # else that is why
                why = " ".join(str(error).split("\n", 1)[0].split())
                yield number + 1, Unusable("malformed", f"not JSON: {why[:80]}")
        yield from self.ended(number)

    def rows(self) -> Iterator[tuple[int, Any]]:
        """The rows of a CSV file by column name, numbered from 1; a missing cell is None."""
        csv.field_size_limit(_MOST)
        number = 0
        with io.TextIOWrapper(self._opened(), encoding="utf-8", errors="replace", newline="") as words:
            try:
                for number, row in enumerate(self._whole(csv.DictReader(words)), 1):
                    yield number, row
            except csv.Error as error:
                yield number + 1, Unusable("malformed", f"not CSV: {error}")
            else:
                yield from self.ended(number)

    def _whole(self, rows: Iterator[Any]) -> Iterator[Any]:
        """Rows, without the last of data that stopped early: a cell that was cut looks like a whole one."""
        held = next(rows, None)
        for row in rows:
            yield held
            held = row
        if held is not None and not self._broken:
            yield held

    def _unpaged(self, page: str) -> Iterator[Any]:
        for _, line in self.lines():
            value = loaded(line) if isinstance(line, bytes) else None
            inner = value.get(page) if isinstance(value, dict) else None
            yield from inner if isinstance(inner, list) else [line if value is None else value]

    def _opened(self) -> io.BufferedReader[Any]:
        if self._open is None:
            self._open = Unpacked(_standard_input() if self._path is None else self._path.open("rb"))
        return self._open.plain


def _standard_input() -> IO[bytes]:
    if sys.stdin is None:  # a program may be started without one
        raise OSError(errno.EBADF, "it is closed")
    return sys.stdin.buffer


def _too_long(plain: io.BufferedReader[Any]) -> Unusable:
    """Passes over the rest of a line."""
    while (rest := plain.readline(BUFFER)) and not rest.endswith(b"\n"):
        pass
    return Unusable("malformed", f"a line longer than {_MOST // 2**20} MiB")


def _is_document(start: bytes, page: str | None) -> bool:
    """Whether one JSON value is spread over lines, or too long for a line: the first line is not whole and the next begins
    no other."""
    first, _, rest = start.partition(b"\n")
    if not start.startswith(b"{") or loaded(first) is not None:
        return False
    following = rest.lstrip()
    return _holds(start, page) or bool(following and not following.startswith(b"{"))


def _holds(start: bytes, page: str | None) -> bool:
    """Whether a document has a list under that key."""
    try:
        return any(where == page and event == "start_array" for where, event, _ in ijson.parse(start))
    except (ijson.JSONError, UnicodeDecodeError):
        return False


def _first_value(head: bytes) -> dict[str, Any]:
    """The first object of a JSON document, list, page or line. An element without an ``object`` of its own has its page's."""
    start = head.lstrip()
    if start[:1] not in (b"{", b"["):
        return {}
    keys: dict[str, Any] = {}
    depth = 1 if start.startswith(b"{") else 2
    path: list[str] = []
    page: str | None = None
    try:
        for prefix, event, value in ijson.parse(start):
            if event == "map_key" and prefix.count(".") <= depth:
                path = [*[part for part in prefix.split(".") if part not in ("", "item")], value]
                _put(keys, path, None)
            elif path and event in ("string", "number", "boolean", "null"):
                _put(keys, path, value)
            elif event == "start_array" and prefix in ("data", "result"):
                page = prefix
            elif event == "end_map" and prefix in ("", "item", f"{page}.item"):
                break
    except (ijson.JSONError, UnicodeDecodeError):
        pass
    inner = keys.get(page) if page is not None else None
    return {"object": keys.get("object"), **inner} if isinstance(inner, dict) else keys


def _put(keys: dict[str, Any], path: list[str], value: Any) -> None:
    here = keys
    for part in path[:-1]:
        if not isinstance(here.get(part), dict):
            here[part] = {}
        here = here[part]
    if not isinstance(here.get(path[-1]), dict):
        here[path[-1]] = value
