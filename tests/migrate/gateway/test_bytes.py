"""What the client gets is what the baseline sent, and the baseline gets what the client sent."""

from __future__ import annotations

import asyncio
import gzip
from itertools import pairwise
from time import monotonic

import pytest

from migrate.channel import Answered
from replay.exchange import Ending
from tests.migrate.gateway.raw import CHAT, Peer, ask, baseline, chat, client, gateway, once, until

GZIPPED = gzip.compress(b'{"a": 1}' * 50)
CLOSE = "Connection: close"

ANSWERS = {
    "length": b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}",
    "duplicates in order and spelling": (
        b"HTTP/1.1 200 OK\r\nset-cookie: a=1\r\nX-One: 1\r\nSET-COOKIE: b=2\r\nx-one: 2\r\n"
        b"DATE: now\r\nserver: me/1\r\ncontent-length: 2\r\n\r\nok"
    ),
    "own reason": b"HTTP/1.1 200 Very Fine Indeed\r\nContent-Length: 1\r\n\r\n!",
    "no reason": b"HTTP/1.1 200 \r\nContent-Length: 1\r\n\r\n!",
    "bytes beyond ASCII": b"HTTP/1.1 200 OK\r\nX-Latin: caf\xe9\r\nX-Utf: \xc3\xa9\r\nContent-Length: 0\r\n\r\n",
    "gzip": b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%b"
    % (len(GZIPPED), GZIPPED),
    "not really gzip": b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc",
    "chunked": (
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\ntransfer-encoding: chunked\r\nX-After: 1\r\n\r\n"
        b"5\r\nhello\r\n1\r\n,\r\n6\r\n world\r\n0\r\n\r\n"
    ),
    "chunked and empty": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunked gzip": (
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n"
        % (len(GZIPPED), GZIPPED)
    ),
    "announced trailers": (
        b"HTTP/1.1 200 OK\r\nTrailer: X-Checksum, X-Two\r\nTransfer-Encoding: chunked\r\n\r\n"
        b"3\r\n\r\n0\r\n0\r\nX-Checksum: abc\r\nx-two: 0\r\n\r\n"
    ),
    "empty": b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
    "no content": b"HTTP/1.1 204 No Content\r\nX-A: 1\r\n\r\n",
    "not modified": b"HTTP/1.1 304 Not Modified\r\nContent-Length: 10\r\nETag: x\r\n\r\n",
    "redirect": b"HTTP/1.1 307 Temporary Redirect\r\nLocation: /y\r\nContent-Length: 0\r\n\r\n",
    "bad request": b'HTTP/1.1 400 Bad Request\r\nContent-Length: 11\r\n\r\n{"error":1}',
    "rate limited": b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 3\r\nContent-Length: 0\r\n\r\n",
    "server error": b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 5\r\n\r\noops!",
    "early hints": (
        b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
    ),
}


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
async def test_an_answer_passes_byte_for_byte(answer: bytes) -> None:
    async with baseline(answer) as backend, gateway(backend.port) as running, client(running.port) as peer:
        for request in (ask(), chat()):
            await peer.send(request)
            assert await asyncio.wait_for(peer.reader.readexactly(len(answer)), 2) == answer
        await peer.send(ask("GET", "/x", b"", CLOSE))
        rest = await asyncio.wait_for(peer.rest(), 2)
        assert rest.replace(b"\r\nConnection: close", b"", 1) == answer


async def test_a_body_that_ends_with_its_connection_ends_with_ours() -> None:
    answer = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nuntil the end"

    async def serve(peer: Peer, request: bytes) -> None:
        await peer.send(answer)
        peer.writer.close()

    async with baseline(serve) as backend, gateway(backend.port) as running:
        got = await once(running.port, ask())
        assert got == answer.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")


async def test_head_has_the_head_of_get_and_no_body() -> None:
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 1234\r\n\r\n"
    chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    for head in (answer, chunked):
        async with baseline(head) as backend, gateway(backend.port) as running, client(running.port) as peer:
            for _ in range(2):
                await peer.send(ask("HEAD"))
                assert await asyncio.wait_for(peer.reader.readexactly(len(head)), 2) == head
            assert backend.connections == 1


