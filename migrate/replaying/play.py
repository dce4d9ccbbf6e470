"""One replay from beginning to end: its processes, Ctrl-C, and what is counted."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import secrets
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

import click
import uvloop

from migrate.config import Config
from migrate.redact import Redactor
from migrate.replaying import panel
from migrate.replaying.feed import Captured, Feed, Feeding
from migrate.replaying.link import Counted, Link
from migrate.replaying.plan import Plan
from migrate.replaying.prepare import Prepare, Ready
from migrate.replaying.sender import Sender, Side
from migrate.servers import backends, watched
from migrate.store import Store
from replay.alarm import take_short_turns
from replay.client import Client
from replay.engine import closed_loop, open_loop
from replay.exchange import Arm, Request

_COUNT_S = 1.0
_WARMING = 8
"""Warm-up requests in flight at once."""
INTERRUPTED, HELD = 130, 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What is sent, and what goes on around it."""

    title: str
    """Said when it begins."""
    captured: Captured
    total: int
    """How many, for who watches."""
    warmup: Sequence[Request] = ()
    """Sent before, in a closed loop; what they are answered is not kept."""
    beside: AbstractAsyncContextManager[Any] = field(default_factory=nullcontext)
    """Entered when the warm-up is over, left when every answer is there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How a replay ended."""

    code: int
    """0, 130 after Ctrl-C, 4 when a budget had no room for the rest."""
    lines: tuple[str, ...]
    """What became of each arm, and how late we were."""
    why: str = ""
    """Why it ended before its time; empty when it did not."""
    silent: str = ""
    """Which arms answered nothing of all that was sent; empty when each answered something."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """What was captured in a run, as far as ``limit``."""

    source: str
    limit: int | None

    def __call__(self, store: Store) -> Iterator[tuple[Request, float | None]]:
        return islice(store.captured(self.source), self.limit)


def recorded(store: Store, config: Config, run: str, plan: Plan) -> Work:
    """The requests of the plan's source, with a look at the servers now and then."""
    return Work(
        title=f"replaying run {plan.source} into run {run}",
        captured=Recorded(plan.source, plan.limit),
        total=min(store.count(plan.source), plan.limit or sys.maxsize),
        beside=watched(store, run, [one for one in backends(config) if one[0] in plan.arms]),
    )


