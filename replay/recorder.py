"""The recorder: raw bytes with their times in, one immutable recording out. Pure; gateway, mirror and replay share it."""

from __future__ import annotations

from replay.exchange import Ending, Headers, Recording


class Recorder:
    """Collects one exchange while it passes. Each call costs an append; decoding happens later and elsewhere.

    ``limit`` bounds the body bytes kept. Beyond it the recording ends as OVERSIZE, whatever happens after; what passes
    on the wire is not our business here.
    """

    __slots__ = ("_chunks", "_head_at", "_headers", "_left", "_sent_at", "_status")

    def __init__(self, sent_at: float, *, limit: int) -> None:
        self._sent_at = sent_at
        self._left = limit
        self._head_at: float | None = None
        self._status: int | None = None
        self._headers: Headers = ()
        self._chunks: list[tuple[float, bytes]] = []

    def head(self, at: float, status: int, headers: Headers) -> None:
        """The status line and headers arrived."""
        self._head_at, self._status, self._headers = at, status, headers

    def feed(self, at: float, data: bytes) -> bool:
        """A piece of the body arrived. False once the limit is passed: nothing more is kept."""
        if self._left < 0:
            return False
        self._left -= len(data)
        if self._left < 0:
            return False
        self._chunks.append((at, data))
        return True

    def end(self, at: float, ending: Ending, detail: str = "") -> Recording:
        """The exchange is over; what was seen of it."""
        return Recording(
            sent_at=self._sent_at,
            head_at=self._head_at,
            status=self._status,
            headers=self._headers,
            chunks=tuple(self._chunks),
            ended_at=at,
            ending=Ending.OVERSIZE if self._left < 0 else ending,
            detail=detail,
        )
