"""What servers say of themselves during a run: looked at beside it, kept as a time series, absent where it is not stated."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from migrate.config import Backend
from migrate.servers import watched
from migrate.store import Store
from migrate.told import told
from replay.backends import BACKENDS
from replay.exchange import Arm
from replay.prometheus import Reading, reading, wanted
from replay.scraper import UNKNOWN, scraping
from replay.told import Told
from tests.replay.servers import acting, reply

PAGE = b"# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running 3\nvllm:num_preemptions_total 2\n"


class Pages:
    """A server with pages at some paths; remembers what it was asked for. A page may be a function of the count of asks."""

    def __init__(self, **pages: bytes | Callable[[int], bytes]) -> None:
        self.pages = {f"/{name.replace('__', '/')}": page for name, page in pages.items()}
        self.asked: list[str] = []

    async def act(self, request: bytes, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        path = request.split(b" ")[1].decode()
        self.asked.append(path)
        page = self.pages.get(path)
        if page is None:
            writer.write(reply(b"{}", status="404 Not Found"))
        else:
            writer.write(page(len(self.asked)) if callable(page) else reply(page))


@asynccontextmanager
async def scraped(
    pages: Pages, paths: tuple[str, ...], every_s: float = 0.02, *, drains: bool = False
) -> AsyncIterator[list[bytes]]:
    found: list[bytes] = []

    async def keep(lines: bytes) -> None:
        found.append(lines)

    async with acting(pages.act) as url, scraping(url, keep, pages=paths, every_s=every_s, drains=drains):
        yield found


async def until(done: Callable[[], object]) -> None:
    async with asyncio.timeout(10):
        while not done():
            await asyncio.sleep(0.01)


async def test_looks_are_taken_before_during_and_after() -> None:
    pages = Pages(metrics=PAGE)
    async with scraped(pages, ("/metrics",)) as found:
        assert len(found) == 1
        await until(lambda: len(found) >= 3)
        during = len(found)
    assert len(found) > during


async def test_a_server_without_the_page_is_left_alone() -> None:
    pages = Pages(v1__models=b"{}")
    async with scraped(pages, ("/metrics",)) as found:
        await asyncio.sleep(0.2)
    assert pages.asked == ["/metrics"] and not found


async def test_the_page_that_empties_itself_is_never_asked_of_tensorrt_llm() -> None:
    pages = Pages(metrics=b'[{"iter": 1}]')
    async with scraped(pages, BACKENDS["tensorrt-llm"].metrics):
        await asyncio.sleep(0.1)
    assert pages.asked == ["/prometheus/metrics"]


async def test_of_an_unknown_server_the_harmless_page_is_asked_first() -> None:
    pages = Pages(prometheus__metrics=b"\ntrtllm_num_requests_running 1\n", metrics=b"[]")
    async with scraped(pages, UNKNOWN) as found:
        await until(lambda: len(found) > 1)
    assert set(pages.asked) == {"/prometheus/metrics"} and found


@pytest.mark.parametrize("status", ["503 Service Unavailable", "429 Too Many Requests", "500 Oops"])
async def test_a_server_that_does_not_answer_now_is_asked_again(status: str) -> None:
    def page(count: int) -> bytes:
        return reply(PAGE) if count > 2 else reply(b"", status=status)

    async with scraped(Pages(metrics=page), ("/metrics",)) as found:
        assert not found
        await until(lambda: found)


async def test_a_page_that_is_still_empty_is_asked_again() -> None:
    def page(count: int) -> bytes:
        return reply(PAGE if count > 2 else b"# HELP nothing yet\n")

    async with scraped(Pages(metrics=page), ("/metrics",)) as found:
        await until(lambda: found)


async def test_a_server_that_comes_up_later_is_found(unused_tcp_port: int) -> None:
    found: list[bytes] = []

    async def keep(lines: bytes) -> None:
        found.append(lines)

    async with scraping(f"http://127.0.0.1:{unused_tcp_port}", keep, pages=("/metrics",), every_s=0.02):
        server = await asyncio.start_server(_once, "127.0.0.1", unused_tcp_port)
        async with server:
            await until(lambda: found)


async def _once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.write(reply(PAGE))
    await writer.drain()
    writer.close()


ITERATIONS = (
    b'[{"iter": 1, "numActiveRequests": 1}, {"iter": 2, "numActiveRequests": 5, "numQueuedRequests": 2,'
    b' "kvCacheStats": {"usedNumBlocks": 30, "maxNumBlocks": 120}}]'
)


async def test_statistics_that_are_given_once_are_read_where_they_are_for_us() -> None:
    def page(count: int) -> bytes:
        return reply(b"[]" if count % 2 else ITERATIONS)

    async with scraped(Pages(metrics=page), ("/prometheus/metrics", "/metrics"), drains=True) as found:
        await until(lambda: len(found) > 2)
    seen = reading(4.0, found[0])
    assert (seen.at, seen.running, seen.waiting, seen.kv_cache, seen.preemptions) == (4.0, 5, 2, 0.25, None)


async def test_they_are_read_by_nobody_else(tmp_path: Path) -> None:
    asked: dict[bool, list[str]] = {}
    with Store.open(f"sqlite:///{tmp_path}/m.db", create=True) as store:
        for ours in (False, True):
            run = store.begin_run(kind="shadow", config={}, policy={}, seed=1, at=1.0)
            pages = Pages(metrics=ITERATIONS)
            async with acting(pages.act) as url:
                backend = Backend(kind="tensorrt-llm", url=url, drain_metrics=ours)
                async with watched(store, run, [(Arm.CANDIDATE, backend)]):
                    await until(lambda pages=pages: "/prometheus/metrics" in pages.asked)
                    if ours:
                        await until(lambda run=run: store.readings(run))
            asked[ours] = pages.asked
            assert bool(store.readings(run)) is ours
    assert "/metrics" in asked[True] and "/metrics" not in asked[False]


@pytest.mark.parametrize(
    "page",
    [
        b"[]",
        b"[1]",
        b"[",
        b"{}",
        b'[{"numActiveRequests": "many", "kvCacheStats": {"maxNumBlocks": 0}}]',
        b"[" * 9_000,
    ],
)
def test_other_json_states_nothing(page: bytes) -> None:
    assert reading(1.0, page) == reading(1.0, wanted(page)) == Reading(at=1.0)


@pytest.mark.parametrize(
    "page",
    [
        b'vllm:num_requests_running 1{a="b"} 1\n',
        b'vllm:num_requests_running 1e308\nvllm:num_requests_running{a="b"} 1.7e308\n',
    ],
)
def test_a_strange_page_of_metrics_states_nothing(page: bytes) -> None:
    assert reading(1.0, page) == Reading(at=1.0)


async def test_a_page_that_unpacks_without_end_is_none() -> None:
    bomb = gzip.compress(b'{"data":[' + b"{}," * 10_000_000 + b"{}]}")
    page = reply(bomb, headers=b"Content-Encoding: gzip\r\n")
    async with acting(Pages(v1__models=lambda _: page).act) as url:
        start = asyncio.get_running_loop().time()
        assert await told(url, None) == Told()
        assert asyncio.get_running_loop().time() - start < 2


@pytest.mark.parametrize("context", [b"true", b"-5", b"9" * 4_000, b"8192.0", b"null"])
async def test_a_context_that_is_none_is_not_stated(context: bytes) -> None:
    models = b'{"data": [{"id": "m", "max_model_len": ' + context + b"}]}"
    async with acting(Pages(v1__models=models).act) as url:
        assert (await told(url, None)).context is None


async def test_a_third_partys_server_is_not_asked_what_it_is(tmp_path: Path) -> None:
    pages = Pages(version=b'{"version": "1"}')
    with Store.open(f"sqlite:///{tmp_path}/m.db", create=True) as store:
        run = store.begin_run(kind="shadow", config={}, policy={}, seed=1, at=1.0)
        async with acting(pages.act) as url:
            theirs = Backend(kind="vllm", url=url, third_party=True)
            async with watched(store, run, [(Arm.CANDIDATE, theirs)]):
                await until(lambda: pages.asked)
    assert "/version" not in pages.asked


async def test_what_a_server_says_it_is_is_kept_with_the_run(tmp_path: Path) -> None:
    models = b'{"data": [{"id": "harbor-7b\\u001b[31m", "max_model_len": 8192}]}'
    pages = Pages(version=b'{"version": "0.33.0"}', v1__models=models)
    with Store.open(f"sqlite:///{tmp_path}/m.db", create=True) as store:
        run = store.begin_run(kind="shadow", config={}, policy={}, seed=1, at=1.0)
        async with (
            acting(pages.act) as url,
            watched(store, run, [(Arm.BASELINE, Backend(kind="vllm", url=url))]),
        ):
            await until(lambda: store.told(run))
        said = store.told(run)[Arm.BASELINE]
    assert said == Told(version="0.33.0", models=("harbor-7b[31m",), context=8192)
    assert said.words == "version 0.33.0, serving harbor-7b[31m, context 8,192"


async def test_a_server_that_does_not_say_does_not_hold_the_end_up(tmp_path: Path) -> None:
    async def silent(_: bytes, __: asyncio.StreamReader, ___: asyncio.StreamWriter) -> None:
        await asyncio.sleep(30)

    with Store.open(f"sqlite:///{tmp_path}/m.db", create=True) as store:
        run = store.begin_run(kind="shadow", config={}, policy={}, seed=1, at=1.0)
        async with acting(silent) as url:
            start = asyncio.get_running_loop().time()
            async with watched(store, run, [(Arm.BASELINE, Backend(kind="vllm", url=url))]):
                await asyncio.sleep(0.1)
            assert asyncio.get_running_loop().time() - start < 3
        assert store.told(run) == {}


async def test_both_servers_are_kept_by_arm_and_a_relay_is_not_asked(tmp_path: Path) -> None:
    relay = Pages(metrics=PAGE)
    with Store.open(f"sqlite:///{tmp_path}/m.db", create=True) as store:
        run = store.begin_run(kind="shadow", config={}, policy={}, seed=1, at=1.0)
        async with acting(Pages(metrics=PAGE).act) as vllm, acting(relay.act) as other:
            backends = [
                (Arm.BASELINE, Backend(kind="vllm", url=vllm)),
                (Arm.CANDIDATE, Backend(kind="relay", url=other)),
            ]
            async with watched(store, run, backends):
                await until(lambda: store.readings(run))
        found = store.readings(run)
    assert list(found) == [Arm.BASELINE]
    seen = found[Arm.BASELINE][0]
    assert (seen.running, seen.preemptions, seen.waiting, seen.kv_cache) == (3, 2, None, None)
    assert not relay.asked


async def test_a_server_behind_a_preset_is_asked_for_what_it_calls_its_figures(tmp_path: Path) -> None:
    page = b"llamacpp:requests_processing 2\nllamacpp:requests_deferred 1\nllamacpp:n_decode_total 9\n"
    with Store.open(f"sqlite:///{tmp_path}/m.db", create=True) as store:
        run = store.begin_run(kind="shadow", config={}, policy={}, seed=1, at=1.0)
        async with acting(Pages(metrics=page).act) as url:
            backend = Backend.model_validate({"preset": "llama-cpp", "url": url})
            async with watched(store, run, [(Arm.CANDIDATE, backend)]):
                await until(lambda: store.readings(run))
        seen = store.readings(run)[Arm.CANDIDATE][0]
    assert (seen.running, seen.waiting, seen.kv_cache) == (2, 1, None)


async def test_a_store_that_takes_nothing_stops_nobody(tmp_path: Path) -> None:
    with Store.open(f"sqlite:///{tmp_path}/m.db", create=True) as store:
        run = store.begin_run(kind="shadow", config={}, policy={}, seed=1, at=1.0)
        with store.engine.begin() as connection:
            connection.exec_driver_sql("DROP TABLE server_readings")
        async with (
            acting(Pages(metrics=PAGE).act) as url,
            watched(store, run, [(Arm.BASELINE, Backend(kind="vllm", url=url))]),
        ):
            await asyncio.sleep(0.1)


def test_readings_come_back_in_order_and_belong_to_their_run(tmp_path: Path) -> None:
    with Store.open(f"sqlite:///{tmp_path}/m.db", create=True) as store:
        run, other = (
            store.begin_run(kind="replay", config={}, policy={}, seed=1, at=at) for at in (1.0, 2.0)
        )
        late, early = Reading(at=9.5, running=2.0, kv_cache=0.5), Reading(at=3.0, waiting=0.0)
        for seen in (late, early):
            store.put_reading(run, Arm.CANDIDATE, seen)
        assert store.readings(run) == {Arm.CANDIDATE: [early, late]}
        assert store.readings(other) == {}
