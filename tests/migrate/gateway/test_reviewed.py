"""Faults that a review found in the gateway, each as the kind it stands for."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from time import monotonic

import pytest

from migrate import relay
from migrate.config import Timeouts
from migrate.tap import Ticket
from tests.migrate.gateway.raw import CHAT, Peer, ask, baseline, chat, client, gateway, once, until

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"


async def test_bytes_that_nobody_asked_for_are_nobodys_answer() -> None:
    async def serve(peer: Peer, request: bytes) -> None:
        await peer.send(OK)
        await asyncio.sleep(0.02)
        await peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nBAD")

    async with baseline(serve) as backend, gateway(backend.port) as running:
        for _ in range(3):
            async with client(running.port) as peer:
                await peer.send(ask())
                assert await asyncio.wait_for(peer.until(b"{}"), 2) == OK
            await asyncio.sleep(0.08)


@pytest.mark.parametrize("where", ["feed", "head"])
async def test_a_failure_of_ours_never_puts_a_second_answer_into_the_first(
    monkeypatch: pytest.MonkeyPatch, where: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever raises, the client gets the baseline's bytes or a closed connection."""

    def broken(*_: object) -> None:
        raise RuntimeError("ours")

    caplog.set_level(logging.CRITICAL)
    monkeypatch.setattr(Ticket, "_feed" if where == "feed" else "head", broken)
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 300\r\n\r\n" + b"a" * 300
    async with baseline(answer) as backend, gateway(backend.port) as running, client(running.port) as peer:
        await peer.send(chat())
        got = await asyncio.wait_for(peer.reader.read(len(answer)), 2)
        assert answer.startswith(got) and b"500" not in got
        if where == "feed":
            assert got == answer and running.tap.counters["answers_dropped"] == 1


async def test_a_cut_answer_is_a_reset_where_a_close_would_be_its_end() -> None:
    async def serve(peer: Peer, request: bytes) -> None:
        await peer.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")
        await asyncio.sleep(0.05)
        peer.writer.close()

    async with baseline(serve) as backend, gateway(backend.port) as running, client(running.port) as peer:
        await peer.send(b"GET /x HTTP/1.0\r\nHost: a\r\n\r\n")
        with pytest.raises(ConnectionResetError):
            await asyncio.wait_for(peer.reader.read(-1), 2)


async def test_silence_after_an_interim_head_has_its_limit() -> None:
    async def serve(peer: Peer, request: bytes) -> None:
        await peer.send(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n")
        await peer.left()

    limits = Timeouts.model_validate({"first_byte": "300ms"})
    async with baseline(serve) as backend, gateway(backend.port, timeouts=limits) as running:
        got = await once(running.port, ask("GET", "/x", b"", "Connection: close"))
    assert got.startswith(b"HTTP/1.1 103 ") and b"HTTP/1.1 504 " in got


async def test_a_malformed_chunk_in_a_later_packet_is_a_400_and_does_not_hang() -> None:
    async with baseline(OK) as backend, gateway(backend.port) as running, client(running.port) as peer:
        await peer.send(b"POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n")
        await asyncio.sleep(0.05)
        await peer.send(b"ZZ\r\n")
        got = await asyncio.wait_for(peer.rest(), 3)
        assert got.startswith(b"HTTP/1.1 400 ") and b"gateway (llm-migrate)" in got
        await until(lambda: running.gateway.open == 0)


@pytest.mark.parametrize("path", ["/x", CHAT])
async def test_an_upload_that_keeps_flowing_is_not_silence(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relay, "PATIENCE", 0.1)
    limits = Timeouts.model_validate({"first_byte": "200ms"})
    async with (
        baseline(OK) as backend,
        gateway(backend.port, timeouts=limits) as running,
        client(running.port) as peer,
    ):
        await peer.send(ask("POST", path, b"", "Content-Length: 60"))
        for _ in range(6):
            await asyncio.sleep(0.1)
            await peer.send(b"0123456789")
        assert await asyncio.wait_for(peer.until(b"{}"), 2) == OK
        assert backend.requests[0].endswith(b"0123456789" * 6)


async def test_an_answer_before_the_end_of_a_slow_body_is_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relay, "PATIENCE", 0.05)

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError), contextlib.closing(writer):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            await writer.drain()
            await asyncio.sleep(0.1)

    server = await asyncio.start_server(refuse, "127.0.0.1", 0)
    async with server, gateway(server.sockets[0].getsockname()[1]) as running, client(running.port) as peer:
        await peer.send(ask("POST", CHAT, b"", "Content-Length: 1000") + b"only the beginning")
        assert (await asyncio.wait_for(peer.until(b"\r\n\r\n"), 2)).startswith(b"HTTP/1.1 413 ")
        await asyncio.sleep(0.15)


