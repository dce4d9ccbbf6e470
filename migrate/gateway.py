"""The gateway: production's requests to the baseline, its answers back, byte for byte, and a tap beside them.

What passes: any method and path; status, reason, end-to-end fields with order, duplicates and spelling; the
content coding; every piece as it arrives; a chunked body stays chunked, with the trailers that its head announces;
1xx heads; a body that the baseline breaks off is broken off for the client alike (closed or reset, never ended).
What does not: protocol upgrades, CONNECT and transfer codings other than ``chunked`` (501), chunk extensions, and a
request's trailers; a request's chunked body goes on with its length when it was read whole. ``Expect: 100-continue``
is answered here.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from http import HTTPStatus
from time import monotonic

import aiohttp
from aiohttp import web
from aiohttp.http import RawResponseMessage
from aiohttp.streams import StreamReader

from migrate.desk import Desk
from migrate.downstream import Server
from migrate.headers import Framing, origin_form, request_head, response_head, trailers
from migrate.relay import CLIENT_SILENCE, ClientLeft, Exchange, framing_for, until_close
from migrate.tap import Tap, Ticket
from migrate.upstream import Call, Upstream, UpstreamFailed
from replay.exchange import Ending

IDLE = 75.0
"""Seconds that a client's idle connection stays open: longer than the baseline's own 5 s, so that a client which was
tuned for the baseline never picks up a connection that we are closing."""

_REPLAYABLE = 64 * 1024
"""Bodies up to this size are read before they are sent, so that a stale connection can be replaced unseen."""

_JOINED = 16 * 1024
"""A body up to this size leaves with its head, in one write."""

BROKEN = (aiohttp.ClientError, aiohttp.http.HttpProcessingError, OSError)
"""What reading an answer raises when the baseline is at fault; time-outs and resets are OSError."""


Answer = tuple[Call, RawResponseMessage, StreamReader]
"""A call whose head has come."""

log = logging.getLogger(__name__)


class _Sent(web.StreamResponse):
    """Tells aiohttp that the answer is already on the wire, and whether the connection lives on."""

    def __init__(self, *, keep: bool) -> None:
        super().__init__()
        self._keep_alive = keep

    async def prepare(self, request: web.BaseRequest) -> None:
        return None

    async def write_eof(self, data: bytes = b"") -> None:
        return None


class Gateway:
    """Handles requests for a low-level aiohttp server.

    ``max_body``: bytes of a request that may be held; a longer one passes in pieces and is not mirrored.
    """

    def __init__(self, baseline: Upstream, tap: Tap, *, max_body: int) -> None:
        self.baseline = baseline
        self.tap = tap
        self.closing = False
        self.open = 0
        """Requests in hand."""
        self._idle = asyncio.Event()
        self._desk = Desk(asyncio.get_running_loop())
        self._limit = min(max_body, tap.shadow.max_request)
        self._keep = _Sent(keep=True)
        self._close = _Sent(keep=False)

    def server(self) -> Server:
        """The protocol factory to listen with. A client that leaves cancels its handler at once."""
        return Server(
            self.handle,
            handler_cancellation=True,
            access_log=None,
            keepalive_timeout=IDLE,
            auto_decompress=False,
            max_line_size=64 * 1024,
            max_field_size=64 * 1024,
            max_headers=1024,
        )

    async def finish(self, within: float) -> bool:
        """No answer keeps its connection from now on; waits until no request is open, at most ``within`` seconds.

        Returns whether all of them ended.
        """
        self.closing = True
        if not self.open:
            return True
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._idle.wait(), within)
        return not self.open

    def settle(self) -> None:
        """The tap catches up with everything that has passed, so that counters are final."""
        self._desk.clear()

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Serves one request and, whatever happens, counts it once and hands its recording over."""
        ticket = self.tap.admit(request.method, request.raw_path, request.raw_headers)
        exchange = Exchange(request, ticket)
        ending, detail = Ending.RESET, ""
        self.open += 1
        try:
            response, ending, detail = await self._serve(exchange)
            return response
        except (asyncio.CancelledError, ClientLeft) as left:
            ending, detail = Ending.CLIENT_LEFT, "the client closed the connection"
            self.tap.counters["client_left"] += 1
            if isinstance(left, asyncio.CancelledError):
                raise
            return self._close
        except Exception:
            # Part of an answer may be on the wire: aiohttp's own answer to an exception would end up within it.
            log.exception("the gateway failed on a request; its connection is closed")
            detail = "the gateway failed"
            self.tap.counters["gateway_errors"] += 1
            if request.transport is not None:
                request.transport.abort()
            return self._close
        finally:
            self.open -= 1
            if self.closing and not self.open:
                self._idle.set()
            exchange.stop()
            if ticket is not None:
                self._desk.close(ticket, monotonic(), ending, detail)

    async def _serve(self, exchange: Exchange) -> tuple[web.StreamResponse, Ending, str]:
        request, ticket = exchange.request, exchange.ticket
        if request.method == "CONNECT" or "websocket" in request.headers.get("Upgrade", "").lower():
            return self._error(exchange, 501, "protocol upgrades do not pass"), Ending.RESET, "refused"
        if exchange.chunked and (refusal := _unframed(request)):
            return self._error(exchange, *refusal), Ending.RESET, "refused"
        try:
            await exchange.read(_REPLAYABLE if ticket is None else self._room(ticket, request))
            if ticket is not None:
                _fill(ticket, exchange, self._limit)
            call, message, payload = await self._answer(exchange)
            if not exchange.rest:
                exchange.body = b""  # the question has arrived: it will not be sent again
        except (UpstreamFailed, web.RequestPayloadError) as error:
            return self._unanswered(exchange, exchange.fault or error)
        keep = (
            request.keep_alive
            and not self.closing
            and framing_for(request, message) is not Framing.UNTIL_CLOSE
        )
        ending, detail = await self._relay(exchange, call, message, payload, keep=keep)
        return self._keep if keep and ending is Ending.COMPLETE else self._close, ending, detail

    def _room(self, ticket: Ticket, request: web.BaseRequest) -> int:
        """How much of an eligible body may be held: all together, bodies take no more memory than the queue may."""
        size = self._limit if request.content_length is None else request.content_length
        if size <= _REPLAYABLE or size > self._limit or ticket.reserve(size):
            return self._limit
        ticket.refuse("queue_full")
        return _REPLAYABLE

    def _unanswered(self, exchange: Exchange, error: Exception) -> tuple[web.StreamResponse, Ending, str]:
        """There is no answer of the baseline: ours says whose fault it was."""
        if isinstance(error, UpstreamFailed):
            return self._error(exchange, error.status, error.message), error.ending, error.message
        if isinstance(error, TimeoutError):
            text = f"nothing came of the request's body for {CLIENT_SILENCE:g} s"
            return self._error(exchange, 408, text), Ending.RESET, "refused"
        text = f"the request's body is malformed: {error}"
        return self._error(exchange, 400, text), Ending.RESET, "refused"

    async def _answer(self, exchange: Exchange) -> Answer:
        """The head of the answer that the client gets, and where its body comes from. Raises UpstreamFailed."""
        return await self._ask(exchange, self.baseline, self._question(exchange))

    def _question(self, exchange: Exchange) -> tuple[bytes, ...]:
        """The request as the baseline gets it."""
        request = exchange.request
        head = request_head(
            request.method.encode(),
            self.baseline.prefix
            + origin_form(request.raw_path.encode("utf-8", "surrogateescape"), request.method.encode()),
            exchange.raw,
            host=self.baseline.host,
            length=exchange.length(),
            chunked=exchange.chunked and exchange.rest,
        )
        return joined(head, b"" if exchange.rest else exchange.body)

    async def _ask(self, exchange: Exchange, upstream: Upstream, question: tuple[bytes, ...]) -> Answer:
        """Sends the question and waits for the answer's head. A stale connection is replaced once, unseen."""
        call = await self._send(exchange, upstream, question, fresh=exchange.rest)
        try:
            return call, *await self._head(exchange, upstream, call)
        except BROKEN as error:
            if exchange.rest or not call.stale or isinstance(error, TimeoutError):
                raise upstream.explain(error) from error
        call.close()
        self.tap.counters["retried"] += 1
        call = await self._send(exchange, upstream, question, fresh=True)
        try:
            return call, *await self._head(exchange, upstream, call)
        except BROKEN as error:
            raise upstream.explain(error) from error

    async def _send(
        self, exchange: Exchange, upstream: Upstream, question: tuple[bytes, ...], *, fresh: bool
    ) -> Call:
        """Puts the question on the wire; the tap looks at it once it has left."""
        ticket = exchange.ticket
        if ticket is not None:
            ticket.sent_at = monotonic()
        call = exchange.call = await upstream.call(
            question, bodiless=exchange.request.method == "HEAD", fresh=fresh, more=exchange.rest
        )
        if exchange.rest:
            upload = exchange.upload(call, upstream.total)
            exchange.pump = asyncio.get_running_loop().create_task(upload)
        if ticket is not None:
            ticket.sent_at = call.sent_at
            self._desk.put(ticket)
        return call

    async def _head(
        self, exchange: Exchange, upstream: Upstream, call: Call
    ) -> tuple[RawResponseMessage, StreamReader]:
        """The final head; 1xx heads before it are passed on, except the 100 that we answer ourselves."""
        while True:
            message, payload = await call.head()
            if message.code == 101:
                raise UpstreamFailed(502, Ending.RESET, f"{upstream.said} switched protocols unasked")
            if message.code >= 200:
                break
            if message.code != 100 and exchange.request.version >= (1, 1):
                exchange.write(_answer_head(message, Framing.NONE))
            call.wire.start_timeout()  # the parser stopped it at the end of that head
        if message.headers.get("Transfer-Encoding", "chunked").lower() != "chunked":
            raise UpstreamFailed(
                502, Ending.RESET, f"{upstream.said} used a transfer coding that does not pass"
            )
        if not payload.is_eof():
            call.limit_silence(upstream.total)
        if exchange.ticket is not None:
            exchange.ticket.head(monotonic(), message.code, message.raw_headers)
        return message, payload

    async def _relay(
        self,
        exchange: Exchange,
        call: Call,
        message: RawResponseMessage,
        payload: StreamReader,
        *,
        keep: bool,
    ) -> tuple[Ending, str]:
        """Passes the answer on, head and body, and says how it ended."""
        request = exchange.request
        framing = framing_for(request, message)
        chunked = framing is Framing.CHUNKED and request.method != "HEAD"
        call.wire.keep_tail = chunked and "Trailer" in message.headers
        head = _answer_head(message, framing, _connection(request, keep=keep))
        try:
            await (exchange.pass_chunks if chunked else exchange.pass_bytes)(head, payload)
        except BROKEN as error:
            exchange.flush(payload, chunked=chunked)
            return self._cut(exchange, call, error, framing)
        if call.wire.lost is not None and until_close(message):
            return self._cut(exchange, call, call.wire.lost, framing)
        if chunked:
            exchange.write(b"0\r\n%b\r\n" % (trailers(call.wire.tail) if call.wire.keep_tail else b""))
        if exchange.pump is None or exchange.pump.done():
            call.release()
        return Ending.COMPLETE, ""

    def _cut(
        self, exchange: Exchange, call: Call, error: BaseException, framing: Framing
    ) -> tuple[Ending, str]:
        """The baseline broke off its answer: so does ours, in the same way, without an end. Where a close would be the end,
        it is a reset."""
        self.tap.counters["cut_short"] += 1
        if framing is Framing.UNTIL_CLOSE or isinstance(call.wire.lost, ConnectionResetError):
            exchange.reset()
        ending = Ending.TIMEOUT if isinstance(error, TimeoutError) else Ending.RESET
        return ending, str(error) or type(error).__name__

    def _error(self, exchange: Exchange, status: int, message: str) -> web.StreamResponse:
        """An answer of our own, in OpenAI's shape, naming the gateway."""
        self.tap.counters["gateway_errors"] += 1
        request = exchange.request
        body = _error_body(status, f"gateway (llm-migrate): {message}")
        raw = ((b"Content-Type", b"application/json"), (b"Content-Length", b"%d" % len(body)))
        keep = request.keep_alive and not self.closing and request.content.at_eof() and status >= 502
        reason = HTTPStatus(status).phrase.encode()
        connection = _connection(request, keep=keep)
        head = response_head(status, reason, raw, framing=Framing.LENGTH, connection=connection)
        with contextlib.suppress(ClientLeft):
            exchange.write(head if request.method == "HEAD" else head + body)
        return self._keep if keep else self._close


