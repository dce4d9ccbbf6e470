"""Small servers that say exactly what they are told to, byte by byte, on real loopback sockets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

Act = Callable[[bytes, asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
"""Given a request (head and body) it writes what it likes."""


@asynccontextmanager
async def acting(act: Act) -> AsyncIterator[str]:
    """A server whose every request is answered by ``act``; yields its address."""
    open_tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = next(
                    (
                        int(line[15:])
                        for line in head.lower().split(b"\r\n")
                        if line.startswith(b"content-length:")
                    ),
                    0,
                )
                await act(head + await reader.readexactly(length), reader, writer)
                await writer.drain()
        writer.close()

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(serve(reader, writer))
        open_tasks.add(task)
        task.add_done_callback(open_tasks.discard)

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for task in tuple(open_tasks):
            task.cancel()
        await asyncio.gather(*open_tasks, return_exceptions=True)


def reply(body: bytes, *, status: str = "200 OK", headers: bytes = b"") -> bytes:
    """A whole HTTP answer with a content length."""
    return b"HTTP/1.1 %s\r\nContent-Type: application/json\r\n%sContent-Length: %d\r\n\r\n%s" % (
        status.encode(),
        headers,
        len(body),
        body,
    )


def saying(answer: bytes) -> Act:
    """Always the same answer."""

    async def act(_: bytes, __: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(answer)

    return act


CHAT_ANSWER = (
    b'{"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"high at four"},"finish_reason":"stop"}],'
    b'"usage":{"prompt_tokens":7,"completion_tokens":3}}'
)