async def test_a_client_that_sends_no_more_of_its_body_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relay, "PATIENCE", 0.05)
    monkeypatch.setattr(relay, "CLIENT_SILENCE", 0.1)
    async with baseline(OK) as backend, gateway(backend.port) as running, client(running.port) as peer:
        await peer.send(ask("POST", "/x", b"", "Content-Length: 10") + b"abc")
        assert (await asyncio.wait_for(peer.until(b"\r\n\r\n"), 2)).startswith(b"HTTP/1.1 408 ")


async def test_a_server_that_takes_a_request_and_dies_over_it_is_not_asked_twice() -> None:
    async def serve(peer: Peer, request: bytes) -> None:
        if b"poison" in request:
            await asyncio.sleep(0.4)
            raise ConnectionError
        await peer.send(OK)

    async with baseline(serve) as backend, gateway(backend.port) as running, client(running.port) as peer:
        await peer.send(ask())
        await peer.until(b"{}")
        await peer.send(ask("POST", "/x", b"poison", "Connection: close"))
        assert (await asyncio.wait_for(peer.rest(), 3)).startswith(b"HTTP/1.1 502 ")
        assert sum(b"poison" in request for request in backend.requests) == 1


async def test_a_reused_connection_that_stays_silent_is_not_asked_twice() -> None:
    async def serve(peer: Peer, request: bytes) -> None:
        if b"poison" in request:
            await peer.left()
        await peer.send(OK)

    limits = Timeouts.model_validate({"first_byte": "100ms"})
    async with (
        baseline(serve) as backend,
        gateway(backend.port, timeouts=limits) as running,
        client(running.port) as peer,
    ):
        await peer.send(ask())
        await peer.until(b"{}")
        await peer.send(ask("POST", "/x", b"poison", "Connection: close"))
        assert (await asyncio.wait_for(peer.rest(), 3)).startswith(b"HTTP/1.1 504 ")
        assert sum(b"poison" in request for request in backend.requests) == 1


async def test_a_client_that_leaves_a_stuck_upload_leaves_nothing_behind() -> None:
    async def stuck(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError), contextlib.closing(writer):
            await reader.readuntil(b"\r\n\r\n")
            await asyncio.sleep(1)  # reads no more
        ended.set_result(None)

    ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    server = await asyncio.start_server(stuck, "127.0.0.1", 0, limit=1024)
    async with server, gateway(server.sockets[0].getsockname()[1]) as running:
        async with client(running.port) as peer:
            peer.writer.write(ask("POST", "/x", b"x" * 8_000_000))
            await asyncio.sleep(0.3)
        await until(lambda: running.gateway.open == 0)
        pooled = running.gateway.baseline._fresh
        await until(lambda: not pooled._acquired)
        await ended


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", b"501"),
        (b"POST /x HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", b"400"),
    ],
)
async def test_a_body_that_would_be_framed_otherwise_on_the_next_hop_is_refused(
    head: bytes, status: bytes
) -> None:
    async with baseline(OK) as backend, gateway(backend.port) as running:
        got = await once(running.port, head + b"3\r\nabc\r\n0\r\n\r\n")
        assert got.split()[1] == status and backend.requests == []


async def test_many_small_parts_take_no_time_from_other_clients() -> None:
    body = b'{"model":"m","messages":[' + b"{}," * 1_300_000 + b"{}]}"
    async with baseline(OK) as backend, gateway(backend.port) as running:
        async with client(running.port) as heavy, client(running.port) as light:
            await heavy.send(ask("POST", CHAT, body))
            await heavy.until(b"{}")
            start = monotonic()
            slowest = 0.0
            while monotonic() - start < 0.5:
                sent = monotonic()
                await light.send(ask())
                await light.until(b"{}")
                slowest = max(slowest, monotonic() - sent)
        assert slowest < 0.25
        assert running.tap.counters["too_large"] == 1
