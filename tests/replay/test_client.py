"""The sending client against servers that behave, and servers that do not."""

from __future__ import annotations

import asyncio
import resource
import socket
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from replay.client import Call, Client
from replay.exchange import Ending, Outcome, Recording
from replay.failures import transport_failure
from tests.replay.servers import CHAT_ANSWER, acting, reply, saying

STREAM_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


async def send(url: str, **more: Any) -> Recording:
    async with Client() as client:
        return await client.send(Call(url=f"{url}/v1/chat/completions", body=b"{}", **more))


def body(recording: Recording) -> bytes:
    return b"".join(data for _, data in recording.chunks)


async def test_an_answer_is_recorded_with_its_bytes_headers_and_times() -> None:
    async with acting(saying(reply(CHAT_ANSWER, headers=b"X-A: 1\r\nx-a: 2\r\n"))) as url:
        got = await send(url)
    assert (got.ending, got.status, body(got)) == (Ending.COMPLETE, 200, CHAT_ANSWER)
    assert ("X-A", "1") in got.headers and ("x-a", "2") in got.headers
    assert got.head_at is not None and got.sent_at <= got.head_at <= got.chunks[0][0] <= got.ended_at


async def test_only_what_the_call_says_is_sent() -> None:
    seen: list[bytes] = []

    async def act(request: bytes, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(request)
        writer.write(reply(b"{}", headers=b"Set-Cookie: a=b\r\n"))

    async with acting(act) as url, Client() as client:
        for _ in range(2):
            await client.send(Call(url=f"{url}/p%2Fq?x=%20", headers=(("X-One", "1"),), body=b"{}"))
    names = [line.split(b":")[0].lower() for line in seen[1].split(b"\r\n\r\n")[0].split(b"\r\n")[1:]]
    assert sorted(names) == [b"content-length", b"host", b"x-one"]
    assert seen[1].startswith(b"POST /p%2Fq?x=%20 HTTP/1.1\r\n")


async def test_chunks_are_timed_as_they_arrive() -> None:
    async def act(_: bytes, __: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(STREAM_HEAD)
        for n in range(3):
            writer.write(chunk(b"data: %d\n\n" % n))
            await asyncio.sleep(0.05)
        writer.write(b"0\r\n\r\n")

    async with acting(act) as url:
        got = await send(url)
    gaps = [later[0] - earlier[0] for earlier, later in zip(got.chunks, got.chunks[1:], strict=False)]
    assert len(got.chunks) == 3 and all(0.03 < gap < 0.15 for gap in gaps), gaps


async def test_a_socket_left_open_after_done_does_not_hold_the_answer() -> None:
    async def act(_: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(STREAM_HEAD + chunk(b"data: [DONE]\n\n"))
        await reader.read()

    async with acting(act) as url, asyncio.timeout(5):
        got = await send(url)
    assert got.ending is Ending.COMPLETE and body(got) == b"data: [DONE]\n\n"


@pytest.mark.parametrize("pieces", [(b"data: [DO", b"NE]\n\n"), (b"data: [DONE]\r\n\r", b"\n")])
async def test_done_may_come_in_pieces(pieces: tuple[bytes, ...]) -> None:
    async def act(_: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(STREAM_HEAD)
        for piece in pieces:
            writer.write(chunk(piece))
            await writer.drain()
            await asyncio.sleep(0.02)
        await reader.read()

    async with acting(act) as url, asyncio.timeout(5):
        got = await send(url)
    assert got.ending is Ending.COMPLETE and body(got) == b"".join(pieces)


async def silent(_: bytes, reader: asyncio.StreamReader, __: asyncio.StreamWriter) -> None:
    await reader.read()


async def head_then_silence(_: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(STREAM_HEAD + chunk(b"data: {}\n\n"))
    await reader.read()


async def drip(_: bytes, __: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(STREAM_HEAD)
    while True:
        writer.write(chunk(b": wait\n\n"))
        await writer.drain()
        await asyncio.sleep(0.02)


async def cut(_: bytes, __: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(STREAM_HEAD + chunk(b"data: {}\n\n"))
    await writer.drain()
    writer.transport.abort()


async def flood(_: bytes, __: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
    while True:
        writer.write(b"\xff" * 65_536)
        await writer.drain()


@pytest.mark.parametrize(
    ("act", "ending", "words"),
    [
        (silent, Ending.TIMEOUT, "no byte for 0.3 s"),
        (head_then_silence, Ending.TIMEOUT, "no byte for 0.3 s"),
        (drip, Ending.TIMEOUT, "not complete within 0.8 s"),
        (cut, Ending.RESET, ""),
        (flood, Ending.OVERSIZE, ""),
        (saying(b"HTTP/1.1 nonsense\r\n\r\n"), Ending.RESET, ""),
        (saying(b"\x00\xff" * 50 + b"\r\n\r\n"), Ending.RESET, ""),
        (saying(b"HTTP/1.1 200 OK\r\nX: " + b"a" * 100_000 + b"\r\n\r\n"), Ending.RESET, ""),
        (saying(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"), Ending.RESET, ""),
    ],
)
async def test_whatever_fails_is_in_the_recording(act: Any, ending: Ending, words: str) -> None:
    async with acting(act) as url, asyncio.timeout(10):
        got = await send(url, first_byte=0.3, total=0.8, max_answer=1_000_000)
    assert got.ending is ending and words in got.detail
    assert len(body(got)) <= 1_000_000


async def test_nobody_listening() -> None:
    with socket.create_server(("127.0.0.1", 0)) as sock:
        url = f"http://127.0.0.1:{sock.getsockname()[1]}"
    got = await send(url)
    assert got.ending is Ending.CONNECT_FAILED and got.status is None


async def test_a_name_that_does_not_exist() -> None:
    assert (await send("http://no-such-host.invalid", connect=2.0)).ending is Ending.CONNECT_FAILED


async def test_redirects_are_answers_not_orders() -> None:
    moved = b"HTTP/1.1 307 Moved\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n"
    async with acting(saying(moved)) as url:
        assert (await send(url)).status == 307


async def test_an_idle_connection_closed_by_the_server_costs_nothing() -> None:
    answered = 0

    async def act(_: bytes, __: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal answered
        answered += 1
        if answered == 2:
            writer.transport.abort()  # the second request arrives on a connection that is being closed
            return
        writer.write(reply(b"{}"))

    async with acting(act) as url, Client() as client:
        first = await client.send(Call(url=url, body=b"{}"))
        second = await client.send(Call(url=url, body=b"{}"))
        assert client.idle_resets == 1
    assert (first.status, second.status, answered) == (200, 200, 3)


async def test_however_many_idle_connections_were_closed_a_new_one_is_tried() -> None:
    used: set[asyncio.StreamWriter] = set()

    async def act(_: bytes, __: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if writer in used:
            writer.transport.abort()
            return
        used.add(writer)
        await asyncio.sleep(0.05)
        writer.write(reply(b"{}"))

    async with acting(act) as url, Client() as client:
        await asyncio.gather(*(client.send(Call(url=url, body=b"{}")) for _ in range(3)))
        assert len(used) == 3
        got = await client.send(Call(url=url, body=b"{}"))
        assert got.status == 200 and client.idle_resets == 3


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


async def test_a_server_that_never_reads_keeps_no_connection_of_ours() -> None:
    with socket.create_server(("127.0.0.1", 0)) as sock:  # the system accepts for it
        url = f"http://127.0.0.1:{sock.getsockname()[1]}"
        async with Client() as client:
            before = open_files()
            for _ in range(3):
                got = await client.send(Call(url=url, body=b"x" * 16_000_000, first_byte=0.1))
                assert got.ending is Ending.TIMEOUT
            await asyncio.sleep(0.05)
            assert open_files() == before


@contextmanager
def few_files(more: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (open_files() + more, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def test_what_this_machine_cannot_send_is_no_failure_of_the_server() -> None:
    with socket.create_server(
        ("127.0.0.1", 0), backlog=50
    ) as sock:  # the system accepts, with no file of ours
        url = f"http://127.0.0.1:{sock.getsockname()[1]}"
        async with Client() as client:
            call = Call(url=url, body=b"{}", first_byte=0.3)
            with few_files(10):
                answers = await asyncio.gather(*(client.send(call) for _ in range(30)))
    outcomes = Counter(transport_failure(one).outcome for one in answers)
    assert set(outcomes) == {Outcome.TIMEOUT, Outcome.NOT_SENT} and outcomes[Outcome.TIMEOUT] >= 5, outcomes


async def test_a_fresh_connection_that_breaks_is_not_tried_again() -> None:
    asked = 0

    async def act(_: bytes, __: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal asked
        asked += 1
        writer.transport.abort()

    async with acting(act) as url:
        got = await send(url)
    assert got.ending is Ending.RESET and asked == 1


async def test_cancelling_closes_the_connection() -> None:
    gone = asyncio.Event()

    async def act(_: bytes, reader: asyncio.StreamReader, __: asyncio.StreamWriter) -> None:
        await reader.read()
        gone.set()

    async with acting(act) as url, Client() as client:
        task = asyncio.create_task(client.send(Call(url=url, body=b"{}")))
        await asyncio.sleep(0.1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(gone.wait(), 2)


async def test_tiny_chunks_and_large_ones_arrive_whole() -> None:
    tiny = [bytes([65 + n % 26]) for n in range(30_000)]
    huge = b"x" * 3_000_000

    async def act(request: bytes, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        pieces = tiny if b"/tiny" in request else [huge]
        writer.write(STREAM_HEAD + b"".join(map(chunk, pieces)) + b"0\r\n\r\n")

    async with acting(act) as url, Client() as client:
        for path, said in (("/tiny", b"".join(tiny)), ("/huge", huge), ("/tiny", b"".join(tiny))):
            got = await client.send(Call(url=url + path, body=b"{}"))
            assert got.ending is Ending.COMPLETE and body(got) == said
            times = [at for at, _ in got.chunks]
            assert times == sorted(times) and got.sent_at <= times[0] and times[-1] <= got.ended_at


async def test_a_body_without_a_length_ends_with_the_connection() -> None:
    async def act(_: bytes, __: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\nhigh at four")
        await writer.drain()
        writer.close()

    async with acting(act) as url:
        got = await send(url)
    assert got.ending is Ending.COMPLETE and body(got) == b"high at four"


async def test_interim_answers_are_not_the_answer() -> None:
    hints = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
    async with acting(saying(hints + reply(CHAT_ANSWER))) as url:
        got = await send(url)
    assert got.status == 200 and body(got) == CHAT_ANSWER


async def test_an_answer_that_nobody_asked_for_is_never_taken_for_the_next() -> None:
    async def act(_: bytes, __: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(reply(b'{"mine":1}') + reply(b'{"smuggled":1}'))

    async with acting(act) as url, Client() as client:
        for _ in range(3):
            got = await client.send(Call(url=url, body=b"{}"))
            assert got.ending is Ending.COMPLETE and body(got) == b'{"mine":1}'
            await asyncio.sleep(0.02)


async def test_an_open_connection_is_used_again_and_a_new_one_says_what_it_took() -> None:
    async with acting(saying(reply(b"{}"))) as url, Client() as client:
        first = await client.send(Call(url=url, body=b"{}"))
        second = await client.send(Call(url=url, body=b"{}"))
    assert first.connect_s is not None and 0 < first.connect_s < 1 and second.connect_s is None


@pytest.mark.parametrize(
    "call",
    [
        Call(url="http://127.0.0.1:1/v1", headers=(("X-A", "1\r\nX-B: 2"),)),
        Call(url="http://127.0.0.1:1/v1/a b"),
        Call(url="ftp://127.0.0.1/v1"),
        Call(url="http:///v1"),
    ],
)
async def test_what_cannot_be_written_as_a_request_is_never_sent(call: Call) -> None:
    async with Client() as client:
        got = await client.send(call)
    assert got.ending is Ending.CONNECT_FAILED and got.detail.startswith("ValueError")


async def test_a_thousand_at_once_each_get_their_own() -> None:
    async def act(request: bytes, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.05)
        writer.write(reply(request.partition(b"\r\n\r\n")[2]))

    async with acting(act) as url, Client() as client:
        calls = [Call(url=url, body=b"%d" % n, connect=20) for n in range(1_000)]
        answers = await asyncio.gather(*map(client.send, calls))
    assert [body(one) for one in answers] == [call.body for call in calls]
