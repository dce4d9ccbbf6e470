"""Server-sent events from bytes, by the rules of the WHATWG HTML standard, section 9.2.6.

Works on bytes, not on decoded lines: U+2028 inside data is data, and a code point split over two reads stays whole.
"""

from __future__ import annotations

from collections.abc import Iterator

Event = tuple[bytes, bytes]
"""Data and name of one dispatched event; several ``data`` lines are joined with LF. A bare tuple, because there are hundreds of
thousands a second."""

LIMIT = 128 * 2**20
"""Bytes of one event that are held; a longer one is dropped and counted."""

_BOM = b"\xef\xbb\xbf"
_IGNORED = (b"id", b"retry")


class Decoder:
    """Incremental: feed it reads of any size, it returns the events that they complete. Each byte is looked at once.

    What it returns and counts depends on the bytes alone, never on how they were cut into reads. After the last read,
    ``end()`` tells what was left unfinished.
    """

    __slots__ = (
        "_clean",
        "_data",
        "_dropping",
        "_held",
        "_limit",
        "_name",
        "_other",
        "_partial",
        "_skip_lf",
        "_start",
        "_width",
        "comments",
        "empty",
        "joined",
        "marked",
        "too_long",
        "unknown",
    )

    def __init__(self, limit: int = LIMIT) -> None:
        self.comments = 0
        """Comment lines (keep-alives)."""
        self.empty = 0
        """Events with fields and no data. The standard drops them; several clients hand them to a JSON parser."""
        self.joined = 0
        """Events of several ``data`` lines."""
        self.too_long = 0
        """Events that passed the limit and are lost."""
        self.marked = False
        """The stream began with a byte-order mark."""
        self.unknown: bytes | None = None
        """The first line that is no field of the standard; ``None`` when all are."""
        self._limit = limit
        self._partial: list[bytes] = []
        self._data: list[bytes] = []
        self._name = b""
        self._held = self._width = 0
        self._dropping = self._other = False
        self._skip_lf = False
        self._start = True
        self._clean = False

    def feed(self, read: bytes) -> list[Event]:
        """The events completed by this read, in order."""
        whole = self._clean and read.startswith(b"data: ") and read.find(b"\n") == len(read) - 2
        if whole and read.endswith(b"\n") and b"\r" not in read and len(read) <= self._limit:
            return [(read[6:-2], b"")]  # one event, as most servers flush them
        if b"\r" in read or self._skip_lf:
            events = list(self._lines(read))
            self._clean = self._blank()
            return events
        events = []
        if not self._clean:
            # What is pending ends with the first blank line; from there on the read can be split at once.
            head, blank, read = read.partition(b"\n\n")
            events += self._lines(head + blank)
            if not blank:
                self._clean = self._blank()
                return events
        *blocks, rest = read.split(b"\n\n")
        for block in blocks:
            if block.startswith(b"data: ") and b"\n" not in block and len(block) <= self._limit:
                events.append((block[6:], b""))
            else:
                events += self._lines(block + b"\n\n")
        if rest:
            events += self._lines(rest)
        self._clean = self._blank()
        return events

    def _blank(self) -> bool:
        """Nothing is pending: the next byte begins a new event."""
        pending = self._partial or self._data or self._name or self._other or self._width
        return not (pending or self._start or self._dropping or self._skip_lf)

    def end(self) -> Event | None:
        """The event that the end of the stream cut off, which a strict client never sees; None when there is none."""
        if self._width:
            self._end_of_line()
        return self._dispatch()

    def _lines(self, read: bytes) -> Iterator[Event]:
        """Line by line: any line ending, anything pending."""
        if self._skip_lf and read:
            self._skip_lf = False
            read = read.removeprefix(b"\n")
        if b"\r" in read:
            self._skip_lf = read.endswith(b"\r")
            read = read.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        first, *rest = read.split(b"\n")
        self._hold(first)
        for following in rest:
            if (event := self._end_of_line()) is not None:
                yield event
            self._hold(following)

    def _hold(self, piece: bytes) -> None:
        self._width += len(piece)
        self._held += len(piece)
        if self._held > self._limit:
            self._dropping = True
            self._partial, self._data = [], []
        elif piece:
            self._partial.append(piece)

    def _end_of_line(self) -> Event | None:
        line, width = b"".join(self._partial), self._width
        self._partial, self._width = [], 0
        if self._start:
            self._start = False
            if line.startswith(_BOM):
                self.marked = True
                line = line.removeprefix(_BOM)
                width, self._held = width - len(_BOM), self._held - len(_BOM)
        if width == 0:
            return self._dispatch()
        self._line(line)
        return None

    def _line(self, line: bytes) -> None:
        if self._dropping:
            return
        field, _, value = line.partition(b":")
        if field == b"data":
            self._data.append(value.removeprefix(b" "))
            return
        self._held -= len(line)
        if not field:
            self.comments += 1
            return
        self._other = True
        if field == b"event":
            self._name = value.removeprefix(b" ")
        elif field not in _IGNORED and self.unknown is None:
            self.unknown = line[:200]

    def _dispatch(self) -> Event | None:
        data, name = self._data, self._name
        self._data, self._name, self._held = [], b"", 0
        if self._dropping:
            self._dropping = False
            self.too_long += 1
            return None
        self.joined += len(data) > 1
        self.empty += self._other and not data
        self._other = False
        return (b"\n".join(data), name) if data else None
