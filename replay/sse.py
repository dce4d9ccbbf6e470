"""Server-sent events from bytes, by the rules of the WHATWG HTML standard, section 9.2.6.

Works on bytes, not on decoded lines: U+2028 inside data is data, and a code point split over two reads stays whole.
"""

from __future__ import annotations

from dataclasses import dataclass

_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One dispatched event; several ``data`` lines are joined with LF."""

    data: bytes
    name: bytes = b""


class Decoder:
    """Incremental: feed it reads of any size, it returns the events that they complete. Each byte is looked at once.

    ``comments`` counts comment lines (keep-alives). After the last read, ``end()`` tells what was left unfinished.
    """

    __slots__ = ("_data", "_name", "_partial", "_skip_lf", "_start", "comments")

    def __init__(self) -> None:
        self.comments = 0
        self._partial: list[bytes] = []
        self._data: list[bytes] = []
        self._name = b""
        self._skip_lf = False
        self._start = True

    def feed(self, read: bytes) -> list[Event]:
        """The events completed by this read, in order."""
        if self._skip_lf and read:
            self._skip_lf = False
            read = read.removeprefix(b"\n")
        if b"\r" in read:
            self._skip_lf = read.endswith(b"\r")
            read = read.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        first, *rest = read.split(b"\n")
        self._partial.append(first)
        if not rest:
            return []
        lines = [b"".join(self._partial), *rest]
        self._partial = [lines.pop()]
        if self._start:
            self._start = False
            lines[0] = lines[0].removeprefix(_BOM)
        return [event for line in lines if (event := self._line(line)) is not None]

    def end(self) -> Event | None:
        """The event that the end of the stream cut off, which a strict client never sees; None when there is none."""
        line = b"".join(self._partial)
        self._partial = []
        if line:
            self._line(line.removeprefix(_BOM) if self._start else line)
        return self._dispatch()

    def _line(self, line: bytes) -> Event | None:
        if not line:
            return self._dispatch()
        if line.startswith(b":"):
            self.comments += 1
            return None
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            self._data.append(value)
        elif field == b"event":
            self._name = value
        return None

    def _dispatch(self) -> Event | None:
        data, name = self._data, self._name
        self._data, self._name = [], b""
        return Event(data=b"\n".join(data), name=name) if data else None
