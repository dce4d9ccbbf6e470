"""What the client sees when the baseline, the network or the client itself misbehaves."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from time import monotonic

import pytest

from migrate.channel import Answered
from migrate.config import Timeouts
from replay.exchange import Ending
from tests.migrate.gateway.raw import CHAT, Peer, Running, ask, baseline, chat, client, gateway, once, until

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
BEGUN = {
    "length": b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly so much",
    "chunked": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
    "inside a chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n50\r\nhello",
}


def ending(running: Running) -> Ending:
    answered = running.messages[-1]
    assert isinstance(answered, Answered)
    return answered.recording.ending


def error(answer: bytes) -> dict[str, object]:
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b"Content-Type: application/json" in head
    (envelope,) = json.loads(body).values()
    assert set(envelope) == {"message", "type", "param", "code"}
    assert envelope["message"].startswith("gateway (llm-migrate): ")
    return dict(envelope)


@pytest.mark.parametrize("begun", BEGUN.values(), ids=BEGUN)
async def test_an_answer_that_is_broken_off_is_never_ended(begun: bytes) -> None:
    async def serve(peer: Peer, request: bytes) -> None:
        await peer.send(begun)
        await asyncio.sleep(0.05)
        peer.writer.close()

    async with baseline(serve) as backend, gateway(backend.port) as running:
        got = await once(running.port, chat())
        _, _, body = got.partition(b"\r\n\r\n")
        assert body.endswith((b"only so much", b"hello\r\n")) and b"\r\n0\r\n" not in got
        await until(lambda: len(running.messages) == 2)
        assert ending(running) is Ending.RESET
        assert running.tap.counters["cut_short"] == 1


@pytest.mark.parametrize("begun", [*BEGUN.values(), b"HTTP/1.1 200 OK\r\n\r\nuntil close"])
async def test_a_reset_is_passed_on_as_a_reset(begun: bytes) -> None:
    async def serve(peer: Peer, request: bytes) -> None:
        await peer.send(begun)
        await asyncio.sleep(0.05)
        peer.reset()
        raise ConnectionError

    async with baseline(serve) as backend, gateway(backend.port) as running, client(running.port) as peer:
        await peer.send(chat())
        with pytest.raises(ConnectionResetError):
            await asyncio.wait_for(peer.reader.read(-1), 2)
        await until(lambda: len(running.messages) == 2)
        assert ending(running) is Ending.RESET


async def test_malformed_chunks_end_the_answer_and_do_not_hang() -> None:
    async def serve(peer: Peer, request: bytes) -> None:
        await peer.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")
        await asyncio.sleep(0.05)
        await peer.send(b"not a size\r\n")

    async with baseline(serve) as backend, gateway(backend.port) as running:
        got = await once(running.port, chat())
        assert got.endswith(b"hello\r\n")
        await until(lambda: len(running.messages) == 2)
        assert ending(running) is Ending.RESET


async def test_a_connection_closed_while_idle_costs_no_client_an_error() -> None:
    """The worst moment: the server gives up an idle connection just as a request arrives on it."""

    async def serve(peer: Peer, request: bytes) -> None:
        if backend.connections == 1 and len(backend.requests) == 2:
            peer.writer.close()
            raise ConnectionError
        await peer.send(OK)

    async with baseline(serve) as backend, gateway(backend.port) as running, client(running.port) as peer:
        for _ in range(3):
            await peer.send(chat())
            assert await asyncio.wait_for(peer.reader.readexactly(len(OK)), 2) == OK
        assert backend.connections == 3
        running.gateway.settle()
        assert running.tap.counters["retried"] == 1
        assert running.tap.counters["mirrored"] == 3
        assert running.tap.counters["gateway_errors"] == 0


async def test_a_request_that_was_taken_on_a_new_connection_is_not_sent_twice() -> None:
    async def serve(peer: Peer, request: bytes) -> None:
        peer.writer.close()
        raise ConnectionError

    async with baseline(serve) as backend, gateway(backend.port) as running, client(running.port) as peer:
        await peer.send(chat())
        head = await peer.until(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 502 Bad Gateway\r\n")
        assert len(backend.requests) == 1
        assert running.tap.counters["retried"] == 0


async def test_a_refusing_baseline_is_a_502_in_openai_shape_that_names_the_gateway() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
        async with gateway(port) as running, client(running.port) as peer:
            for _ in range(2):
                await peer.send(chat())
                head = await peer.until(b"\r\n\r\n")
                body = await peer.reader.readexactly(
                    int(head.lower().partition(b"content-length: ")[2].split(b"\r")[0])
                )
                assert head.startswith(b"HTTP/1.1 502 Bad Gateway\r\n")
                found = error(head + body)
                assert found["code"] == 502 and found["type"] == "gateway_error"
                assert f"http://127.0.0.1:{port} refused the connection" in str(found["message"])
            await until(lambda: len(running.messages) == 4)
            assert ending(running) is Ending.CONNECT_FAILED


async def test_a_baseline_that_does_not_accept_is_a_504() -> None:
    with socket.socket() as full, contextlib.ExitStack() as stack:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        address = full.getsockname()
        for _ in range(3):
            plug = stack.enter_context(socket.socket())
            plug.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                plug.connect(address)
        async with gateway(address[1], timeouts=Timeouts(connect=0.2)) as running:
            got = await once(running.port, ask("GET", "/x", b"", "Connection: close"))
            assert got.startswith(b"HTTP/1.1 504 Gateway Timeout\r\n")
            assert "within 0.2 s" in str(error(got)["message"])


@pytest.mark.parametrize(
    "limits", [Timeouts(total=0.2), Timeouts(first_byte=0.2)], ids=["total", "first byte"]
)
async def test_a_silent_baseline_is_a_504(limits: Timeouts) -> None:
    async def serve(peer: Peer, request: bytes) -> None:
        await peer.left()

    async with baseline(serve) as backend, gateway(backend.port, timeouts=limits) as running:
        got = await once(running.port, chat().replace(b"Host:", b"Connection: close\r\nHost:"))
        assert got.startswith(b"HTTP/1.1 504 Gateway Timeout\r\n")
        assert "sent nothing for 0.2 s" in str(error(got)["message"])
        await until(lambda: len(running.messages) == 2)
        assert ending(running) is Ending.TIMEOUT


async def test_a_stream_that_keeps_flowing_is_never_cut() -> None:
    async def serve(peer: Peer, request: bytes) -> None:
        await peer.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for _ in range(8):
            await asyncio.sleep(0.1)
            await peer.send(b"1\r\nx\r\n")
        await peer.send(b"0\r\n\r\n")

    limits = Timeouts(first_byte=0.15, total=0.3)
    async with (
        baseline(serve) as backend,
        gateway(backend.port, timeouts=limits) as running,
        client(running.port) as peer,
    ):
        await peer.send(chat(stream=True))
        assert (await asyncio.wait_for(peer.until(b"0\r\n\r\n"), 3)).count(b"x\r\n") == 8


async def test_what_is_not_http_is_a_502() -> None:
    async with baseline(b"SSH-2.0-OpenSSH_9.7\r\n\r\n") as backend, gateway(backend.port) as running:
        got = await once(running.port, chat().replace(b"Host:", b"Connection: close\r\nHost:"))
        assert got.startswith(b"HTTP/1.1 502 Bad Gateway\r\n")
        assert "not HTTP" in str(error(got)["message"])


@pytest.mark.parametrize("request_", [chat(), ask("GET", "/v1/models")], ids=["chat", "other"])
async def test_a_client_that_leaves_while_it_waits_cancels_the_call(request_: bytes) -> None:
    async def serve(peer: Peer, request: bytes) -> None:
        await peer.left()
        raise ConnectionError

    async with baseline(serve) as backend, gateway(backend.port) as running:
        async with client(running.port) as peer:
            await peer.send(request_)
            await until(lambda: backend.requests)
        await asyncio.wait_for(backend.gone.wait(), 1)
        assert running.tap.counters["client_left"] == 1
        assert running.gateway.open == 0
        running.gateway.settle()
        assert not running.messages or ending(running) is Ending.CLIENT_LEFT


async def test_a_client_that_leaves_in_a_stream_cancels_the_call() -> None:
    async def serve(peer: Peer, request: bytes) -> None:
        await peer.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")
        await peer.left()
        raise ConnectionError

    async with baseline(serve) as backend, gateway(backend.port) as running:
        async with client(running.port) as peer:
            await peer.send(chat(stream=True))
            await peer.until(b"hello\r\n")
            start = monotonic()
        await asyncio.wait_for(backend.gone.wait(), 1)
        assert monotonic() - start < 0.5
        await until(lambda: len(running.messages) == 2)
        assert ending(running) is Ending.CLIENT_LEFT


async def test_a_client_that_leaves_in_its_body_is_counted_and_nothing_is_mirrored() -> None:
    async with baseline(OK) as backend, gateway(backend.port) as running:
        async with client(running.port) as peer:
            await peer.send(f"POST {CHAT} HTTP/1.1\r\nHost: g\r\nContent-Length: 100\r\n\r\nabc".encode())
            await until(lambda: running.gateway.open)
        await until(lambda: running.tap.counters["client_left"])
        assert running.tap.counters["incomplete"] == 1
        assert running.messages == [] and backend.requests == []


async def test_a_slow_client_slows_the_baseline_and_holds_no_memory() -> None:
    sent = 0

    async def serve(peer: Peer, request: bytes) -> None:
        nonlocal sent
        await peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n")
        while True:
            await peer.send(b"x" * 65536)
            sent += 65536

    async with baseline(serve) as backend, gateway(backend.port) as running:
        plug = socket.socket()
        plug.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        plug.setblocking(False)
        loop = asyncio.get_running_loop()
        await loop.sock_connect(plug, ("127.0.0.1", running.port))
        await loop.sock_sendall(plug, ask())
        await until(lambda: sent)
        seen = -1
        while seen != sent:
            seen = sent
            await asyncio.sleep(0.2)
        (connection,) = running.gateway.baseline._pooled._acquired
        assert connection.transport is not None and not connection.transport.is_reading()
        plug.close()
        assert sent < 20_000_000  # the kernel's buffers on three sockets, not ours
        await asyncio.wait_for(backend.gone.wait(), 2)


async def test_a_baseline_that_does_not_read_slows_the_upload() -> None:
    stop = asyncio.Event()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await stop.wait()
        writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", 0, limit=1024)
    async with gateway(server.sockets[0].getsockname()[1]) as running, client(running.port) as peer:
        await peer.send(b"POST /v1/files HTTP/1.1\r\nHost: g\r\nContent-Length: 1000000000\r\n\r\n")
        sent = 0
        with contextlib.suppress(TimeoutError):
            while sent < 50_000_000:
                await asyncio.wait_for(peer.send(b"x" * 65536), 0.3)
                sent += 65536
        assert sent < 20_000_000
        stop.set()
        peer.writer.transport.abort()
    server.close()


async def test_an_answer_that_comes_before_the_body_was_read_is_passed_on() -> None:
    early = b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 3\r\n\r\nbig"

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(early)
        await reader.read(10**9)
        while await reader.read(10**6):
            pass
        writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    async with gateway(server.sockets[0].getsockname()[1]) as running, client(running.port) as peer:
        await peer.send(
            b"POST /v1/files HTTP/1.1\r\nHost: g\r\nContent-Length: 1000000\r\n\r\n" + b"x" * 100_000
        )
        assert await asyncio.wait_for(peer.reader.readexactly(len(early)), 2) == early
    server.close()


@pytest.mark.parametrize(
    "request_",
    [
        ask("GET", "/v1/realtime", b"", "Connection: Upgrade", "Upgrade: websocket"),
        ask("CONNECT", "a.example:443"),
    ],
    ids=["websocket", "connect"],
)
async def test_upgrades_are_refused_in_openai_shape(request_: bytes) -> None:
    async with baseline(OK) as backend, gateway(backend.port) as running:
        got = await once(running.port, request_)
        assert got.startswith(b"HTTP/1.1 501 Not Implemented\r\n")
        assert error(got)["code"] == 501
        assert backend.requests == []


async def test_an_upgrade_that_may_be_ignored_is_ignored() -> None:
    async with baseline(OK) as backend, gateway(backend.port) as running, client(running.port) as peer:
        await peer.send(
            ask("GET", "/", b"", "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: A")
        )
        assert await asyncio.wait_for(peer.reader.readexactly(len(OK)), 2) == OK
        assert b"h2c" not in backend.requests[0] and b"HTTP2" not in backend.requests[0]