async def test_hop_by_hop_fields_end_here_both_ways() -> None:
    answer = (
        b"HTTP/1.1 200 OK\r\nKeep-Alive: timeout=5\r\nConnection: keep-alive, X-Hop\r\nX-Hop: 1\r\n"
        b"X-End: 1\r\nContent-Length: 0\r\n\r\n"
    )
    async with baseline(answer) as backend, gateway(backend.port) as running, client(running.port) as peer:
        fields = (
            "Connection: x-private, close-not",
            "X-Private: 1",
            "Keep-Alive: 9",
            "TE: gzip",
            "X-Kept: 1",
        )
        await peer.send(ask("GET", "/x", b"", *fields))
        assert await peer.until(b"\r\n\r\n") == b"HTTP/1.1 200 OK\r\nX-End: 1\r\nContent-Length: 0\r\n\r\n"
        host = f"127.0.0.1:{backend.port}".encode()
        assert backend.requests == [b"GET /x HTTP/1.1\r\nHost: " + host + b"\r\nX-Kept: 1\r\n\r\n"]


@pytest.mark.parametrize(
    "target",
    [
        "/a%2Fb/%7Ec?q=%20+x&q=&&z",
        "/a//b/../c/./d",
        "/?",
        "/p?x=http://a/b?c",
        "/%E2%82%AC?%ff",
        "/a;b=c,d",
        "*",
    ],
)
async def test_a_target_is_not_rewritten(target: str) -> None:
    answer = ANSWERS["empty"]
    async with baseline(answer) as backend, gateway(backend.port) as running, client(running.port) as peer:
        await peer.send(ask("OPTIONS", target))
        assert await peer.until(b"\r\n\r\n") == answer
        assert backend.requests[0].startswith(f"OPTIONS {target} HTTP/1.1\r\n".encode())


async def test_every_method_and_all_fields_reach_the_baseline_as_sent() -> None:
    async with (
        baseline(ANSWERS["empty"]) as backend,
        gateway(backend.port) as running,
        client(running.port) as peer,
    ):
        for method in ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND"):
            fields = ("AUTHORIZATION: Bearer k", "accept-ENCODING: br", "X-A: 1", "Cookie: s=1", "x-a: 2")
            await peer.send(ask(method, "/v1/files", b"abc", *fields))
            await peer.until(b"\r\n\r\n")
            host = f"Host: 127.0.0.1:{backend.port}"
            lines = [f"{method} /v1/files HTTP/1.1", host, *fields, "Content-Length: 3"]
            assert backend.requests[-1] == "\r\n".join(lines).encode() + b"\r\n\r\nabc"


async def test_nothing_is_added_to_a_request() -> None:
    async with (
        baseline(ANSWERS["empty"]) as backend,
        gateway(backend.port) as running,
        client(running.port) as peer,
    ):
        await peer.send(b"GET / HTTP/1.1\r\nhost: h\r\n\r\n")
        await peer.until(b"\r\n\r\n")
        assert backend.requests == [f"GET / HTTP/1.1\r\nhost: 127.0.0.1:{backend.port}\r\n\r\n".encode()]


async def test_an_old_client_gets_a_dechunked_body_and_the_end_of_the_connection() -> None:
    async with baseline(ANSWERS["chunked"]) as backend, gateway(backend.port) as running:
        got = await once(running.port, b"GET / HTTP/1.0\r\n\r\n")
        head, _, body = got.partition(b"\r\n\r\n")
        assert body == b"hello, world"
        assert b"chunked" not in head and b"Connection: close" in head


