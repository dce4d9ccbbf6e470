"""Raw sockets on both sides of a gateway: a baseline that sends the very bytes it is told to, and a client that reads
the very bytes it gets."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field

from migrate.channel import Message
from migrate.config import Backend, Shadow, Timeouts
from migrate.gateway import Gateway
from migrate.tap import Tap
from migrate.upstream import Upstream

CHAT = "/v1/chat/completions"
Serve = Callable[["Peer", bytes], Awaitable[None]]


@dataclass(kw_only=True)
class Peer:
    """One side of a connection."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def request(self) -> bytes:
        """One request, head and body as sent. b"" when the peer left instead."""
        try:
            head = await self.reader.readuntil(b"\r\n\r\n")
        except (asyncio.IncompleteReadError, ConnectionError):
            return b""
        lower = head.lower()
        if b"transfer-encoding: chunked" in lower:
            return head + await self.reader.readuntil(b"0\r\n\r\n")
        if b"content-length:" in lower:
            length = int(lower.partition(b"content-length:")[2].split(b"\r\n")[0])
            return head + await self.reader.readexactly(length)
        return head

    async def until(self, end: bytes) -> bytes:
        return await self.reader.readuntil(end)

    async def rest(self) -> bytes:
        """Everything up to the end of the connection, however it ends."""
        data = b""
        with contextlib.suppress(ConnectionError):
            while piece := await self.reader.read(65536):
                data += piece
        return data

    async def left(self) -> None:
        """Returns when the other side has gone."""
        with contextlib.suppress(ConnectionError):
            while await self.reader.read(65536):
                pass

    def reset(self) -> None:
        plug = self.writer.get_extra_info("socket")
        plug.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()


@dataclass(kw_only=True)
class Baseline:
    """A listening baseline and what it was asked."""

    port: int
    requests: list[bytes] = field(default_factory=list)
    connections: int = 0
    gone: asyncio.Event = field(default_factory=asyncio.Event)


@contextlib.asynccontextmanager
async def baseline(serve: Serve | bytes) -> AsyncIterator[Baseline]:
    """A server that answers each request by ``serve``, or always with the same bytes."""
    backend = Baseline(port=0)
    tasks: set[asyncio.Task[None]] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        backend.connections += 1
        peer = Peer(reader=reader, writer=writer)
        try:
            while request := await peer.request():
                backend.requests.append(request)
                await (peer.send(serve) if isinstance(serve, bytes) else serve(peer, request))
        except (ConnectionError, asyncio.IncompleteReadError):
            backend.gone.set()
        except asyncio.CancelledError:
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", 0, limit=2**24)
    backend.port = server.sockets[0].getsockname()[1]
    try:
        yield backend
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await server.wait_closed()


@dataclass(kw_only=True)
class Running:
    """A gateway that listens, and everything that its tap handed over."""

    port: int
    gateway: Gateway
    tap: Tap
    messages: list[Message]


@contextlib.asynccontextmanager
async def gateway(
    port: int, *, shadow: Shadow | None = None, timeouts: Timeouts | None = None, max_body: int = 64 * 2**20
) -> AsyncIterator[Running]:
    """A gateway in front of 127.0.0.1:``port`` that mirrors everything eligible unless told otherwise."""
    messages: list[Message] = []
    tap = Tap(shadow or Shadow.model_validate({"percent": 100}), messages.append)
    backend = Backend(kind="vllm", url=f"http://127.0.0.1:{port}", timeouts=timeouts or Timeouts())
    upstream = Upstream(backend)
    handler = Gateway(upstream, tap, max_body=max_body)
    server = handler.server()
    listener = await asyncio.get_running_loop().create_server(server, "127.0.0.1", 0)
    try:
        yield Running(port=listener.sockets[0].getsockname()[1], gateway=handler, tap=tap, messages=messages)
    finally:
        listener.close()
        server.pre_shutdown()
        await server.shutdown(0.5)
        await upstream.close()


@contextlib.asynccontextmanager
async def client(port: int) -> AsyncIterator[Peer]:
    """One client connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**24)
    try:
        yield Peer(reader=reader, writer=writer)
    finally:
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()


def ask(method: str = "GET", path: str = "/x", body: bytes = b"", *fields: str) -> bytes:
    """A request as most clients write it."""
    lines = [f"{method} {path} HTTP/1.1", "Host: gateway.example", *fields]
    if body:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def chat(text: str = "hello", **more: object) -> bytes:
    """A chat request with a key."""
    content = {"model": "m", "messages": [{"role": "user", "content": text}], **more}
    return ask("POST", CHAT, json.dumps(content).encode(), "Authorization: Bearer sk-secret")


async def once(port: int, request: bytes) -> bytes:
    """Everything that one request on its own connection gets back, until the server closes it."""
    async with client(port) as peer:
        await peer.send(request)
        return await asyncio.wait_for(peer.rest(), 5)


async def until(condition: Callable[[], object]) -> None:
    """Waits until something has become true, at most two seconds."""
    for _ in range(400):
        if condition():
            return
        await asyncio.sleep(0.005)
    raise AssertionError("it never became true")
