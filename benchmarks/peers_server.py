"""A backend that knows to the microsecond what it did: streams of 20 tokens, the first after 50 ms, then one each 10 ms.

``python -m benchmarks.peers_server [TOKENS [ITL]]`` prints its port. The shape is the simulator's (vLLM's chunks),
prepared once: what is measured with it are clients, so it has to hold rates at which the simulator's own work would be the limit.
``GET /truth`` returns, and forgets, every finished stream as ``[arrived, written, …, written]``: readings of
``CLOCK_MONOTONIC``, one for the whole request read and one for each token.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from time import monotonic
from typing import Any, ClassVar

import orjson
import uvloop

TOKENS = 20
TTFT = 0.05
ITL = 0.01
_HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n"
)
_MODELS = {"object": "list", "data": [{"id": "m", "object": "model", "created": 0, "owned_by": "bench"}]}
_truth: list[list[float]] = []


def _event(**fields: Any) -> bytes:
    head = {
        "id": "chatcmpl-9f86d081884c7d659a2feaa0c55ad015",
        "object": "chat.completion.chunk",
        "created": 1796165445,
        "model": "m",
    }
    data = b"data: " + orjson.dumps(head | fields) + b"\n\n"
    return b"%x\r\n%b\r\n" % (len(data), data)


def _delta(finish: str | None = None, **delta: str) -> bytes:
    return _event(choices=[{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}])


def _pieces(tokens: int) -> list[bytes]:
    """What is written with each token: the head goes with the first, everything that follows the text with the last."""
    pieces = [_delta(content=" tide") for _ in range(tokens)]
    usage = {"prompt_tokens": 10, "completion_tokens": tokens, "total_tokens": 10 + tokens}
    pieces[0] = _HEAD + _delta(role="assistant", content="") + pieces[0]
    pieces[-1] += _delta("stop", content="") + _event(choices=[], usage=usage)
    pieces[-1] += b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n"
    return pieces


class Backend(asyncio.Protocol):
    """One connection."""

    pieces: ClassVar = _pieces(TOKENS)
    itl: ClassVar = ITL

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self.plug = transport.get_extra_info("socket").fileno()
        self.later = asyncio.get_running_loop().call_later
        self.buffer = b""

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        while (end := self.buffer.find(b"\r\n\r\n") + 4) >= 4:
            head = self.buffer[:end].lower()
            at = head.find(b"content-length:")
            length = int(head[at + 15 :].split(b"\r\n", 1)[0]) if at >= 0 else 0
            if len(self.buffer) < end + length:
                return
            self.buffer = self.buffer[end + length :]
            self.asked(head.split(b" ", 2)[1])

    def asked(self, path: bytes) -> None:
        if path == b"/v1/chat/completions":
            arrived = monotonic()
            self.later(TTFT, self.token, arrived + TTFT, [arrived])
        elif path == b"/truth":
            self.whole(200, _truth)
            _truth.clear()
        else:
            self.whole(*((200, _MODELS) if path in (b"/v1/models", b"/health") else (404, None)))

    def whole(self, status: int, value: Any) -> None:
        body = orjson.dumps(value)
        head = b"HTTP/1.1 %d X\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
        self.transport.write(head % (status, len(body)) + body)

    def token(self, due: float, times: list[float]) -> None:
        """Straight to the socket: the loop's own writer waits for the end of its round, and the time would be wrong."""
        if self.transport.is_closing():
            return
        at = monotonic()
        with contextlib.suppress(OSError):  # the client left; connection_lost follows
            os.write(self.plug, self.pieces[len(times) - 1])
        times.append(at)
        if len(times) <= len(self.pieces):
            due += self.itl
            self.later(max(0.0, due - at), self.token, due, times)
        else:
            _truth.append(times)


async def main(tokens: int = TOKENS, itl: float = ITL) -> None:
    Backend.pieces, Backend.itl = _pieces(tokens), itl
    server = await asyncio.get_running_loop().create_server(Backend, "127.0.0.1", 0, backlog=4096)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(main(*map(int, sys.argv[1:2]), *map(float, sys.argv[2:3])))