async def test_an_old_client_may_keep_its_connection() -> None:
    async with (
        baseline(ANSWERS["length"]) as backend,
        gateway(backend.port) as running,
        client(running.port) as peer,
    ):
        for _ in range(2):
            await peer.send(b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
            head = await peer.until(b"\r\n\r\n")
            assert b"Connection: keep-alive" in head
            assert await peer.reader.readexactly(2) == b"{}"


@pytest.mark.parametrize("size", [3, 70_000, 6_000_000])
@pytest.mark.parametrize("path", [CHAT, "/v1/files"])
@pytest.mark.parametrize("chunked", [False, True], ids=["length", "chunked"])
async def test_a_body_arrives_whole_whatever_its_size_and_framing(
    size: int, path: str, chunked: bool
) -> None:
    body = bytes(range(256)) * (size // 256) + b"x" * (size % 256)
    seen: list[bytes] = []

    async def serve(peer: Peer, request: bytes) -> None:
        seen.append(request.partition(b"\r\n\r\n")[2])
        await peer.send(ANSWERS["length"])

    async with baseline(serve) as backend, gateway(backend.port) as running, client(running.port) as peer:
        if chunked:
            pieces = [body[at : at + 50_000].replace(b"0\r\n\r\n", b"....") for at in range(0, size, 50_000)]
            head = f"POST {path} HTTP/1.1\r\nHost: g\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
            await peer.send(head + b"".join(b"%x\r\n%b\r\n" % (len(p), p) for p in pieces) + b"0\r\n\r\n")
        else:
            await peer.send(ask("POST", path, body))
        assert await asyncio.wait_for(peer.reader.readexactly(len(ANSWERS["length"])), 5) == ANSWERS["length"]
        got = _dechunked(seen[0]) if b"chunked" in backend.requests[0].lower()[:300] else seen[0]
        assert len(got) == size and got[:100] == body[:100] and got[-100:] == body[-100:]


def _dechunked(data: bytes) -> bytes:
    body = b""
    while data:
        size, _, data = data.partition(b"\r\n")
        body, data = body + data[: int(size, 16)], data[int(size, 16) + 2 :]
    return body


@pytest.mark.parametrize("path", [CHAT, "/v1/files"])
async def test_expect_100_continue_is_answered_before_the_body_is_sent(path: str) -> None:
    async with (
        baseline(ANSWERS["length"]) as backend,
        gateway(backend.port) as running,
        client(running.port) as peer,
    ):
        await peer.send(
            f"POST {path} HTTP/1.1\r\nHost: g\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n".encode()
        )
        assert await asyncio.wait_for(peer.until(b"\r\n\r\n"), 2) == b"HTTP/1.1 100 Continue\r\n\r\n"
        await peer.send(b"{}")
        assert await asyncio.wait_for(peer.reader.readexactly(len(ANSWERS["length"])), 2) == ANSWERS["length"]
        assert b"expect" not in backend.requests[0].lower()


async def test_each_chunk_is_passed_on_when_it_arrives() -> None:
    async def serve(peer: Peer, request: bytes) -> None:
        await peer.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for _ in range(4):
            await asyncio.sleep(0.1)
            await peer.send(b"6\r\ndata\n\n\r\n")
        await peer.send(b"0\r\n\r\n")

    async with baseline(serve) as backend, gateway(backend.port) as running, client(running.port) as peer:
        start = monotonic()
        await peer.send(chat(stream=True))
        await peer.until(b"\r\n\r\n")
        times = [monotonic() - start]
        for _ in range(4):
            assert await peer.until(b"\n\n\r\n") == b"6\r\ndata\n\n\r\n"
            times.append(monotonic() - start)
        assert await peer.until(b"0\r\n\r\n") == b"0\r\n\r\n"
        assert times[0] < 0.08
        assert [round(b - a, 1) for a, b in pairwise(times)] == [0.1] * 4
        await until(lambda: len(running.messages) == 2)
        answered = running.messages[1]
        assert isinstance(answered, Answered)
        assert answered.recording.ending is Ending.COMPLETE
        assert b"".join(data for _, data in answered.recording.chunks) == b"data\n\n" * 4


async def test_pipelined_requests_are_answered_in_order() -> None:
    async def serve(peer: Peer, request: bytes) -> None:
        name = request.split(b" ")[1]
        await peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n" + name)

    async with baseline(serve) as backend, gateway(backend.port) as running, client(running.port) as peer:
        await peer.send(ask("GET", "/1") + ask("GET", "/2") + ask("GET", "/3"))
        got = [(await peer.until(b"\r\n\r\n"), await peer.reader.readexactly(2))[1] for _ in range(3)]
        assert got == [b"/1", b"/2", b"/3"]
