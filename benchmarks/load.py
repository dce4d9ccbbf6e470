"""A load generator that costs little: keep-alive connections in a closed loop, or paced streams. Prints JSON.

``python -m benchmarks.load whole PORT CONNECTIONS SECONDS`` → count, errors, latencies' p50 and p99, rate.
``python -m benchmarks.load paced PORT RATE SECONDS`` → the same for requests that come at their own pace, RATE a second.
``python -m benchmarks.load count PORT CONNECTIONS REQUESTS`` → the same for so many requests, as fast as they go.
``python -m benchmarks.load streams PORT STREAMS ROUNDS`` → TTFT p50, lateness p50 and p99 of tokens, errors.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
from time import monotonic, perf_counter

import numpy as np
import uvloop

PROMPT = "Summarise the delivery terms for order and say when it arrives. " * 8


def request(number: int, *, stream: bool = False) -> bytes:
    """A chat request of its own conversation."""
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": f"{number} {PROMPT}"}]
    body = json.dumps({"model": "m", "messages": messages, "stream": stream, "temperature": 0}).encode()
    return (
        b"POST /v1/chat/completions HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\n"
        b"Authorization: Bearer sk-bench\r\nUser-Agent: bench\r\nAccept: */*\r\n"
        b"Content-Length: %d\r\n\r\n" % len(body)
    ) + body


def whole_length(buffer: bytes) -> int | None:
    """Bytes of the answer that ``buffer`` starts with; ``None`` until its head is there."""
    end = buffer.find(b"\r\n\r\n")
    if end < 0:
        return None
    head = buffer[:end].lower()
    at = head.find(b"content-length:")
    return end + 4 + int(head[at + 15 :].split(b"\r\n", 1)[0])


def one_connection(port: int, seconds: float) -> tuple[list[float], int]:
    """Blocking sockets: the smallest disturbance of what is measured."""
    plug = socket.create_connection(("127.0.0.1", port))
    plug.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    seed = int.from_bytes(os.urandom(4))
    latencies, errors, number, until = [], 0, 0, monotonic() + seconds
    while monotonic() < until:
        number += 1
        data = request(seed + number)
        start = perf_counter()
        plug.sendall(data)
        answer = b""
        while (length := whole_length(answer)) is None or len(answer) < length:
            piece = plug.recv(65536)
            if not piece:
                raise SystemExit("the server closed the connection")
            answer += piece
        latencies.append(perf_counter() - start)
        errors += not answer.startswith(b"HTTP/1.1 200")
    return latencies, errors


class Client(asyncio.Protocol):
    """One keep-alive connection that asks again as soon as it was answered."""

    latencies: list[float] = []  # noqa: RUF012 - one list for all connections
    errors = 0
    number = int.from_bytes(os.urandom(4))
    until = 0.0
    left: float = float("inf")
    running = 0
    done: asyncio.Future[None]

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        Client.running += 1
        self.ask()

    def ask(self) -> None:
        Client.left -= 1
        if monotonic() >= Client.until or Client.left < 0:
            self.transport.close()
            return
        Client.number += 1
        self.buffer = b""
        self.start = perf_counter()
        self.transport.write(request(Client.number))

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        length = whole_length(self.buffer)
        if length is not None and len(self.buffer) >= length:
            Client.latencies.append(perf_counter() - self.start)
            Client.errors += not self.buffer.startswith(b"HTTP/1.1 200")
            self.ask()

    def connection_lost(self, exc: BaseException | None) -> None:
        Client.running -= 1
        Client.errors += exc is not None
        if not Client.running and not Client.done.done():
            Client.done.set_result(None)


async def many_connections(
    port: int, connections: int, seconds: float, requests: float = float("inf")
) -> tuple[list[float], int]:
    loop = asyncio.get_running_loop()
    Client.until, Client.left = monotonic() + seconds, requests
    Client.done = loop.create_future()
    for _ in range(connections):
        await loop.create_connection(Client, "127.0.0.1", port)
    await asyncio.wait_for(Client.done, seconds + 30)
    return Client.latencies, Client.errors


async def paced(port: int, rate: int, seconds: float) -> tuple[list[float], int]:
    """Each request is due at its time whether or not the last was answered; 32 connections take turns."""
    latencies: list[float] = []
    errors = 0
    seed = int.from_bytes(os.urandom(4))
    idle: asyncio.Queue[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = asyncio.Queue()
    for _ in range(32):
        idle.put_nowait(await asyncio.open_connection("127.0.0.1", port))

    async def one(number: int) -> None:
        nonlocal errors
        reader, writer = await idle.get()
        start = perf_counter()
        try:
            writer.write(request(seed + number))
            head = await reader.readuntil(b"\r\n\r\n")
            await reader.readexactly((whole_length(head) or 0) - len(head))
            latencies.append(perf_counter() - start)
            errors += not head.startswith(b"HTTP/1.1 200")
            idle.put_nowait((reader, writer))
        except (OSError, EOFError, ValueError):
            errors += 1
            idle.put_nowait(await asyncio.open_connection("127.0.0.1", port))

    start, tasks = monotonic(), set()
    for number in range(int(rate * seconds)):
        due = start + number / rate
        await asyncio.sleep(max(0.0, due - monotonic()))
        tasks.add(asyncio.create_task(one(number)))
    await asyncio.wait_for(asyncio.gather(*tasks), 30)
    return latencies, errors


async def one_stream(port: int, number: int) -> tuple[float, list[float]]:
    """TTFT, and how late each token came after it was due at the server."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    start = monotonic()
    writer.write(request(number, stream=True))
    ttft, late = 0.0, []
    while True:
        line = await reader.readline()
        if line.startswith(b"data: {"):
            now = monotonic()
            ttft = ttft or now - start
            due = json.loads(line[6:])["choices"][0]["delta"]["content"]
            late.append(now - float(due))
        elif line.startswith(b"data: [DONE]"):
            break
        elif not line:
            raise ConnectionError("the stream was cut")
    writer.close()
    return ttft, late