class Play:
    """Sends ``work`` into ``run`` as ``plan`` says. ``grace``: seconds that answers may take after a first Ctrl-C."""

    def __init__(
        self,
        store: Store,
        config: Config,
        run: str,
        plan: Plan,
        work: Work,
        *,
        grace: float,
        quiet: bool,
        resumed: bool = False,
        held: int | None = None,
    ) -> None:
        """``held``: a file that shall be open for as long as anything of this replay runs."""
        self._store, self._config, self._run, self._plan, self._work = store, config, run, plan, work
        self._grace, self._quiet, self._held = grace, quiet, held
        self._salt = secrets.token_bytes(32)
        known = store.answered(run)
        # In a closed loop each arm goes at its own pace; otherwise a request goes to all of its arms at once.
        alone = [plan.model_copy(update={"to": arm.value}) for arm in plan.arms]
        self._plans = [plan] if plan.concurrency is None else alone
        self._prepare = Prepare(config, plan, Redactor(config.redact, self._salt), known={})
        self._feeds: list[Feed] = []
        self._known = len(set.intersection(*(known[arm] for arm in plan.arms)))
        self._resumed = resumed
        if resumed:
            _reopen(store, run)
        self._before = store.counters(run)

    def run(self) -> Ending:
        """Plays to the end."""
        code, handler = 1, signal.getsignal(signal.SIGINT)
        try:
            with contextlib.ExitStack() as stack:
                self._feeds = [stack.enter_context(Feed(self._feeding(plan))) for plan in self._plans]
                ending = uvloop.run(self._played())
            code = ending.code
        finally:
            signal.signal(signal.SIGINT, handler)  # uvloop leaves one behind that does nothing
            self._store.end_run(self._run, at=time.time(), status="ended" if code == 0 else "cut")
        return ending

    async def _played(self) -> Ending:
        stop = asyncio.Event()
        link = Link(self._initial(), lambda told: _heard(told, shown, link), stop.set, held=self._held)
        interrupts = _Interrupts(stop, link.give_up, waits=self._grace > 0)
        sides = self._sides()
        async with Client() as client:
            ordered = self._plan.think_time is not None
            sender = Sender(self._config, client=client, link=link, sides=sides, stop=stop, order=ordered)
            shown = panel.Shown(total=self._work.total - self._known, sender=sender, named=self._plan.arms)
            await link.start()
            self._say(self._work.title + self._already())
            _settle()
            take_short_turns()
            await self._warm(client, stop)
            shown.began = time.monotonic()
            meter = _Meter()
            watching = [sender.watch(), _tell(link, lambda: self._counted(sender, sides, meter))]
            if not self._quiet:
                watching.append(panel.watch(shown))
            tasks = [asyncio.ensure_future(one) for one in watching]
            try:
                async with self._work.beside:
                    await interrupts.watch(asyncio.gather(*self._loops(sender, stop), return_exceptions=True))
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
                meter.stop()
                if link.trouble:
                    print(
                        f"{link.trouble}; waiting for it. Ctrl-C gives up what was not written",
                        file=sys.stderr,
                    )
                await link.finish()
                self._store.count_up(self._run, self._counted(sender, sides, meter))
        lines = (*panel.summary(shown), *self._lateness(sender))
        silent = "" if self._resumed else panel.silent(shown)
        return replace(self._ending(lines, sender, interrupted=interrupts.count > 0), silent=silent)

    async def _warm(self, client: Client, stop: asyncio.Event) -> None:
        """The first answers of a server are not like the others, and connections have to be made."""

        async def send(ready: Ready, _: float) -> None:
            await asyncio.gather(*map(client.send, ready.calls.values()))

        found = map(self._prepare.ready, self._work.warmup)
        items = _each(ready for ready in found if ready is not None)
        await closed_loop(items, send, stop, concurrency=_WARMING, grace=0.0)

    def _sides(self) -> dict[Arm, Side]:
        backends = {Arm.BASELINE: self._config.baseline, Arm.CANDIDATE: self._config.candidate}
        return {
            arm: Side(backend, arm, self._store.totals(), time.time())
            for arm, backend in backends.items()
            if backend is not None and arm in self._plan.arms
        }

    def _initial(self) -> dict[str, object]:
        redact = self._config.redact.model_dump(mode="json")
        return {"store": self._store.url, "run": self._run, "redact": redact, "salt": self._salt.hex()}

    def _already(self) -> str:
        return f"; {self._known:,} are answered already" if self._resumed else ""

    def _feeding(self, plan: Plan) -> Feeding:
        return Feeding(
            store=self._store.url,
            run=self._run,
            captured=self._work.captured,
            config=self._config,
            plan=plan,
            salt=self._salt,
        )

    def _loops(self, sender: Sender, stop: asyncio.Event) -> Iterator[asyncio.Future[None]]:
        for feed in self._feeds:
            items = aiter(feed)
            if self._plan.concurrency is None:
                loop = open_loop(items, sender.send, stop, grace=self._grace)
            else:
                many = self._plan.concurrency
                loop = closed_loop(_things(items), sender.send, stop, concurrency=many, grace=self._grace)
            yield asyncio.ensure_future(loop)

    def _counted(self, sender: Sender, sides: dict[Arm, Side], meter: _Meter) -> dict[str, int]:
        """What the report has to know and no observation says. The worse part of a resumed run counts."""
        read = self._feeds[0].read
        worst = {
            "replay_lag_limit_us": round(self._plan.lag_limit * 1e6),
            "replay_loop_lag_p99_us": round((sender.loop_lag.quantile(0.99) or 0.0) * 1e6),
            "replay_cpu_permille": meter.permille(),
            "replay_held_ms": round(sender.held_s * 1e3),
            "captured_span_s": round((read.last or 0.0) - (read.first or 0.0)),
            **{f"unusable.{reason}": count for reason, count in read.unusable.items()},
        }
        counted = {name: max(value, self._before.get(name, 0)) for name, value in worst.items()}
        for one in sides.values():
            counted |= one.counters(self._before, time.time())
        return counted

    def _lateness(self, sender: Sender) -> Iterator[str]:
        late, loop = (panel.ms(one.quantile(0.99)) for one in (sender.lag, sender.loop_lag))
        limit = panel.ms(self._plan.lag_limit)
        yield f"left after their moment: p99 {late} (limit {limit}); event loop late: p99 {loop}"
        if sender.held_s:
            yield f"limits of a backend stretched the schedule by {sender.held_s:,.1f} s"
        for reason, count in self._feeds[0].read.unusable.items():
            yield f"{count:,} captured requests could not be sent: {reason}"

    def _ending(self, lines: tuple[str, ...], sender: Sender, *, interrupted: bool) -> Ending:
        if sender.exhausted:
            name = sender.exhausted.removesuffix("_budget")
            why = (
                f"stopped: the next request might pass the day's {name} limit; raise limits.{_LIMITS[name]}, or wait for "
                "the next day (UTC)"
            )
            return Ending(code=HELD, lines=lines, why=why)
        if interrupted:
            return Ending(code=INTERRUPTED, lines=lines, why="interrupted; what was answered is kept")
        return Ending(code=0, lines=lines)

    def _say(self, line: str) -> None:
        if not self._quiet:
            click.echo(line, err=True)


