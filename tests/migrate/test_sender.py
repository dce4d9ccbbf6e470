"""The sender alone, with a real keeper and real servers: limits, pauses, budgets, and what it says of its own lateness."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from migrate.config import Backend, Config
from migrate.redact import Redactor
from migrate.replaying.link import Link
from migrate.replaying.plan import Plan
from migrate.replaying.prepare import Prepare, Ready
from migrate.replaying.sender import Sender, Side
from migrate.store import Store
from replay.client import Client
from replay.exchange import Arm, Request
from tests.replay.servers import CHAT_ANSWER, Act, acting, reply

BUSY = reply(
    b'{"error":{"message":"slow down"}}', status="429 Too Many Requests", headers=b"Retry-After: 1\r\n"
)


@dataclass
class Sent:
    """A sender at work, and what its keeper said."""

    sender: Sender
    prepare: Prepare
    stop: asyncio.Event
    store: str
    told: dict[str, Any] = field(default_factory=dict)

    def ready(self, count: int) -> Iterable[Ready]:
        for n in range(count):
            body = b'{"model": "m", "max_tokens": 100, "messages": [{"role": "user", "content": "q"}]}'
            request = Request(
                id=str(n),
                at=0.0,
                method="POST",
                path="/v1/chat/completions",
                headers=(),
                body=body,
                conversation="",
            )
            found = self.prepare.ready(request)
            assert found is not None
            yield found


@asynccontextmanager
async def sending(folder: Path, act: Act, repeat: float = 0.0, **backend: Any) -> AsyncIterator[Sent]:
    async with acting(act) as url, Client() as client:
        config = Config(baseline=Backend.model_validate({"kind": "vllm", "url": url} | backend))
        plan = Plan(source="s", to="baseline", repeat=repeat)
        store_url = f"sqlite:///{folder}/store.db"
        with Store.open(store_url, create=True) as store:
            run = store.begin_run(kind="replay", config={}, policy={}, seed=0, at=0.0)
        told: dict[str, Any] = {}
        stop = asyncio.Event()
        initial = {"store": store_url, "run": run, "redact": {}, "salt": "00"}
        link = Link(initial, told.update, stop.set)
        sides = {Arm.BASELINE: Side(config.baseline, Arm.BASELINE, {}, time.time())}
        sender = Sender(config, client=client, link=link, sides=sides, stop=stop, order=False)
        await link.start()
        try:
            yield Sent(
                sender, Prepare(config, plan, Redactor(config.redact, b"s"), known={}), stop, store_url, told
            )
        finally:
            await link.finish()


async def test_a_pause_that_a_relay_asks_for_holds_for_those_who_wait_for_its_limit(tmp_path: Path) -> None:
    at: list[float] = []

    async def act(_: bytes, __: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        at.append(time.monotonic())
        writer.write(BUSY if len(at) == 1 else reply(CHAT_ANSWER))

    async with sending(tmp_path, act, kind="relay", limits={"requests_per_minute": 1_200}) as sent:
        due = time.monotonic()
        await asyncio.gather(*(sent.sender.send(ready, due) for ready in sent.ready(8)))
    assert len(at) == 9, "the first was sent again"
    assert sum(moment - at[0] < 0.9 for moment in at) <= 2, "only what had left before the answer came"


async def test_a_repeat_is_paid_for_before_it_leaves(tmp_path: Path) -> None:
    asked = 0

    async def act(_: bytes, __: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal asked
        asked += 1
        writer.write(reply(CHAT_ANSWER))

    async with sending(tmp_path, act, repeat=1.0, limits={"tokens_per_day": 200}) as sent:
        (ready,) = sent.ready(1)
        assert sum(ready.tokens) < 200 < 2 * sum(ready.tokens)
        await sent.sender.send(ready, time.monotonic())
        assert asked == 0 and sent.sender.exhausted == "token_budget" and sent.stop.is_set()


async def test_latency_from_its_moment_holds_the_attempts_before_and_the_waits(tmp_path: Path) -> None:
    asked = 0

    async def act(_: bytes, __: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal asked
        asked += 1
        writer.write(BUSY if asked == 1 else reply(CHAT_ANSWER))

    async with sending(tmp_path, act) as sent:
        for ready in sent.ready(1):
            await sent.sender.send(ready, time.monotonic())
        while not sent.told.get("arms"):
            await asyncio.sleep(0.05)
    seen = sent.told["arms"]["baseline"]
    assert seen["ok"] == 1 and seen["e2e"][0] < 0.5 and seen["from_due"][0] > 0.9


async def test_a_store_that_takes_nothing_holds_up_sending_until_it_does(tmp_path: Path) -> None:
    asked = 0

    async def act(_: bytes, __: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal asked
        asked += 1
        writer.write(reply(CHAT_ANSWER))

    def renamed(before: str, after: str) -> None:
        with contextlib.closing(sqlite3.connect(tmp_path / "store.db", timeout=10)) as connection:
            connection.execute(f"alter table {before} rename to {after}")

    async with sending(tmp_path, act) as sent:
        first, second, third = sent.ready(3)
        renamed("observations", "gone")
        await sent.sender.send(first, time.monotonic())
        while sent.told.get("store", {}).get("failed_attempts", 0) < 3:
            await asyncio.sleep(0.05)
        waiting = asyncio.ensure_future(sent.sender.send(second, time.monotonic()))
        await asyncio.sleep(0.2)
        assert asked == 1 and not waiting.done()
        renamed("gone", "observations")
        await waiting
        assert asked == 2
        await sent.sender.send(third, time.monotonic())
    with Store.open(sent.store) as store:
        assert len(store.answered(store.run().id)[Arm.BASELINE]) == 3


async def test_a_loop_that_was_held_up_for_a_while_was_late_all_that_while(tmp_path: Path) -> None:
    async def act(_: bytes, __: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(reply(CHAT_ANSWER))

    async with sending(tmp_path, act) as sent:
        watching = asyncio.ensure_future(sent.sender.watch())
        await asyncio.sleep(0.5)
        time.sleep(1.0)
        await asyncio.sleep(0.2)
        watching.cancel()
    late = sent.sender.loop_lag.quantile(0.5)
    assert late is not None and late > 0.1, "more than half of the time"
    with pytest.raises(asyncio.CancelledError):
        await watching
