"""What a process of its own reads for a replay, and what is said when it cannot."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from migrate.config import Backend, Config
from migrate.errors import MigrateError, StoreError
from migrate.replaying.feed import Feed, Feeding
from migrate.replaying.plan import Plan
from migrate.store import Store
from replay.exchange import Request


@dataclass(frozen=True)
class Numbered:
    """So many requests, a second apart; then perhaps the store breaks."""

    count: int
    breaks: bool = False

    def __call__(self, store: Store) -> Iterator[tuple[Request, float | None]]:
        for number in range(self.count):
            body = b'{"model": "m"}' if number % 10 else b"["
            yield (
                Request(
                    id=str(number),
                    at=float(number),
                    method="POST",
                    path="/v1/chat/completions",
                    headers=(),
                    body=body,
                    conversation="",
                ),
                None,
            )
        if self.breaks:
            raise StoreError("the disk is gone")


def feeding(folder: Path, captured: Numbered) -> Feeding:
    url = f"sqlite:///{folder}/store.db"
    with Store.open(url, create=True) as store:
        run = store.begin_run(kind="replay", config={}, policy={}, seed=0, at=0.0)
    config = Config(baseline=Backend(kind="vllm", url="http://127.0.0.1:9"))
    plan = Plan(source="s", to="baseline", rate=100.0)
    return Feeding(store=url, run=run, captured=captured, config=config, plan=plan, salt=b"s")


async def test_everything_comes_in_order_with_what_was_found(tmp_path: Path) -> None:
    with Feed(feeding(tmp_path, Numbered(5_000))) as feed:
        found = [(at, ready.request.id) async for at, ready in feed]
    assert [name for _, name in found] == [str(n) for n in range(5_000) if n % 10]
    assert [at for at, _ in found] == sorted(at for at, _ in found) and found[0][0] == 0
    assert feed.read.unusable == {"not_json": 500} and (feed.read.first, feed.read.last) == (0.0, 4_999.0)


async def test_a_store_that_breaks_is_said_in_its_own_words(tmp_path: Path) -> None:
    with (
        Feed(feeding(tmp_path, Numbered(30, breaks=True))) as feed,
        pytest.raises(MigrateError, match="the disk is gone"),
    ):
        _ = [at async for at, _ in feed]
    assert feed.read.ended


async def test_a_reader_that_is_killed_is_no_end(tmp_path: Path) -> None:
    async def killed(feed: Feed) -> None:
        async for at, _ in feed:
            if at == 0:
                os.kill(feed.process, signal.SIGKILL)

    with Feed(feeding(tmp_path, Numbered(10**6))) as feed, pytest.raises(MigrateError) as said:
        await killed(feed)
    assert "exit code -9; migrate replay --resume goes on" in str(said.value)


async def test_whoever_stops_a_service_leaves_the_end_to_the_sender(tmp_path: Path) -> None:
    with Feed(feeding(tmp_path, Numbered(30_000))) as feed:
        items = aiter(feed)
        await anext(items)
        for number in (signal.SIGTERM, signal.SIGHUP):
            os.kill(feed.process, number)
        assert sum([1 async for _ in items]) == 26_999


async def test_leaving_early_ends_the_process(tmp_path: Path) -> None:
    with Feed(feeding(tmp_path, Numbered(10**6))) as feed:
        items = aiter(feed)
        assert (await anext(items))[0] == 0
        await items.aclose()
    before = time.monotonic()
    while Path(f"/proc/{feed.process}").exists() and time.monotonic() - before < 5:
        time.sleep(0.01)
    assert not Path(f"/proc/{feed.process}").exists()
