"""What a model call of an application leaves behind as it passes.

It reads the clock and keeps references. It takes no lock and waits for nothing: each step is one operation of a deque or a
list, so that another thread, a signal handler or a finaliser may come in between.
"""

from __future__ import annotations

import time
from collections import deque

from migrate.headers import RawHeaders
from replay.exchange import Ending

_PAGE = 4096
_BESIDE = 128
"""What a piece costs beside its bytes."""


class Room:
    """Memory for all recordings of a process, in pages."""

    def __init__(self, size: int) -> None:
        self._free = deque([None]) * (size // _PAGE)

    def take(self, size: int) -> int | None:
        """How many pages hold ``size`` bytes, which are now taken; ``None`` when there are not that many."""
        wanted = -(-size // _PAGE)
        for taken in range(wanted):
            try:
                self._free.pop()
            except IndexError:
                self.give(taken)
                return None
        return wanted

    def give(self, pages: int) -> None:
        """So many pages are free again."""
        self._free.extend([None] * pages)


class Passing:
    """One model call on its way: what was asked, and what has come back so far. Nothing here raises.

    ``max_answer``: bytes of an answer that are kept.
    """

    __slots__ = (
        "_left",
        "_pages",
        "_room",
        "_spare",
        "body",
        "chunks",
        "head",
        "headers",
        "kept",
        "over",
        "sent_at",
        "target",
    )

    def __init__(
        self,
        target: str,
        headers: RawHeaders,
        body: bytes,
        *,
        room: Room,
        max_answer: int,
    ) -> None:
        self.target, self.headers, self.body = target, headers, body
        self._room, self._left = room, max_answer
        self._pages = self._spare = 0
        self.sent_at = time.monotonic()
        """The head was handed to the socket; where the transport does not tell, it was asked."""
        self.head: tuple[float, int, RawHeaders] | None = None
        """When, with which status and which fields the answer began."""
        self.chunks: list[tuple[float, bytes]] = []
        self.kept = True
        """False once the answer is larger than may be kept, or there is no room for it."""
        self.over: tuple[float, Ending, str] | None = None
        """When and how it ended, and the transport's words; ``None`` while it goes on."""

    def fits(self, size: int) -> bool:
        """Whether there is room for so many bytes more, which are then taken."""
        if size > self._spare:
            pages = self._room.take(size - self._spare)
            if pages is None:
                return False
            self._pages += pages
            self._spare += pages * _PAGE
        self._spare -= size
        return True

    def feed(self, data: bytes) -> None:
        """A piece of the answer's body arrived."""
        at = time.monotonic()
        if not self.kept or self.over is not None:
            return
        self._left -= len(data)
        if self._left >= 0 and self.fits(len(data) + _BESIDE):
            self.chunks.append((at, data))
        else:
            self.kept = False
            self.chunks = []
            self._keep_pages(-(-len(self.body) // _PAGE))

    def end(self, ending: Ending, detail: str = "") -> None:
        """It is over; the first to say how is right."""
        if self.over is None:
            self.over = (time.monotonic(), ending, detail)

    def forget(self) -> None:
        """Its memory is free again."""
        self.body, self.chunks = b"", []
        self._keep_pages(0)

    def _keep_pages(self, wanted: int) -> None:
        given, self._pages, self._spare = self._pages - wanted, wanted, 0
        self._room.give(given)