def joined(head: bytes, body: bytes) -> tuple[bytes, ...]:
    """A request as it is written: at once where it is small."""
    return (head + body,) if len(body) <= _JOINED else (head, body)


def _unframed(request: web.BaseRequest) -> tuple[int, str] | None:
    """Why the body's end cannot be told the same way on both hops (RFC 9112, section 6.1)."""
    if request.version < (1, 1):
        return 400, "HTTP/1.0 has no transfer codings"
    if [value.strip().lower() for value in request.headers.getall("Transfer-Encoding")] != ["chunked"]:
        return 501, "transfer codings other than chunked do not pass"
    return None


def _fill(ticket: Ticket, exchange: Exchange, limit: int) -> None:
    """The body was read: the tap may have it, unless there is more than may be held, or it is still on its way."""
    if exchange.rest:
        size = exchange.request.content_length or len(exchange.body)
        ticket.refuse("too_large" if size > limit else "incomplete")
    else:
        ticket.body = exchange.body


def _answer_head(message: RawResponseMessage, framing: Framing, connection: bytes = b"") -> bytes:
    reason = (message.reason or "").encode("utf-8", "surrogateescape")
    return response_head(message.code, reason, message.raw_headers, framing=framing, connection=connection)


def _connection(request: web.BaseRequest, *, keep: bool) -> bytes:
    """Our own hop's ``Connection``: silent where HTTP's default already says it."""
    if not keep:
        return b"close"
    return b"" if request.version >= (1, 1) else b"keep-alive"


def _error_body(status: int, text: str) -> bytes:
    return json.dumps(
        {"error": {"message": text, "type": "gateway_error", "param": None, "code": status}}
    ).encode()
