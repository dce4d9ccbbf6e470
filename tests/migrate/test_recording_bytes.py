"""What a caller gets through the recording transport is what it would have got without: every byte, piece and exception."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import migrate
from migrate.passing import Passing, Room
from replay.exchange import Ending, Outcome
from tests.migrate.sdk import OWN, reading, running, stored
from tests.replay.servers import acting

TARGET = "http://stand.in/v1/chat/completions"
pieces = st.lists(st.binary(max_size=200) | st.just(b"data: [DONE]\n\n"), max_size=8)
statuses = st.sampled_from([200, 204, 307, 400, 404, 429, 500, 503])
fields = st.sampled_from(
    [
        {},
        {"content-type": "text/event-stream"},
        {"content-type": "application/json", "content-encoding": "gzip"},
        {"content-type": "text/html; charset=nonsense", "retry-after": "soon"},
    ]
)
failures = st.none() | st.sampled_from(["ReadTimeout", "ReadError", "RemoteProtocolError", "PoolTimeout"])
SOON = settings(max_examples=60, deadline=None)


class Given(OWN.BaseTransport, OWN.AsyncBaseTransport):  # type: ignore[name-defined, misc]
    """An inner transport that answers as it is told, in these pieces."""

    def __init__(self, status: int, headers: dict[str, str], parts: list[bytes], fails: str | None) -> None:
        self.status, self.headers, self.parts, self.fails = status, headers, parts, fails

    def handle_request(self, request: Any) -> Any:
        return OWN.Response(self.status, headers=self.headers, stream=Sync(self))

    async def handle_async_request(self, request: Any) -> Any:
        return OWN.Response(self.status, headers=self.headers, stream=Async(self))

    def end(self) -> None:
        if self.fails:
            raise getattr(OWN, self.fails)("as told")


class Sync(OWN.SyncByteStream):  # type: ignore[name-defined, misc]
    def __init__(self, told: Given) -> None:
        self.told = told

    def __iter__(self) -> Iterator[bytes]:
        yield from self.told.parts
        self.told.end()


class Async(OWN.AsyncByteStream):  # type: ignore[name-defined, misc]
    def __init__(self, told: Given) -> None:
        self.told = told

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for part in self.told.parts:
            await asyncio.sleep(0)
            yield part
        self.told.end()


def read(transport: Any, most: int) -> tuple[Any, ...]:
    """Everything that a caller who reads at most so many pieces gets to see."""
    seen: list[bytes] = []
    with OWN.Client(transport=transport) as client:
        try:
            with client.stream("POST", TARGET, content=b'{"model":"m"}') as response:
                for part in response.iter_raw():
                    seen.append(part)
                    if len(seen) == most:
                        break
        except OWN.HTTPError as error:
            return response.status_code, response.headers.raw, seen, type(error), str(error)
    return response.status_code, response.headers.raw, seen, None, ""


async def read_async(transport: Any, most: int) -> tuple[Any, ...]:
    seen: list[bytes] = []
    async with OWN.AsyncClient(transport=transport) as client:
        try:
            async with client.stream("POST", TARGET, content=b'{"model":"m"}') as response:
                async for part in response.aiter_raw():
                    seen.append(part)
                    if len(seen) == most:
                        break
        except OWN.HTTPError as error:
            return response.status_code, response.headers.raw, seen, type(error), str(error)
    return response.status_code, response.headers.raw, seen, None, ""


def test_every_piece_and_every_exception_passes_unchanged(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/migrate.db"
    calls = 0

    @SOON
    @given(statuses, fields, pieces, failures, st.integers(1, 9))
    def law(status: int, headers: dict[str, str], parts: list[bytes], fails: str | None, most: int) -> None:
        nonlocal calls
        calls += 2
        inner = Given(status, headers, parts, fails)
        recording = migrate.RecordingTransport(inner, store=store)
        assert read(recording, most) == read(inner, most)
        assert asyncio.run(read_async(recording, most)) == asyncio.run(read_async(inner, most))

    law()
    exchanges = stored(store)
    assert len(exchanges) == calls and all(exchange.baseline for exchange in exchanges)


def test_every_byte_of_a_socket_passes_unchanged(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/migrate.db"
    told: list[list[bytes]] = []

    async def act(_: bytes, __: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: text/event-stream\r\n\r\n"
        )
        for part in (part for part in told[-1] if part):
            writer.write(b"%x\r\n%b\r\n" % (len(part), part))
            await writer.drain()
        writer.write(b"0\r\n\r\n")

    with running(acting(act)) as url, migrate.record(OWN.Client(), store) as client:

        @SOON
        @given(pieces)
        def law(parts: list[bytes]) -> None:
            told.append(parts)
            with client.stream("POST", f"{url}/v1/chat/completions", json={"model": "m"}) as response:
                assert b"".join(response.iter_raw()) == b"".join(parts)

        law()
    assert len(stored(store)) == len(told)


def test_what_recording_costs_a_piece_is_microseconds() -> None:
    room = Room(64 * 2**20)
    passing = Passing("/v1/chat/completions", (), b"{}", room=room, max_answer=2**24)
    data = b'data: {"choices":[{"index":0,"delta":{"content":"tide"}}]}\n\n'
    start = time.perf_counter()
    for _ in range(10_000):
        passing.feed(data)
    assert (time.perf_counter() - start) / 10_000 < 20e-6


def test_memory_is_taken_by_the_page_and_given_back() -> None:
    room = Room(10 * 4096)
    first = Passing("/", (), b"", room=room, max_answer=2**20)
    assert first.fits(4096) and first.fits(1) and not first.fits(9 * 4096)
    second = Passing("/", (), b"", room=room, max_answer=2**20)
    assert second.fits(8 * 4096) and not second.fits(1)
    first.forget()
    first.forget()
    assert second.fits(2 * 4096) and not second.fits(1)


@pytest.mark.parametrize(("most", "room"), [(1000, 2**20), (2**20, 4096)])
def test_an_answer_beyond_its_bound_is_given_up_and_keeps_no_memory(most: int, room: int) -> None:
    passing = Passing("/", (), b"", room=Room(room), max_answer=most)
    for _ in range(100):
        passing.feed(bytes(100))
    assert not passing.kept and passing.chunks == []
    passing.end(Ending.COMPLETE)
    passing.end(Ending.CLIENT_LEFT)
    assert passing.over is not None and passing.over[1] is Ending.COMPLETE


def test_an_answer_larger_than_the_bound_passes_whole_and_is_stored_as_not_kept(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/migrate.db"
    inner = Given(200, {}, [bytes(2**20)] * 17, None)
    recording = migrate.RecordingTransport(inner, store=store)
    assert read(recording, 99) == read(inner, 99)
    (exchange,) = stored(store)
    assert exchange.baseline is not None and exchange.baseline.outcome is Outcome.MIRROR_DROPPED
    assert exchange.baseline.reason == "answer_too_large"


def test_an_answer_that_nobody_reads_is_recorded_as_left(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/migrate.db"
    request = OWN.Request("POST", TARGET, content=b'{"model":"m"}')
    migrate.RecordingTransport(Given(200, {}, [b"{}"], None), store=store).handle_request(request)
    gc.collect()
    (exchange,) = stored(store)
    assert exchange.baseline is not None and exchange.baseline.outcome is Outcome.CLIENT_CANCELLED


def test_an_answer_made_in_memory_is_recorded_whole(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/migrate.db"
    said = {"choices": [{"index": 0, "message": {"content": "high at four"}, "finish_reason": "stop"}]}
    inner = OWN.MockTransport(lambda _: OWN.Response(200, json=said))
    with OWN.Client(transport=migrate.RecordingTransport(inner, store=store)) as client:
        assert client.post(TARGET, json={"model": "m"}).json() == said
    assert stored(store)
    (exchange,) = reading(store)
    assert exchange.baseline is not None and exchange.baseline.outcome is Outcome.OK


def test_an_answer_that_cannot_be_watched_holds_no_memory(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """As one of a cache, whose stream was consumed before."""
    store = f"sqlite:///{tmp_path}/migrate.db"

    def consumed(_: Any) -> Any:
        response = OWN.Response(200, json={})
        response.stream = Sync(Given(200, {}, [], "ReadError"))
        return response

    with OWN.Client(transport=migrate.RecordingTransport(OWN.MockTransport(consumed), store=store)) as client:
        assert [client.post(TARGET, json={"model": "m"}).json() for _ in range(3)] == [{}] * 3
    exchanges = stored(store)
    assert [exchange.baseline and exchange.baseline.outcome for exchange in exchanges] == [
        Outcome.CLIENT_CANCELLED
    ] * 3
    assert sum("could not be recorded" in record.message for record in caplog.records) <= 1
