"""One exchange on its way through the gateway: the client's body up, the baseline's answer down, piece by piece.

A slow reader on either side slows the other: every write waits for the transport's buffer (64 KiB) to drain.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from time import monotonic

import aiohttp
from aiohttp import web
from aiohttp.http import RawResponseMessage, StreamWriter
from aiohttp.streams import StreamReader

from migrate.headers import Framing
from migrate.tap import Ticket
from migrate.upstream import Call

CLIENT_SILENCE = 300.0
"""Seconds that a client may leave between two pieces of its request's body."""

PATIENCE = 1.0
"""Seconds for a body to arrive whole. A slower one goes on piece by piece, so that the baseline may answer before its end."""

_RESET_ON_CLOSE = struct.pack("ii", 1, 0)


class ClientLeft(Exception):
    """Nobody reads the answer any more."""


class Exchange:
    """One request of one client: what was read of it, the call that serves it, and where the answer goes.

    ``rest``: more of the body is to come than was read. ``chunked``: the client frames its body in chunks.
    """

    __slots__ = ("body", "call", "chunked", "fault", "pump", "raw", "request", "rest", "ticket")

    def __init__(self, request: web.BaseRequest, ticket: Ticket | None) -> None:
        self.request = request
        self.raw = request.raw_headers
        self.ticket = ticket
        self.body = b""
        self.rest = False
        self.chunked = "Transfer-Encoding" in request.headers
        self.call: Call | None = None
        self.pump: asyncio.Task[None] | None = None
        self.fault: Exception | None = None
        """Why the client's body could not be read to its end: RequestPayloadError or TimeoutError."""

    def write(self, data: bytes) -> None:
        """Queues bytes for the client. Raises ClientLeft."""
        transport = self.request.transport
        if transport is None or transport.is_closing():
            raise ClientLeft
        transport.write(data)

    async def drain(self) -> None:
        """Waits while the client is slower than the baseline. Raises ClientLeft."""
        if self.request.protocol.writing_paused:
            try:
                await self.request.writer.drain()
            except ConnectionError:
                raise ClientLeft from None

    async def read(self, limit: int) -> None:
        """Reads the body; what is longer than ``limit`` bytes, or takes longer than ``PATIENCE``, is left for ``upload``.

        Raises RequestPayloadError when it is malformed.
        """
        payload = self.request.content
        if payload.at_eof():
            return
        if (
            self.request.version >= (1, 1)
            and self.request.headers.get("Expect", "").lower() == "100-continue"
        ):
            self.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        length = self.request.content_length
        if length is not None and length > limit:
            self.rest = True
            return
        pieces: list[bytes] = []
        size = 0
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(None if payload.is_eof() else PATIENCE):
                while not (payload.at_eof() or self.rest):
                    pieces.append(await payload.readany())
                    size += len(pieces[-1])
                    self.rest = size > limit
        self.rest = self.rest or not payload.at_eof()
        self.body = b"".join(pieces)

    def length(self) -> int | None:
        """The body's size to tell the baseline; ``None`` when there is no body or it goes in chunks."""
        if self.chunked:
            return None if self.rest else len(self.body)
        return self.request.content_length

    async def upload(self, call: Call, silence: float) -> None:
        """Passes on a body that was not read whole, as it arrives and no faster than the baseline takes it.

        ``silence``: seconds that the baseline may take no more of it.
        """
        writer = StreamWriter(call.wire, asyncio.get_running_loop())
        payload = self.request.content
        piece = self.body
        try:
            while piece or not payload.at_eof():
                if piece:
                    async with asyncio.timeout(silence):
                        await writer.write(chunk(piece) if self.chunked else piece)
                        await writer.drain()
                try:
                    piece = await _piece(payload)
                except (web.RequestPayloadError, TimeoutError) as error:
                    self.fault = error
                    raise
            if self.chunked:
                await writer.write(b"0\r\n\r\n")
            call.wire.start_timeout()
        except Exception as error:  # noqa: BLE001 - whichever side failed, the reader of the answer is told
            if call.wire.received:  # an answer is on its way to a question that nobody finished
                call.close()
            else:
                call.wire.set_exception(aiohttp.ClientOSError(str(error)))

    async def pass_chunks(self, head: bytes, payload: StreamReader) -> None:
        """The head, then the answer chunk by chunk, as the baseline cut it (one that spans reads goes in pieces).
        The end is left to write."""
        self.write(head)
        while True:
            data, ended = await payload.readchunk()
            if data:
                self._pass(data, chunk(data))
                await self.drain()
            elif not ended:
                return

    async def pass_bytes(self, head: bytes, payload: StreamReader) -> None:
        """The head, then the answer read by read: a body of stated length, or one that ends with its connection."""
        data = b"" if payload.exception() else payload.read_nowait()
        self._pass(data, head + data)
        while not payload.at_eof():
            data = await payload.readany()
            if data:
                self._pass(data, data)
                await self.drain()

    def flush(self, payload: StreamReader, *, chunked: bool) -> None:
        """What had arrived when the answer broke off, which aiohttp's reader withholds once it knows of the break."""
        with contextlib.suppress(ClientLeft):
            if data := payload._read_nowait(-1):  # noqa: SLF001 - there is no public way
                self._pass(data, chunk(data) if chunked else data)

    def _pass(self, data: bytes, framed: bytes) -> None:
        """The client first; then the recording, with the time at which the piece came."""
        ticket = self.ticket
        if ticket is None or not ticket.recording:
            self.write(framed)
            return
        at = monotonic()
        self.write(framed)
        if data:
            ticket.feed(at, data)

    def reset(self) -> None:
        """Makes the coming close of the client's connection a reset, as the baseline's was."""
        transport = self.request.transport
        if transport is not None:
            with contextlib.suppress(OSError):
                plug = transport.get_extra_info("socket")
                plug.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)

    def stop(self) -> None:
        """Ends what still runs upstream. Does nothing to a call that was released."""
        if self.pump is not None:
            self.pump.cancel()
        if self.call is not None:
            self.call.close()


async def _piece(payload: StreamReader) -> bytes:
    async with asyncio.timeout(CLIENT_SILENCE):
        return await payload.readany()


def chunk(data: bytes) -> bytes:
    """One chunk of a chunked body."""
    return b"%x\r\n%b\r\n" % (len(data), data)


def framing_for(request: web.BaseRequest, message: RawResponseMessage) -> Framing:
    """How this client can tell the end of this answer."""
    if message.code in (204, 304) or message.code < 200:
        return Framing.NONE
    if message.chunked:
        return Framing.CHUNKED if request.version >= (1, 1) else Framing.UNTIL_CLOSE
    if "Content-Length" in message.headers or request.method == "HEAD":
        return Framing.LENGTH
    return Framing.UNTIL_CLOSE


def until_close(message: RawResponseMessage) -> bool:
    """Whether the baseline ends this body by closing, so that only the way it closed tells a whole one from a cut."""
    return not message.chunked and "Content-Length" not in message.headers
