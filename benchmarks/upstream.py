"""A backend that costs next to nothing: raw protocol, one static JSON answer, or 50 tokens a second as a stream.

``python -m benchmarks.upstream PORT [MODE [DELAY]]``. Modes: ``answer`` (default; after DELAY seconds), and what a bad
candidate does: ``hang`` reads and never answers, ``reset`` resets each request, ``flood`` answers with garbage without end.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import struct
import sys
from time import monotonic

import uvloop

TOKENS = 40
GAP = 0.02
ANSWER = json.dumps(
    {
        "id": "chatcmpl-0",
        "object": "chat.completion",
        "model": "m",
        "choices": [
            {"index": 0, "message": {"role": "assistant", "content": "word " * 60}, "finish_reason": "stop"}
        ],
        "usage": {"prompt_tokens": 20, "completion_tokens": 60, "total_tokens": 80},
    }
).encode()
_HEAD = b"HTTP/1.1 200 OK\r\nserver: upstream\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
WHOLE = _HEAD % len(ANSWER) + ANSWER
STREAM = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
GARBAGE = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n"


class Backend(asyncio.Protocol):
    """One connection."""

    mode = "answer"
    delay = 0.0

    def __init__(self) -> None:
        self.buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self.flowing = True

    def pause_writing(self) -> None:
        self.flowing = False

    def resume_writing(self) -> None:
        self.flowing = True

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        while (end := self.buffer.find(b"\r\n\r\n")) >= 0:
            head = self.buffer[:end].lower()
            at = head.find(b"content-length:")
            length = int(head[at + 15 :].split(b"\r\n", 1)[0]) if at >= 0 else 0
            if len(self.buffer) < end + 4 + length:
                return
            body = self.buffer[end + 4 : end + 4 + length]
            self.buffer = self.buffer[end + 4 + length :]
            self.serve(body)

    def serve(self, body: bytes) -> None:
        if self.mode == "answer":
            if b'"stream": true' in body:
                self.transport.write(STREAM)
                self.token(0, monotonic())
            elif self.delay:
                asyncio.get_running_loop().call_later(self.delay, self.transport.write, WHOLE)
            else:
                self.transport.write(WHOLE)
        elif self.mode == "reset":
            plug = self.transport.get_extra_info("socket")
            plug.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.transport.abort()
        elif self.mode == "flood":
            self.transport.write(GARBAGE)
            self.flood()

    def flood(self) -> None:
        """16 KiB of garbage each 2 ms: 8 MB/s a connection, as fast as the reader takes it."""
        if not self.transport.is_closing():
            if self.flowing:
                self.transport.write(b"\xff{]garbage" * 1638)
            asyncio.get_running_loop().call_later(0.002, self.flood)

    def token(self, index: int, start: float) -> None:
        """Each event carries the reading of the clock when it was due."""
        if self.transport.is_closing():
            return
        due = start + index * GAP
        event = b'data: {"choices":[{"index":0,"delta":{"content":"%.6f "}}]}\n\n' % due
        self.transport.write(b"%x\r\n%b\r\n" % (len(event), event))
        if index + 1 < TOKENS:
            delay = start + (index + 1) * GAP - monotonic()
            asyncio.get_running_loop().call_later(max(0.0, delay), self.token, index + 1, start)
        else:
            self.transport.write(b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n")


async def main(port: int, mode: str = "answer", delay: str = "0") -> None:
    Backend.mode, Backend.delay = mode, float(delay)
    if mode != "answer":
        os.nice(10)  # it stands for another machine: its own work must not be what slows this one
    server = await asyncio.get_running_loop().create_server(Backend, "127.0.0.1", port, backlog=512)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(main(int(sys.argv[1]), *sys.argv[2:]))
