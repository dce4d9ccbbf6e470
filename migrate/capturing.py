"""The recordings of one process: a thread that hands finished model calls to a companion process, as the gateway does."""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.util import Finalize

from migrate.address import shown
from migrate.channel import Counted, Message
from migrate.companion import Companion
from migrate.config import Backend, Config, Shadow
from migrate.headers import RawHeaders
from migrate.passing import Passing, Room
from migrate.tap import Tap
from replay.exchange import Ending

PATHS = ("/v1/chat/completions", "/v1/completions", "/v1/responses")
"""What is recorded where no configuration says it."""
ROOM = 64 * 2**20
"""Bytes that recordings may hold in one process, from the request until the companion has them."""
_NOT_STORED = ("mirror_down", "answers_dropped", "tap_failed")
_TURN_S = 0.1
_COUNT_S = 1.0
_PAUSE_S = (1.0, 60.0)
_AT_EXIT_S = 5.0
_WAITING = 0.9
"""Share of the time to stop that may be waited; in the rest is said what became of what is left."""

log = logging.getLogger("migrate")


def _warn(line: str, *words: object, exc_info: bool = False) -> None:
    """Says something. A handler of the application's that fails is no reason to end anything."""
    with contextlib.suppress(Exception):
        log.warning(line, *words, exc_info=exc_info)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Where recordings go. Without a ``config`` every call on ``PATHS`` is recorded."""

    store: str
    folder: str | None
    """Where a relative store stands."""
    config: Config | None = field(default=None, hash=False)

    @property
    def shadow(self) -> Shadow:
        """Which calls are recorded."""
        return self.config.shadow if self.config else Shadow(percent=100, paths=PATHS)

    def configuration(self, backend: str) -> Config:
        """What the run is recorded under. ``backend``: the address that was called, for where no file names one."""
        given = self.config or Config(baseline=Backend(kind="relay", url=backend), shadow=self.shadow)
        baseline = given.baseline.model_copy(update={"api_key_env": None})  # nobody is asked anything
        store = given.store.model_copy(update={"url": self.store})
        return given.model_copy(update={"baseline": baseline, "candidate": None, "store": store})


class Capture:
    """The recordings of this process for one store: a run of kind ``capture``. ``begin`` waits for nothing."""

    def __init__(self, settings: Settings, backend: str) -> None:
        self._shadow = settings.shadow
        self._settings, self._backend = settings, backend
        self._room = Room(ROOM)
        self._begun: deque[Passing] = deque()
        self._refused: deque[str] = deque()
        self._open: list[Passing] = []
        """What the thread waits for."""
        self._stopping = threading.Event()
        self._deadline = float("inf")
        self._stored, self._over = True, False
        self._thread = threading.Thread(target=self._run, name="migrate-capture", daemon=True)
        self._at_exit: Finalize | None = None

    def start(self) -> None:
        """From now on there is a thread, and an orderly end with the process. Raises RuntimeError when there can be none."""
        self._thread.start()
        # Unlike atexit this also runs where multiprocessing ends a worker.
        self._at_exit = Finalize(None, self.stop, args=(_AT_EXIT_S,), exitpriority=10)

    def begin(self, target: str, headers: RawHeaders, body: bytes | None) -> Passing | None:
        """A model call that is about to be made. ``None`` when it cannot be recorded, which is counted.

        ``body`` is ``None`` where the application streams it.
        """
        if self._over:
            return None
        if body is None:
            self._refused.append("incomplete")
            return None
        if len(body) > self._shadow.max_request:
            self._refused.append("too_large")
            return None
        passing = Passing(target, headers, body, room=self._room, max_answer=self._shadow.max_answer)
        if not passing.fits(len(body)):
            self._refused.append("queue_full")
            return None
        self._begun.append(passing)
        return passing

    def stop(self, within: float) -> bool:
        """Writes everything and ends the run. False when that did not work ``within`` so many seconds."""
        self._deadline = time.monotonic() + _WAITING * within
        self._stopping.set()
        if self._at_exit is not None:
            self._at_exit.cancel()
        self._thread.join(within)
        if self._thread.is_alive():
            _warn("recorded model calls are still being written to %s", shown(self._settings.store))
            return False
        return self._stored

    def _run(self) -> None:
        try:
            hand = _Hand(self._settings, self._backend, patient=self._patient)
            while not self._stopping.wait(_TURN_S):
                self._turn(hand)
            for passing in (*self._open, *self._begun):
                passing.end(Ending.CLIENT_LEFT)  # nobody reads on, or nobody will see it
            hand.hurry()
            while self._turn(hand) and self._patient() and not hand.failed:
                time.sleep(_TURN_S / 10)
            hand.insist()
            self._stored = hand.finish(left=self._turn(hand))
        except Exception:  # noqa: BLE001 - whatever it is, it is ours, and no caller's
            _warn("model calls of this process are no longer recorded", exc_info=True)
            self._stored = False
        finally:
            self._over = True

    def _turn(self, hand: _Hand) -> int:
        """Hands over what is over. Returns how many calls are left."""
        while self._refused:
            hand.refused(self._refused.popleft())
        while self._begun:
            self._open.append(self._begun.popleft())
        hand.turn()
        going: list[Passing] = []
        for passing in self._open:
            if passing.over is not None and hand.ready:
                hand.take(passing)
                passing.forget()
            else:
                going.append(passing)
        self._open = going
        return len(going)

    def _patient(self) -> bool:
        return time.monotonic() < self._deadline


class _Hand:
    """Decides as the gateway does, and hands over. It may wait, while ``patient`` says so."""

    def __init__(self, settings: Settings, backend: str, *, patient: Callable[[], bool]) -> None:
        config = settings.configuration(backend)
        self._patient, self._store = patient, shown(config.store.url)
        self._tap = Tap(config.shadow, self._send)
        self._companion = Companion(config, salt=secrets.token_hex(32), folder=settings.folder)
        self._said: set[str] = set()
        self._pause = _PAUSE_S[0]
        self._next_start = self._next_count = 0.0
        self._counted: dict[str, int] = {}
        self._lost, self._insisting = 0, False
        self._before: int | None = None
        """Calls that a companion had been given when it ended; ``None`` once it is known how many of them were stored."""
        self.failed = False
        """Whether there is no companion, and none on its way."""

    @property
    def ready(self) -> bool:
        """Whether the companion takes calls. Until it has opened the store they are kept back: it may not be able to."""
        return self._companion.ready or (self._insisting and self._companion.started)

    def turn(self) -> None:
        """Hears what the companion says. One that is not there is started, after growing pauses."""
        now = time.monotonic()
        if not self._companion.started:
            if now >= self._next_start:
                self._start(now)
        elif (words := self._companion.listen()) is not None:
            self._down(words, now)
        elif self._companion.ready:
            self._lose()
            self._going_on(now)

    def hurry(self) -> None:
        """The end is near: where there is no companion, one is tried at once, and no other after that."""
        self._next_start, self.failed = 0.0, False

    def insist(self) -> None:
        """The time is up: what is left is handed to a companion that is not ready yet, as far as the channel takes it."""
        self._insisting = True

    def refused(self, outcome: str) -> None:
        """A call that was not recorded."""
        self._tap.counters["passed"] += 1
        self._tap.counters[outcome] += 1
        if outcome == "queue_full":
            self._say(
                outcome, "model calls come faster than they can be recorded; some are left out and counted"
            )

    def take(self, passing: Passing) -> None:
        """A call that is over. Never raises: one that we cannot handle must not end the others."""
        try:
            self._take(passing)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is ours
            self._tap.counters["tap_failed"] += 1
            self._say("defect", f"a model call could not be recorded: {type(error).__name__}: {error}")

    def _take(self, passing: Passing) -> None:
        ticket = self._tap.admit("POST", passing.target, passing.headers)
        if ticket is None or passing.over is None:
            return
        ticket.body, ticket.sent_at = passing.body, passing.sent_at
        ticket.offer()
        if not ticket.recording:
            return
        if passing.head is not None:
            ticket.head(*passing.head)
        for at, data in passing.chunks:
            ticket.feed(at, data)
        at, ending, detail = passing.over
        ticket.end(at, ending if passing.kept else Ending.OVERSIZE, detail)

    def finish(self, *, left: int) -> bool:
        """Lets the companion end. ``left``: calls that it never got. Returns whether everything is in the store."""
        self._count()
        counters = self._tap.counters
        lost = left + self._lost + sum(counters[name] for name in _NOT_STORED)
        if lost:
            _warn("%d recorded model calls were not stored, or not whole, in %s", lost, self._store)
        words = self._companion.finish(patient=self._patient)
        if words is not None:
            _warn("recorded model calls may be missing from %s: %s", self._store, words)
        return words is None and not lost and not self.failed

    def _send(self, message: Message) -> str | None:
        return None if self._companion.send(message, patient=self._patient) else "mirror_down"

    def _start(self, now: float) -> None:
        self.failed = False
        try:
            self._companion.start()
        except OSError as error:
            self._down(str(error), now)

    def _down(self, words: str, now: float) -> None:
        self.failed = True
        self._before = self._tap.counters["mirrored"] - self._lost
        self._next_start = now + self._pause
        self._say(
            "down", f"model calls are not recorded at the moment, the application is not affected: {words}"
        )
        self._pause = min(2 * self._pause, _PAUSE_S[1])

    def _lose(self) -> None:
        """What the companion before this one had taken and not written is lost."""
        if self._before is not None:
            self._lost += max(0, self._before - self._companion.held)
            self._before = None

    def _going_on(self, now: float) -> None:
        self._pause = _PAUSE_S[0]
        self._said.discard("down")
        if error := (self._companion.status.get("store") or {}).get("error"):
            self._say("store", f"{self._store} takes no recordings at the moment: {error}")
        else:
            self._said.discard("store")
        if now >= self._next_count:
            self._next_count = now + _COUNT_S
            self._count()

    def _count(self) -> None:
        if self._companion.started and self._tap.counters != self._counted:
            self._counted = dict(self._tap.counters)
            share = round(self._tap.shadow.percent * 1e6)
            self._send(Counted(counters={**self._counted, "mirror_ppm": share}))

    def _say(self, kind: str, line: str) -> None:
        """Once for each kind of trouble, until it has passed."""
        if kind not in self._said:
            self._said.add(kind)
            _warn(line)


_captures: dict[tuple[int, Settings], Capture] = {}
"""By process: what a fork leaves in here of its parent's is never touched again, and never finalised."""


def capture_for(settings: Settings, backend: str) -> Capture:
    """This process's capture, begun at its first model call. Waits for nothing. Raises RuntimeError when no thread starts."""
    key = (os.getpid(), settings)
    found = _captures.get(key)
    if found is None:
        fresh = Capture(settings, backend)
        found = _captures.setdefault(key, fresh)  # of two threads one comes first
        if found is fresh:
            try:
                fresh.start()
            except BaseException:
                _captures.pop(key, None)
                raise
    return found


def stop_recording(timeout: float = 10.0) -> bool:
    """Writes what this process has recorded and ends its runs; a model call after that begins a new one.

    Happens by itself, within 5 s, when the process ends. False when not everything was in the store after ``timeout`` seconds.
    """
    deadline = time.monotonic() + timeout
    mine = [key for key in list(_captures) if key[0] == os.getpid()]
    stopped = [_captures.pop(key).stop(max(0.0, deadline - time.monotonic())) for key in mine]
    return all(stopped)
