"""Sends when it is due: an open loop that never waits for an answer, and a closed loop of so many at once.

Being late is measured, not hidden: every send is told the moment at which it was due.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, TypeVar

from replay.alarm import Alarm

T = TypeVar("T")
Send = Callable[[T, float], Coroutine[Any, Any, None]]
"""(what to send, the reading of ``time.monotonic`` at which it was due). What becomes of a request is not raised."""

_LOOK_S = 0.2
"""How soon a sleeping loop notices that it should stop."""
_BEHIND = 64
"""Sends without a breath when behind; then answers are read, so that being late does not make it later."""


async def open_loop(
    items: AsyncIterator[tuple[float, T]], send: Send[T], stop: asyncio.Event, *, grace: float
) -> None:
    """Starts a send for each (seconds from the first look, thing) when it is due, until ``stop``.

    The clock starts when the first thing is at hand. Returns when every send has ended; after a stop those that have not
    ended within ``grace`` seconds are cancelled. Raises what a send or ``items`` raises, after a stop.
    """
    running = _Running(stop)

    async def pace() -> None:
        start: float | None = None
        in_a_row = 0
        with Alarm() as alarm:
            async for offset, thing in items:
                start = time.monotonic() if start is None else start
                due = start + offset
                in_a_row = 0 if await _until(due, stop, alarm) else in_a_row + 1
                if in_a_row >= _BEHIND:
                    in_a_row = 0
                    await asyncio.sleep(0)
                if stop.is_set():
                    return
                running.add(send(thing, due))

    await running.paced(pace(), grace)


async def closed_loop(
    items: AsyncIterator[T], send: Send[T], stop: asyncio.Event, *, concurrency: int, grace: float
) -> None:
    """Keeps ``concurrency`` sends going: a new one begins when one has ended. Its moment is when it begins. Ends as an open
    loop does."""
    running = _Running(stop)
    free = asyncio.Semaphore(concurrency)

    async def one(thing: T) -> None:
        try:
            await send(thing, time.monotonic())
        finally:
            free.release()

    async def pace() -> None:
        async for thing in items:
            await free.acquire()
            if stop.is_set():
                return
            running.add(one(thing))

    await running.paced(pace(), grace)


async def _until(due: float, stop: asyncio.Event, alarm: Alarm) -> bool:
    """Waits for a moment, never returning before it; False when it has passed already."""
    now = time.monotonic()
    if now >= due:
        return False
    while now < due and not stop.is_set():
        await alarm.until(min(due, now + _LOOK_S))
        now = time.monotonic()
    return True


class _Running:
    """Sends that have begun; the first that raises stops the rest."""

    def __init__(self, stop: asyncio.Event) -> None:
        self._stop = stop
        self._tasks: set[asyncio.Task[None]] = set()
        self._failed: BaseException | None = None
        self._empty = asyncio.Event()

    def add(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    async def paced(self, pace: Coroutine[Any, Any, None], grace: float) -> None:
        """Runs ``pace``, which adds the sends, and waits for all. A stop ends it at once; sends then have ``grace`` seconds."""
        pacing = self.add(pace)
        try:
            while self._tasks and not self._stop.is_set():
                self._empty.clear()
                empty, stopped = (asyncio.ensure_future(one.wait()) for one in (self._empty, self._stop))
                await asyncio.wait({empty, stopped}, return_when=asyncio.FIRST_COMPLETED)
                empty.cancel()
                stopped.cancel()
            pacing.cancel()
            if self._tasks:
                await asyncio.wait(set(self._tasks), timeout=grace)
        finally:
            late = set(self._tasks)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)
        if self._failed is not None:
            raise self._failed

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._failed = self._failed or error
            self._stop.set()
        if not self._tasks:
            self._empty.set()
