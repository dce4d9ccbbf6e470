"""The gateway's connections to a backend: one call at a time, raw heads in and out, aiohttp's pool and parser below.

aiohttp's connector gives connections (TLS, names, happy eyeballs, pooling) and its parser reads answers. A session on
top would respell headers, re-quote paths, swallow 103 and hide whether a connection was reused, so calls are made on the
connection itself.
"""

from __future__ import annotations

import asyncio
import functools
from time import monotonic
from typing import Any, cast
from urllib.parse import urlsplit

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.client_reqrep import ClientRequest
from aiohttp.http import RawResponseMessage
from aiohttp.streams import StreamReader
from yarl import URL

from migrate.config import Backend
from replay.exchange import Ending

KEEP_ALIVE = 3.0
"""Seconds that an idle connection is reused: less than the 5 s after which vLLM and uvicorn close theirs."""

_RACE = 0.25
"""Seconds, a few round trips, within which a reset says that the server had closed the connection before it read our request."""

_HEAD_LIMIT = 64 * 1024
_TAIL = 16 * 1024


class UpstreamFailed(Exception):
    """The backend gave no answer. ``status`` is what the client gets, ``ending`` what the recording says."""

    def __init__(self, status: int, ending: Ending, message: str) -> None:
        super().__init__(message)
        self.status, self.ending, self.message = status, ending, message


class Wire(ResponseHandler):
    """aiohttp's protocol, remembering what it forgets: whether anything arrived, how it ended, the end of the bytes."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self.calls = 0
        self.busy = False
        self.received = False
        self.lost: BaseException | None = None
        self.keep_tail = False
        self.tail = b""

    def begin(self) -> None:
        """A new call starts on this connection."""
        self.calls += 1
        self.busy = True
        self.received, self.keep_tail, self.tail = False, False, b""

    def data_received(self, data: bytes) -> None:
        """What comes when nobody asked is nobody's answer (RFC 9112, section 9.2): the connection is given up."""
        if not self.busy:
            self.close()
            return
        if data:
            self.received = True
            self.tail = (self.tail + data)[-_TAIL:] if self.keep_tail else data
        super().data_received(data)

    def connection_lost(self, exc: BaseException | None) -> None:
        """Also ends a body that the parser gave up on in silence, so that its reader never waits for nothing."""
        self.lost = exc
        payload = self._payload
        super().connection_lost(exc)
        if payload is not None and not payload.is_eof() and payload.exception() is None:
            payload.set_exception(aiohttp.ClientPayloadError("the body is malformed"))


class Call:
    """One request on one connection. Close or release it exactly when it is over."""

    __slots__ = ("_connection", "reused", "sent_at", "wire")

    def __init__(self, connection: Any, wire: Wire, sent_at: float) -> None:
        self._connection = connection
        self.wire = wire
        self.sent_at = sent_at
        self.reused = wire.calls > 1

    @property
    def stale(self) -> bool:
        """The server closed an idle connection as we picked it up: it had answered before and sent nothing since.

        That shows within a few round trips, and as a closed connection, never as silence. What is left of the risk that
        RFC 9110, section 9.2.2, warns of: a server that reads the request and dies over it within that time is asked twice.
        """
        if not self.wire.busy:
            return False  # it was closed by us
        return self.reused and not self.wire.received and monotonic() - self.sent_at < _RACE

    async def head(self) -> tuple[RawResponseMessage, StreamReader]:
        """The next head, 1xx included, and the reader of its body. Raises aiohttp's or the transport's exceptions."""
        message, payload = await self.wire.read()
        return message, payload

    def limit_silence(self, seconds: float) -> None:
        """From now on the server may be silent for so long."""
        if self.wire.read_timeout != seconds:
            self.wire.read_timeout = seconds
            self.wire.start_timeout()

    def release(self) -> None:
        """The answer was read to its end; the connection may serve another call."""
        self.wire.tail = b""
        self.wire.busy = False
        self._connection.release()

    def close(self) -> None:
        """Drops the call and its connection at once, unsent bytes too. Does nothing after ``release``."""
        if self.wire.busy:
            self.wire.busy = False
            self.wire.abort()
        self._connection.close()

    def break_off(self) -> None:
        """``close``, and whoever reads the answer is told."""
        payload = self.wire._payload  # noqa: SLF001 - aiohttp forgets it without telling its reader
        self.close()
        if payload is not None and not payload.is_eof():
            payload.set_exception(aiohttp.ClientPayloadError("broken off by the gateway"))


