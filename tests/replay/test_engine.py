"""The two loops: what leaves when, what waits for what, and what a stop does."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable
from typing import Any

import pytest

from replay.engine import closed_loop, open_loop


async def each(items: Iterable[Any]) -> AsyncIterator[Any]:
    for item in items:
        yield item


async def test_an_open_loop_never_waits_for_an_answer() -> None:
    left: list[float] = []

    async def send(_: int, due: float) -> None:
        left.append(time.monotonic() - due)
        await asyncio.sleep(0.5)

    begun = time.monotonic()
    await open_loop(each((n * 0.01, n) for n in range(30)), send, asyncio.Event(), grace=1)
    assert time.monotonic() - begun < 1.5 and len(left) == 30
    assert min(left) >= 0 and sorted(left)[15] < 0.05, "never early, and not late by what answers take"


async def test_what_is_due_at_once_leaves_at_once() -> None:
    left: list[float] = []

    async def send(_: int, due: float) -> None:
        left.append(time.monotonic() - due)

    await open_loop(each((0.0, n) for n in range(500)), send, asyncio.Event(), grace=1)
    assert len(left) == 500 and max(left) < 0.5


async def test_a_closed_loop_keeps_so_many_going_and_no_more() -> None:
    going = most = done = 0

    async def send(_: int, __: float) -> None:
        nonlocal going, most, done
        going += 1
        most = max(most, going)
        await asyncio.sleep(0.005)
        going -= 1
        done += 1

    await closed_loop(each(range(40)), send, asyncio.Event(), concurrency=4, grace=1)
    assert (most, done) == (4, 40)


async def test_after_a_stop_nothing_leaves_and_what_is_in_flight_may_finish() -> None:
    stop, ended = asyncio.Event(), []

    async def send(n: int, _: float) -> None:
        if n == 3:
            stop.set()
        await asyncio.sleep(0.05)
        ended.append(n)

    await open_loop(each((n * 0.02, n) for n in range(1_000)), send, stop, grace=5)
    assert ended == [0, 1, 2, 3]


async def test_what_has_not_ended_within_the_grace_is_cancelled() -> None:
    stop, cancelled = asyncio.Event(), []

    async def send(n: int, _: float) -> None:
        stop.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.append(n)
            raise

    begun = time.monotonic()
    await open_loop(each([(0.0, 1)]), send, stop, grace=0.05)
    assert cancelled == [1] and time.monotonic() - begun < 2


@pytest.mark.parametrize("closed", [True, False])
async def test_a_bug_of_ours_is_raised_and_stops_the_rest(closed: bool) -> None:
    stop, sent = asyncio.Event(), []

    async def send(n: Any, _: float) -> None:
        sent.append(n)
        await asyncio.sleep(0.01)
        raise ZeroDivisionError

    if closed:
        loop = closed_loop(each(range(50)), send, stop, concurrency=2, grace=1)
    else:
        loop = open_loop(each((n * 0.02, n) for n in range(50)), send, stop, grace=1)
    with pytest.raises(ZeroDivisionError):
        await loop
    assert len(sent) < 10


async def broken() -> AsyncIterator[Any]:
    """Three things at once, then whoever has them is gone."""
    for n in range(3):
        yield (0.0, n)
    raise ZeroDivisionError


async def silent() -> AsyncIterator[Any]:
    yield (0.0, 0)
    await asyncio.Event().wait()


def loop(closed: bool, items: AsyncIterator[Any], send: Any, stop: asyncio.Event, grace: float) -> Any:
    return (
        closed_loop(items, send, stop, concurrency=8, grace=grace)
        if closed
        else open_loop(items, send, stop, grace=grace)
    )


@pytest.mark.parametrize("closed", [True, False])
async def test_what_is_in_flight_finishes_when_there_is_nobody_to_say_what_comes_next(closed: bool) -> None:
    ended: list[Any] = []

    async def send(n: Any, _: float) -> None:
        await asyncio.sleep(0.1)
        ended.append(n)

    with pytest.raises(ZeroDivisionError):
        await loop(closed, broken(), send, asyncio.Event(), grace=5)
    assert len(ended) == 3


@pytest.mark.parametrize("closed", [True, False])
async def test_a_stop_does_not_wait_for_what_comes_next(closed: bool) -> None:
    stop, ended = asyncio.Event(), []

    async def send(n: Any, _: float) -> None:
        stop.set()
        await asyncio.sleep(0.1)
        ended.append(n)

    begun = time.monotonic()
    await loop(closed, silent(), send, stop, grace=20)
    assert len(ended) == 1 and time.monotonic() - begun < 5


@pytest.mark.parametrize("closed", [True, False])
async def test_cancelling_a_loop_leaves_nothing_running(closed: bool) -> None:
    cancelled: list[Any] = []

    async def send(n: Any, _: float) -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.append(n)
            raise

    running = asyncio.ensure_future(loop(closed, silent(), send, asyncio.Event(), grace=20))
    await asyncio.sleep(0.05)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert len(cancelled) == 1
