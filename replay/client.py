"""The sending edge: one call of a backend, every outcome as a recording.

Shared by the mirror and by replay. The clock is ``time.monotonic``. aiohttp's connector makes connections (TLS, names, happy
eyeballs, pooling) and its parser reads answers. A session on top would wake a task for every chunk and time it by when that
task ran; here a chunk is timed as the socket is read, and the caller wakes up once, when the answer is over.
"""

from __future__ import annotations

import asyncio
import errno
import functools
import re
from dataclasses import dataclass, replace
from time import monotonic
from typing import Any, Self, cast

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.client_reqrep import ClientRequest
from aiohttp.http import RawResponseMessage
from aiohttp.streams import StreamReader
from yarl import URL

from replay.exchange import Ending, Headers, Recording
from replay.recorder import Recorder

_KEEP_ALIVE_S = 3.0
"""Shorter than the 5 s after which vLLM and TensorRT-LLM close an idle connection."""
_RACE_S = 0.25
"""A reset within this time, a few round trips, says that an idle connection had been closed before our request was read."""
_LINGER_S = 1.0
"""A server may leave the socket open after ``[DONE]``; the answer is whole by then."""
_READ = 2**20
"""Bytes that may lie parsed and untaken, several times what one read of a socket brings."""
_HEAD = 2**16
_DONE = (b"[DONE]\n\n", b"[DONE]\r\n\r\n")
_LONGEST = max(map(len, _DONE))
_OURS = frozenset((errno.EMFILE, errno.ENFILE, errno.EADDRNOTAVAIL, errno.ENOBUFS, errno.ENOMEM))
"""What this machine has no more of: files, ports, memory. No server is asked, and none is to blame."""
_UNCLEAN = re.compile(r"[\r\n\0]")
_BLANK = re.compile(r"[\0-\x20\x7f]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One request as it goes on the wire; limits in seconds. ``first_byte`` also bounds each later gap between reads."""

    url: str
    method: str = "POST"
    headers: Headers = ()
    body: bytes = b""
    connect: float = 5.0
    first_byte: float = 60.0
    total: float = 600.0
    max_answer: int = 16 * 2**20


class Client:
    """Connections to backends. Use it as an async context manager; ``send`` may run any number of times at once."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self._connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=_KEEP_ALIVE_S, ttl_dns_cache=30)
        self._connector._factory = cast("Any", functools.partial(_Wire, loop))  # noqa: SLF001 - aiohttp has no public way
        self._places: dict[str, ClientRequest] = {}
        self.idle_resets = 0
        """Idle connections that a server closed under us before it answered anything; sent again on a new one."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._connector.close()

    async def send(self, call: Call) -> Recording:
        """Sends a call and reads its answer to the end. Whatever fails is in the recording; only cancellation raises."""
        recording, stale = await self._attempt(call)
        while stale:  # several may have been closed at once; a new connection never is
            self.idle_resets += 1
            recording, stale = await self._attempt(call)
        return recording

    async def _attempt(self, call: Call) -> tuple[Recording, bool]:
        """The recording, and whether it only shows that a kept-alive connection had been closed under us."""
        start = monotonic()
        try:
            origin, host, target = _place(call.url)
            request = _request(call, host, target)
            connection = await self._connect(origin, call.connect)
        except TimeoutError:
            return _unsent(start, f"no connection within {call.connect:g} s"), False
        except (aiohttp.ClientError, OSError, ValueError) as error:
            ours = isinstance(error, OSError) and error.errno in _OURS
            return _unsent(start, _words(error), Ending.NOT_SENT if ours else Ending.CONNECT_FAILED), False
        wire = cast("_Wire", connection.protocol)
        wire.calls += 1
        answer = _Answer(wire, call)
        try:
            answer.ask(request)
            await answer.over
        finally:
            answer.rest()
            wire.answer = None
            if answer.whole:
                connection.release()
            else:
                wire.abort()  # closing would wait until the server has read what it may never read
                connection.close()
        recording = answer.recording()
        if wire.calls == 1:
            return replace(recording, connect_s=answer.sent_at - start), False
        stale = recording.ending is Ending.RESET and recording.status is None
        return recording, stale and recording.ended_at - recording.sent_at < _RACE_S

    async def _connect(self, origin: str, within: float) -> Any:
        place = self._places.get(origin)
        if place is None:
            place = self._places[origin] = ClientRequest("GET", URL(origin), loop=asyncio.get_running_loop())
        async with asyncio.timeout(within):  # the resolver has no limit of its own
            return await self._connector.connect(place, [], _NO_TIMEOUT)


class _Wire(ResponseHandler):
    """aiohttp's protocol, handing on what it reads at once instead of waking somebody up for it."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self.calls = 0
        self.answer: _Answer | None = None

    def data_received(self, data: bytes) -> None:
        """What comes when nobody asked is nobody's answer (RFC 9112, section 9.2): the connection is given up."""
        answer = self.answer
        if answer is None:
            self.close()
            return
        answer.read_at = monotonic()
        super().data_received(data)
        answer.take()

    def feed_data(self, data: tuple[RawResponseMessage, StreamReader], size: int = 0) -> None:
        """The parser has read a head."""
        if self.answer is not None:
            self.answer.head(*data)

    def set_exception(self, exc: BaseException, exc_cause: BaseException | None = None) -> None:
        """The connection broke, or what came is not HTTP."""
        super().set_exception(exc, exc if exc_cause is None else exc_cause)
        if self.answer is not None:
            self.answer.take()  # a body without a length ends with its connection
            self.answer.broke(exc)

    def resume_reading(self, resume_parser: bool = True) -> None:
        """Asked for at every read, paused or not; we read everything at once, so that it never has to pause."""
        if self._reading_paused:
            super().resume_reading(resume_parser)

    def connection_lost(self, exc: BaseException | None) -> None:
        """Also ends a body that the parser gave up on in silence."""
        answer = self.answer
        super().connection_lost(exc)
        if answer is not None:
            answer.take()
            answer.broke(exc or aiohttp.ClientPayloadError("the body is malformed"))


class _Answer:
    """One answer in progress. It is ``over`` exactly once."""

    __slots__ = (
        "_call",
        "_chunks",
        "_detail",
        "_ended_at",
        "_ending",
        "_head",
        "_left",
        "_payload",
        "_said_done",
        "_tail",
        "_timers",
        "_wire",
        "over",
        "read_at",
        "sent_at",
        "whole",
    )

    def __init__(self, wire: _Wire, call: Call) -> None:
        self._wire, self._call = wire, call
        self._head: tuple[float, int, Headers] | None = None
        self._payload: StreamReader | None = None
        self._chunks: list[tuple[float, bytes]] = []
        self._left = call.max_answer
        self._said_done = False
        self._tail = b""
        self._ending, self._detail, self._ended_at = Ending.COMPLETE, "", 0.0
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self.over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.read_at = self.sent_at = 0.0
        self.whole = False
        """The answer was read to its end and the connection can serve another call."""

    def ask(self, request: bytes) -> None:
        """Hands the request to the socket and starts the clocks."""
        wire, call = self._wire, self._call
        wire.answer = self
        wire.set_response_params(
            skip_payload=call.method == "HEAD",
            read_until_eof=True,
            auto_decompress=False,
            read_bufsize=_READ,
            max_line_size=_HEAD,
            max_field_size=_HEAD,
            max_headers=1024,
        )
        transport = wire.transport
        self.sent_at = self.read_at = monotonic()
        if transport is None:
            self.broke(aiohttp.ServerDisconnectedError())
            return
        transport.write(request)
        later = asyncio.get_running_loop().call_later
        self._timers["gap"] = later(call.first_byte, self._silent)
        self._timers["total"] = later(
            call.total, self._end, Ending.TIMEOUT, f"not complete within {call.total:g} s"
        )

    def head(self, message: RawResponseMessage, payload: StreamReader) -> None:
        """A head arrived; 1xx are not the answer's."""
        if message.code < 200 and message.code != 101:
            return
        if self._head is not None:
            self._wire.force_close()  # a second answer to one request
            return
        headers = tuple(
            (name.decode("latin-1"), value.decode("latin-1")) for name, value in message.raw_headers
        )
        self._head = (self.read_at, message.code, headers)
        self._payload = payload

    def take(self) -> None:
        """Whatever of the body has been parsed by now."""
        payload = self._payload
        if payload is None or self.over.done():
            return
        if (error := payload.exception()) is not None:
            self.broke(error)
            return
        if data := payload.read_nowait():
            self._chunks.append((self.read_at, data))
            self._left -= len(data)
            if self._left < 0:
                self._end(Ending.OVERSIZE)
                return
            self._tail = (self._tail + data[-_LONGEST:])[-_LONGEST:]
            if self._tail.endswith(_DONE) and not payload.is_eof():
                self._said_done = True
                self._timers["linger"] = asyncio.get_running_loop().call_later(
                    _LINGER_S, self._end, Ending.COMPLETE
                )
        if payload.is_eof():
            self.whole = not self._wire.should_close
            self._end(Ending.COMPLETE)

    def broke(self, error: BaseException) -> None:
        """The connection ended. An answer that had said that it was done is whole all the same."""
        self._end(*((Ending.COMPLETE, "") if self._said_done else (Ending.RESET, _words(error))))

    def rest(self) -> None:
        """Stops the clocks."""
        for timer in self._timers.values():
            timer.cancel()

    def recording(self) -> Recording:
        """What was seen, once it is over."""
        recorder = Recorder(self.sent_at, limit=self._call.max_answer)
        if self._head is not None:
            recorder.head(*self._head)
        for at, data in self._chunks:
            recorder.feed(at, data)
        return recorder.end(self._ended_at, self._ending, self._detail)

    def _end(self, ending: Ending, detail: str = "") -> None:
        if not self.over.done():
            self._ending, self._detail, self._ended_at = ending, detail, monotonic()
            self.over.set_result(None)

    def _silent(self) -> None:
        """One timer an answer, not one a chunk: it looks when something last came, and sleeps again for the rest."""
        left = self.read_at + self._call.first_byte - monotonic()
        if left <= 0:
            self._end(Ending.TIMEOUT, f"no byte for {self._call.first_byte:g} s")
        else:
            self._timers["gap"] = asyncio.get_running_loop().call_later(left, self._silent)


_NO_TIMEOUT = aiohttp.ClientTimeout(total=None)


@functools.lru_cache(maxsize=1024)
def _place(url: str) -> tuple[str, str, str]:
    """Origin, Host header and request target of an address. Raises ValueError when it is none."""
    parsed = URL(url, encoded=True)
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise ValueError(f"{url[:200]!r} is no http address")
    target = parsed.raw_path_qs
    if _BLANK.search(target):
        raise ValueError(f"{target[:200]!r} cannot be asked for")
    return str(parsed.origin()), parsed.host_port_subcomponent or "", target


def _request(call: Call, host: str, target: str) -> bytes:
    """The request as it goes on the wire. Raises ValueError for a header that would break out of its line."""
    lines = [f"{call.method} {target} HTTP/1.1", f"Host: {host}"]
    for name, value in call.headers:
        if _UNCLEAN.search(name) or _UNCLEAN.search(value):
            raise ValueError(f"the header {name[:50]!r} holds a line break")
        lines.append(f"{name}: {value}")
    if call.body:
        lines.append(f"Content-Length: {len(call.body)}")
    return "\r\n".join((*lines, "\r\n")).encode("utf-8", "surrogateescape") + call.body


def _unsent(start: float, detail: str, ending: Ending = Ending.CONNECT_FAILED) -> Recording:
    return Recorder(start, limit=0).end(monotonic(), ending, detail)


def _words(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"[:300]