class Upstream:
    """Where a backend is and how it is called; ``name`` is its arm. Make and close it inside a running loop.

    ``silence``: seconds until the head may stay away: ``timeouts.first_byte`` when the configuration states it, else
    ``timeouts.total``, because an unstreamed answer has no byte before its last token. Between later reads the limit is
    ``total``; a stream that keeps flowing is never cut, since the baseline itself would not.
    """

    def __init__(self, backend: Backend, name: str = "baseline") -> None:
        loop = asyncio.get_running_loop()
        parts = urlsplit(backend.url)
        self.url = backend.url
        self.said = f"{name} {backend.url}"
        self.host = parts.netloc.rpartition("@")[2].encode()
        self.prefix = parts.path.rstrip("/").encode()
        timeouts = backend.timeouts
        self.total = timeouts.total
        self.silence = timeouts.first_byte if "first_byte" in timeouts.model_fields_set else timeouts.total
        self._timeout = aiohttp.ClientTimeout(total=None, sock_connect=timeouts.connect)
        self._address = ClientRequest("GET", URL(backend.url), loop=loop)
        self._pooled = _connector(loop, force_close=False)
        self._fresh = _connector(loop, force_close=True)

    async def call(
        self, parts: tuple[bytes, ...], *, bodiless: bool, fresh: bool = False, more: bool = False
    ) -> Call:
        """Sends head and body on a pooled connection, or on one of its own.

        ``more``: the body goes on after ``parts``; the server may be silent for as long as it has not got all of it.
        ``bodiless``: a HEAD request, whose answer has no body whatever its head says. Raises UpstreamFailed when there
        is no connection to be had.
        """
        connection = await self._connect(self._fresh if fresh else self._pooled)
        wire = cast("Wire", connection.protocol)
        wire.begin()
        wire.set_response_params(
            skip_payload=bodiless,
            read_until_eof=True,
            auto_decompress=False,
            read_timeout=self.silence,
            read_bufsize=_HEAD_LIMIT,
            max_line_size=_HEAD_LIMIT,
            max_field_size=_HEAD_LIMIT,
            max_headers=1024,
        )
        call = Call(connection, wire, monotonic())
        transport = wire.transport
        if transport is not None:
            for part in parts:
                transport.write(part)
            if not more:
                wire.start_timeout()
        return call

    async def _connect(self, connector: aiohttp.TCPConnector) -> Any:
        try:
            async with asyncio.timeout(self._timeout.sock_connect):  # the resolver has no limit of its own
                return await connector.connect(self._address, [], self._timeout)
        except (aiohttp.ClientError, OSError) as error:
            raise self._unreachable(error) from error

    def _unreachable(self, error: Exception) -> UpstreamFailed:
        if isinstance(error, TimeoutError):
            text = f"{self.said} did not accept a connection within {self._timeout.sock_connect:g} s"
            return UpstreamFailed(504, Ending.CONNECT_FAILED, text)
        if isinstance(error, aiohttp.ClientConnectorDNSError):
            return UpstreamFailed(
                502, Ending.CONNECT_FAILED, f"{self.said} has a host name that does not resolve"
            )
        if isinstance(error, aiohttp.ClientConnectorError) and isinstance(
            error.os_error, ConnectionRefusedError
        ):
            return UpstreamFailed(502, Ending.CONNECT_FAILED, f"{self.said} refused the connection")
        return UpstreamFailed(502, Ending.CONNECT_FAILED, f"{self.said} cannot be reached ({error})")

    def explain(self, error: BaseException) -> UpstreamFailed:
        """What the client is told when a call ended before the head of an answer."""
        if isinstance(error, aiohttp.SocketTimeoutError):
            return UpstreamFailed(504, Ending.TIMEOUT, f"{self.said} sent nothing for {self.silence:g} s")
        if isinstance(error, aiohttp.http.HttpProcessingError):
            return UpstreamFailed(502, Ending.RESET, f"{self.said} answered with something that is not HTTP")
        return UpstreamFailed(502, Ending.RESET, f"{self.said} closed the connection before it answered")

    async def reachable(self) -> str | None:
        """Tries a connection; ``None`` when it stands, else why not."""
        try:
            connection = await self._connect(self._fresh)
        except UpstreamFailed as failed:
            return failed.message
        connection.close()
        return None

    async def close(self) -> None:
        """Closes every connection."""
        await self._pooled.close()
        await self._fresh.close()


def _connector(loop: asyncio.AbstractEventLoop, *, force_close: bool) -> aiohttp.TCPConnector:
    options: dict[str, Any] = {} if force_close else {"keepalive_timeout": KEEP_ALIVE}
    connector = aiohttp.TCPConnector(limit=0, force_close=force_close, ttl_dns_cache=10, **options)
    connector._factory = cast("Any", functools.partial(Wire, loop))  # noqa: SLF001 - aiohttp has no public way
    return connector
