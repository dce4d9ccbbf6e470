"""The sending edge: one call of a backend, every outcome as a recording. aiohttp underneath.

Shared by the mirror and by replay. The clock is ``time.monotonic``. A recording's ``sent_at`` is the moment at which the head
of the request was handed to the socket: waiting for a connection, or making one, is not part of a latency.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any, Self

import aiohttp
from yarl import URL

from replay.exchange import Ending, Headers, Recording
from replay.recorder import Recorder

_KEEP_ALIVE_S = 3.0
"""Shorter than the 5 s after which vLLM and TensorRT-LLM close an idle connection."""
_RACE_S = 0.25
"""A reset within this time, a few round trips, says that an idle connection had been closed before our request was read."""
_LINGER_S = 1.0
"""A server may leave the socket open after ``[DONE]``; the answer is whole by then."""


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
        trace = aiohttp.TraceConfig()
        trace.on_request_headers_sent.append(_on_sent)
        trace.on_connection_reuseconn.append(_on_reuse)
        trace.on_connection_create_start.append(_on_connecting)
        trace.on_connection_create_end.append(_on_connected)
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=_KEEP_ALIVE_S, ttl_dns_cache=30),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            trust_env=False,
            skip_auto_headers=("User-Agent", "Accept", "Accept-Encoding"),
            trace_configs=[trace],
            read_bufsize=2**18,
        )
        self.idle_resets = 0
        """Idle connections that a server closed under us before it answered anything; sent again on a new one."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()

    async def send(self, call: Call) -> Recording:
        """Sends a call and reads its answer to the end. Whatever fails is in the recording; only cancellation raises."""
        recording, stale = await self._attempt(call)
        if stale:
            self.idle_resets += 1
            recording, _ = await self._attempt(call)
        return recording

    async def _attempt(self, call: Call) -> tuple[Recording, bool]:
        """The recording, and whether it only shows that a kept-alive connection had been closed under us."""
        mark = SimpleNamespace(sent_at=None, reused=False, connecting=None, connect_s=None)
        start = time.monotonic()
        read = _Read(call)
        ending, detail = Ending.COMPLETE, ""
        try:
            await read.run(self._session, mark)
        except TimeoutError as error:
            ending, detail = _timed_out(error, call)
        except (aiohttp.ClientError, OSError, ValueError) as error:
            ending, detail = _broken(error)
        recorder = read.recorder(start if mark.sent_at is None else mark.sent_at)
        recording = recorder.end(time.monotonic(), ending, detail)
        if mark.connect_s is not None:
            recording = replace(recording, connect_s=mark.connect_s)
        stale = mark.reused and ending is Ending.RESET and recording.status is None
        return recording, stale and recording.ended_at - recording.sent_at < _RACE_S


class _Read:
    """One attempt in progress: what has arrived so far."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._head: tuple[float, int, Headers] | None = None
        self._chunks: list[tuple[float, bytes]] = []

    async def run(self, session: aiohttp.ClientSession, mark: SimpleNamespace) -> None:
        call = self._call
        timeout = aiohttp.ClientTimeout(
            total=call.total, sock_connect=call.connect, sock_read=call.first_byte
        )
        request = session.request(
            call.method,
            URL(call.url, encoded=True),
            data=call.body or None,
            headers=call.headers,
            timeout=timeout,
            allow_redirects=False,
            trace_request_ctx=mark,
        )
        async with request as response:
            headers = tuple(
                (name.decode("latin-1"), value.decode("latin-1")) for name, value in response.raw_headers
            )
            self._head = (time.monotonic(), response.status, headers)
            await self._body(response)

    async def _body(self, response: aiohttp.ClientResponse) -> None:
        left = self._call.max_answer
        async for data in response.content.iter_any():
            self._chunks.append((time.monotonic(), data))
            left -= len(data)
            if left < 0:
                response.close()
                return
            if data.endswith((b"[DONE]\n\n", b"[DONE]\r\n\r\n")):
                await _linger(response)
                return

    def recorder(self, sent_at: float) -> Recorder:
        recorder = Recorder(sent_at, limit=self._call.max_answer)
        if self._head is not None:
            recorder.head(*self._head)
        for at, data in self._chunks:
            recorder.feed(at, data)
        return recorder


async def _linger(response: aiohttp.ClientResponse) -> None:
    """Reads the closing bytes of a finished stream, so that the connection can be used again; gives up soon."""
    try:
        async with asyncio.timeout(_LINGER_S):
            async for _ in response.content.iter_any():
                pass
    except (TimeoutError, aiohttp.ClientError, OSError):
        response.close()


def _timed_out(error: TimeoutError, call: Call) -> tuple[Ending, str]:
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        return Ending.CONNECT_FAILED, f"no connection within {call.connect:g} s"
    if isinstance(error, aiohttp.SocketTimeoutError):
        return Ending.TIMEOUT, f"no byte for {call.first_byte:g} s"
    return Ending.TIMEOUT, f"not complete within {call.total:g} s"


def _broken(error: Exception) -> tuple[Ending, str]:
    words = f"{type(error).__name__}: {error}"[:300]
    if isinstance(error, aiohttp.ClientConnectorError | aiohttp.InvalidURL):
        return Ending.CONNECT_FAILED, words
    return Ending.RESET, words


async def _on_sent(_: aiohttp.ClientSession, context: SimpleNamespace, __: Any) -> None:
    context.trace_request_ctx.sent_at = time.monotonic()


async def _on_reuse(_: aiohttp.ClientSession, context: SimpleNamespace, __: Any) -> None:
    context.trace_request_ctx.reused = True


async def _on_connecting(_: aiohttp.ClientSession, context: SimpleNamespace, __: Any) -> None:
    context.trace_request_ctx.connecting = time.monotonic()


async def _on_connected(_: aiohttp.ClientSession, context: SimpleNamespace, __: Any) -> None:
    mark = context.trace_request_ctx
    mark.connect_s = time.monotonic() - mark.connecting