async def streams(port: int, count: int, rounds: int) -> dict[str, float]:
    ttfts, late, errors = [], [], 0
    seed = int.from_bytes(os.urandom(4))

    async def client(index: int) -> None:
        nonlocal errors
        await asyncio.sleep(index * 0.0173 % 0.8)
        for turn in range(rounds):
            try:
                ttft, lateness = await one_stream(port, seed + index * 1000 + turn)
            except (OSError, ValueError):
                errors += 1
                continue
            ttfts.append(ttft)
            late.extend(lateness)

    await asyncio.gather(*(client(index) for index in range(count)))
    return {
        "ttft_p50": float(np.percentile(ttfts, 50)),
        "late_p50": float(np.percentile(late, 50)),
        "late_p99": float(np.percentile(late, 99)),
        "errors": errors,
    }


def summary(latencies: list[float], errors: int, seconds: float) -> dict[str, float]:
    half = latencies[len(latencies) // 10 :]
    return {
        "count": len(latencies),
        "errors": errors,
        "p50": float(np.percentile(half, 50)),
        "p99": float(np.percentile(half, 99)),
        "rate": len(latencies) / seconds,
    }


def main(kind: str, port: int, count: int, amount: float) -> dict[str, float]:
    if kind == "streams":
        return uvloop.run(streams(port, count, int(amount)))
    if kind == "paced":
        return summary(*uvloop.run(paced(port, count, amount)), amount)
    if kind == "count":
        start = monotonic()
        found = uvloop.run(many_connections(port, count, 600, amount))
        return summary(*found, monotonic() - start)
    if count == 1:
        return summary(*one_connection(port, amount), amount)
    return summary(*uvloop.run(many_connections(port, count, amount)), amount)


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]))))