_LIMITS = {"token": "tokens_per_day", "usd": "usd_per_day"}


class _Meter:
    """How much of one core this process uses."""

    def __init__(self) -> None:
        self._began, self._cpu = time.monotonic(), time.process_time()
        self._ended: tuple[float, float] | None = None

    def stop(self) -> None:
        """What comes later does not count."""
        self._ended = time.monotonic(), time.process_time()

    def permille(self) -> int:
        """Thousandths of a core since the beginning."""
        now, cpu = self._ended or (time.monotonic(), time.process_time())
        return round(1e3 * (cpu - self._cpu) / max(now - self._began, 1e-9))


class _Interrupts:
    """The first Ctrl-C stops sending, the second stops waiting too; one after that gives up what is not written yet."""

    def __init__(self, stop: asyncio.Event, give_up: Callable[[], None], *, waits: bool) -> None:
        self._stop, self._give_up, self._waits = stop, give_up, waits
        self._work: asyncio.Future[list[BaseException | None]] | None = None
        self.count = 0
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:  # nohup
                asyncio.get_running_loop().add_signal_handler(number, self._pressed)

    def _pressed(self) -> None:
        self.count += 1
        self._stop.set()
        if self.count > 1 and self._work is not None:
            if self._work.done():
                self._give_up()
            self._work.cancel()
        elif self._waits:
            # Through sys.stderr, which a panel has taken over; click keeps the terminal's own, and would write into it.
            print("stopping: waiting for what is in flight; again to stop at once", file=sys.stderr)

    async def watch(self, work: asyncio.Future[list[BaseException | None]]) -> None:
        """Waits for work that a second Ctrl-C cancels. Raises what the first of it raised, once all of it has ended."""
        self._work = work
        try:
            failed = next((error for error in await work if error is not None), None)
        except asyncio.CancelledError:
            if self.count < 2:
                raise
        else:
            if failed is not None:
                raise failed


def _reopen(store: Store, run: str) -> None:
    """The run goes on; that it was interrupted is written down before anything else can be."""
    before, latest = store.counters(run), store.latest(run)
    gap = 0.0 if latest is None else max(0.0, time.time() - latest)
    store.reopen_run(run)
    store.count_up(
        run,
        {
            "replay_resumed": before.get("replay_resumed", 0) + 1,
            "replay_gap_s": before.get("replay_gap_s", 0) + round(gap),
        },
    )


def _settle() -> None:
    """What is here stays, and is not looked through again: a full collection takes tens of milliseconds."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)


async def _each(items: Iterable[Ready]) -> AsyncIterator[Ready]:
    for item in items:
        yield item


async def _things(items: AsyncIterator[tuple[float, Ready]]) -> AsyncIterator[Ready]:
    async for _, ready in items:
        yield ready


def _heard(told: dict[str, object], shown: panel.Shown, link: Link) -> None:
    arms = told["arms"]
    if isinstance(arms, dict):
        shown.arms, shown.trouble = arms, link.trouble
        shown.sender.spent(arms)


async def _tell(link: Link, counted: Callable[[], dict[str, int]]) -> None:
    """Counters now and then: a sender that is killed has left them behind."""
    while True:
        await asyncio.sleep(_COUNT_S)
        link.send(Counted(counters=counted()))
