"""Sends prepared requests and hands what comes back to the keeper. Nothing here reads an answer."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from migrate.config import Backend, Config
from migrate.mirror.limits import Budget
from migrate.mirror.retry import send_with_retries
from migrate.replaying.link import Asked, Came, Link
from migrate.replaying.pace import Pace
from migrate.replaying.prepare import Ready
from replay.client import Client
from replay.exchange import Arm, Recording
from replay.failures import classify
from replay.histogram import Histogram

_DAY_S = 86_400
_TICK_S = 0.02
_BUSY = (429, 503)


class Side:
    """One backend as the sender sees it: how fast it may be asked, and for how much.

    ``counters``: the sums of all runs, ``now``: epoch seconds; together they say what the day has cost so far.
    """

    def __init__(self, backend: Backend, arm: Arm, counters: Mapping[str, int], now: float) -> None:
        limits = backend.limits
        self.backend = backend
        self.gate = asyncio.Lock()
        """Held by the request that is the next to leave."""
        self.pace = Pace(
            requests_per_minute=limits.requests_per_minute, tokens_per_minute=limits.tokens_per_minute
        )
        # The candidate's counters are those of the mirror, so that a day is a day for both.
        self._prefix = "" if arm is Arm.CANDIDATE else "baseline_"
        self._day = int(now // _DAY_S)
        self._begun = {
            kind: counters.get(f"{self._prefix}{kind}.{self._day}", 0) for kind in ("tokens", "micro_usd")
        }
        self.budget = Budget(limits, backend.price, day=self._day, **self._begun)

    def counters(self, before: Mapping[str, int], now: float) -> dict[str, int]:
        """What this run has cost on the day of ``now``; ``before``: its counters when it went on."""
        counted = {}
        for kind, spent in self.budget.spent(now).items():
            name = f"{self._prefix}{kind}.{self.budget.day}"
            begun = self._begun[kind] if self.budget.day == self._day else 0
            counted[name] = before.get(name, 0) + spent - begun
        return counted


class Sender:
    """Sends each request to its arms. ``stop`` is set when a day's budget has no room for the next one.

    ``order``: turns of a conversation wait for each other.
    """

    def __init__(
        self,
        config: Config,
        *,
        client: Client,
        link: Link,
        sides: Mapping[Arm, Side],
        stop: asyncio.Event,
        order: bool,
    ) -> None:
        self._retry = config.shadow.retry
        self._client, self._link, self._sides, self._stop, self._order = client, link, sides, stop, order
        self._turns: dict[str, asyncio.Future[float]] = {}
        self._spent: dict[Arm, list[int]] = {}
        self._count = 0
        # Read once: a clock that is set while we send puts no request before another.
        self._epoch = time.time() - time.monotonic()
        self.sent: dict[Arm, int] = dict.fromkeys(Arm, 0)
        self.in_flight = 0
        self.lag = Histogram()
        """How late requests left, a new connection's time not counted."""
        self.loop_lag = Histogram()
        self.held_s = 0.0
        """By how much limits have stretched the schedule so far."""
        self.exhausted: str | None = None
        """Which budget had no room: ``token_budget`` or ``usd_budget``."""

    async def send(self, ready: Ready, due: float) -> None:
        """One request to all of its arms at once, in the turn of its conversation where that was asked for."""
        if not self._order:
            await self._send(ready, due)
            return
        conversation = ready.request.conversation
        before = self._turns.get(conversation)
        mine = self._turns[conversation] = asyncio.get_running_loop().create_future()
        ended = None
        try:
            if before is not None:
                due = max(due, await asyncio.shield(before) + (ready.think_s or 0.0))
                await _sleep_until(due, self._stop)
            ended = await self._send(ready, due)
        finally:
            mine.set_result(time.monotonic() if ended is None else ended)
            if self._turns[conversation] is mine:
                del self._turns[conversation]

    async def _send(self, ready: Ready, due: float) -> float:
        """Returns when the last arm had answered. Which arm leaves first alternates, so that neither has the warmer cache;
        the baseline's repeat leaves when the baseline has answered."""
        due = await self._allowed(ready, due)
        await self._link.room(self._stop)
        if self._stop.is_set() or self._link.lost:
            return time.monotonic()
        self._link.send(Asked(request=replace(ready.request, at=self._epoch + time.monotonic())))
        self._count += 1
        arms = [arm for arm in ready.calls if arm is not Arm.BASELINE_REPEAT]
        if self._count % 2:
            arms.reverse()
        if len(arms) == 1:
            await self._ask(ready, arms[0], due)
        else:
            await asyncio.gather(*(self._ask(ready, arm, due) for arm in arms))
        ended = time.monotonic()
        if Arm.BASELINE_REPEAT in ready.calls:
            await self._ask(ready, Arm.BASELINE_REPEAT, None)
        return ended

    def spent(self, told: Mapping[str, Any]) -> None:
        """What the keeper says of one arm's tokens: those it has released, and what they were."""
        for name, seen in told.items():
            arm = Arm(name)
            before = self._spent.get(arm, [0, 0, 0, 0])
            prompt, answer, real_prompt, real_answer = (
                now - was for now, was in zip(seen["spent"], before, strict=True)
            )
            self._spent[arm] = seen["spent"]
            budget = self._side(arm).budget
            budget.release(prompt, answer)
            budget.spend(real_prompt, real_answer, time.time())

    async def watch(self) -> None:
        """Measures how late the event loop itself is, until it is cancelled. An open loop too: what it had held up for a second
        was late at each tick of that second."""
        due = time.monotonic()
        while True:
            due += _TICK_S
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            self.loop_lag.add(time.monotonic() - due)

    def _side(self, arm: Arm) -> Side:
        return self._sides[Arm.CANDIDATE if arm is Arm.CANDIDATE else Arm.BASELINE]

    async def _allowed(self, ready: Ready, due: float) -> float:
        """Waits for the slowest limit, so that a pair stays a pair, and reserves what it may cost. Returns the moment.

        One after the other, so that a pause which a backend asks for meanwhile holds for all that wait.
        """
        sides = [self._side(arm) for arm in ready.calls]
        moment = due
        async with contextlib.AsyncExitStack() as gates:
            for side in dict.fromkeys(sides):  # the baseline's first, always: nobody waits for each other
                await gates.enter_async_context(side.gate)
            while (free := max(side.pace.moment(due) for side in sides)) > moment and not self._stop.is_set():
                moment = free
                await _sleep_until(moment, self._stop)
            for side in sides:
                side.pace.leaves(moment, sum(ready.tokens))
        self.held_s = max(self.held_s, moment - due)
        for side in sides:
            reason = side.budget.exhausted(time.time(), *ready.tokens)
            if reason:
                self.exhausted = self.exhausted or reason
                self._stop.set()
                break
            side.budget.reserve(*ready.tokens)
        return moment

    async def _ask(self, ready: Ready, arm: Arm, due: float | None) -> None:
        at, call = self._epoch + time.monotonic(), ready.calls[arm]
        left: tuple[float, float | None] | None = None

        async def send() -> Recording:
            nonlocal left
            recording = await self._client.send(call)
            left = left or (recording.sent_at, recording.connect_s)
            if recording.status in _BUSY:
                self._heed(arm, recording, ready)
            return recording

        self.sent[arm] += 1
        self.in_flight += 1
        try:
            recording, earlier = await send_with_retries(send, self._retry)
        finally:
            self.in_flight -= 1
        lag = None
        if due is not None and left is not None:
            lag = max(0.0, left[0] - due)
            self.lag.add(lag - (left[1] or 0.0))
        self._link.send(
            Came(
                request=ready.request.id,
                path=ready.request.path,
                arm=arm,
                at=at if left is None else self._epoch + left[0],
                lag_s=lag,
                again_s=0.0 if left is None else recording.sent_at - left[0],
                recording=recording if left is None else replace(recording, connect_s=left[1]),
                earlier=earlier,
                asked=len(call.body),
                reserved=ready.tokens,
            )
        )

    def _heed(self, arm: Arm, recording: Recording, ready: Ready) -> None:
        """A relay that says when to come back is left alone by everybody until then; our own server is being measured."""
        one, failure = self._side(arm), classify(recording, now=time.time())
        if one.backend.outside and failure is not None and failure.retry_after_s is not None:
            now = time.monotonic()
            one.pace.pause(now + min(failure.retry_after_s, self._retry.longest_wait))
            one.pace.leaves(now, sum(ready.tokens))  # the same request will be sent once more


async def _sleep_until(moment: float, stop: asyncio.Event) -> None:
    left = moment - time.monotonic()
    if left > 0:
        try:
            await asyncio.wait_for(stop.wait(), left)
        except TimeoutError:
            return
