"""The mirror process as the gateway sees it, over a real channel to a real process."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator
from time import monotonic

import orjson
import pytest

from migrate.channel import Admitted, Counted, Message
from migrate.supervisor import NICENESS, Mirror, MirrorFailed
from replay.exchange import Request
from tests.migrate.gateway.raw import until


def admitted(size: int = 100) -> Message:
    request = Request(id="r", at=0.0, method="POST", path="/", headers=(), body=b"x" * size, conversation="c")
    return Admitted(request=request)


def mirror(what: str, said: list[str], *, queue: int = 2**20) -> Mirror:
    return Mirror(
        (sys.executable, "-m", "tests.migrate.standin", "{fd}", what),
        initial=lambda run: orjson.dumps({"run": run}),
        queue=queue,
        say=said.append,
    )


@contextlib.asynccontextmanager
async def started(what: str, said: list[str], *, queue: int = 2**20) -> AsyncIterator[Mirror]:
    one = mirror(what, said, queue=queue)
    await one.start()
    try:
        yield one
    finally:
        await one.stop(0.5)


async def test_it_is_ready_with_a_run_takes_messages_and_ends_when_told() -> None:
    said: list[str] = []
    async with started("serve", said) as one:
        assert (one.run, one.up, one.restarts) == ("run-1", True, 0)
        assert one.send(admitted()) is None
        assert one.send(Counted(counters={"passed": 3})) is None
        await until(lambda: one.status.get("counters") == {"passed": 3})
        one.control(mirroring=False)
        await until(lambda: one.status["mirroring"] is False)
        assert one.status["nice"] in (0, NICENESS)  # it may have looked before it was set back
        assert one.heard_at is not None
    assert said == ["stopped after 4 messages"]
    assert one.send(admitted()) == "mirror_down"
    assert not one.up


async def test_production_has_the_processor_first() -> None:
    async with started("serve", []) as one:
        assert one._process is not None
        assert os.getpriority(os.PRIO_PROCESS, one._process.pid) == NICENESS


async def test_a_mirror_that_cannot_start_says_why_and_with_which_code() -> None:
    one = mirror("refuse", [])
    with pytest.raises(MirrorFailed, match=r"^store sqlite:///x.db is of a newer version") as failed:
        await one.start()
    assert failed.value.exit_code == 2
    await one.stop(0.1)


async def test_what_a_deaf_mirror_does_not_read_is_dropped_and_never_waited_for() -> None:
    said: list[str] = []
    async with started("deaf", said, queue=100_000) as one:
        start = monotonic()
        refused = [one.send(admitted(10_000)) for _ in range(200)]
        assert monotonic() - start < 0.5
        assert refused[0] is None and refused[-1] == "queue_full"
        assert one.send(admitted(1_000_000)) == "queue_full"
        one.control(mirroring=False)
    assert any("killed" in line for line in said)


async def test_a_mirror_that_dies_is_brought_back_into_the_same_run_as_it_was_set() -> None:
    said: list[str] = []
    async with started("die", said) as one:
        one.control(mirroring=False)
        await until(lambda: not one.up)
        assert one.send(admitted()) == "mirror_down"
        await until(lambda: one.problem == "it ended (exit code 7)")
        await asyncio.wait_for(_until_up(one), 5)
        assert one.restarts == 1
        assert one.send(admitted()) is None
        await until(lambda: one.status["messages"] == 2)
        assert one.status["start"] == "run-1"
        assert one.status["mirroring"] is False
    assert one.problem is None
    assert "something went wrong" in said


async def test_a_mirror_that_is_killed_is_noticed() -> None:
    said: list[str] = []
    async with started("serve", said) as one:
        assert one._process is not None
        one._process.send_signal(signal.SIGKILL)
        await until(lambda: not one.up)
        await until(lambda: one.problem == "it ended (signal 9)")
        assert one.send(admitted()) == "mirror_down"


async def _until_up(one: Mirror) -> None:
    while not one.up or one.restarts == 0:
        await asyncio.sleep(0.01)
