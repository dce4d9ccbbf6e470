"""``python -m migrate.canary``: the store's end of a canary, in a process of its own, so that no client waits for a database.

Standard input: a line of JSON ``{"store": URL, "who": NAME, "lost_store": S, "cool_down": S}``, then one for each
safety stop, ``{"halt": WHY, "at": T, "run": RUN}``. Standard output: ``{"shift": {…}}`` as often as the store was read, about
five times a second, and ``{"problem": "…"}`` as long as it cannot be. A safety stop is tried until the store took it; when the
gateway has died meanwhile, for ``_LAST_S``.
"""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import sys
import threading
import time
from collections import deque
from dataclasses import asdict
from typing import Any

import orjson

from migrate.canary import shift
from migrate.errors import MigrateError
from migrate.store import Store, shifts
from replay.exchange import JSON

_EVERY_S = 0.2
_LAST_S = 60.0


class _Keeper:
    """One canary, as this gateway sees it."""

    def __init__(self, start: JSON) -> None:
        self._start = start
        self._store: Store | None = None
        self._halts: deque[JSON] = deque()
        self._lost_at: float | None = None

    @property
    def owes(self) -> bool:
        """Whether a safety stop is not in the store yet."""
        return bool(self._halts)

    def halt(self, said: JSON) -> None:
        """A safety stop to be kept."""
        self._halts.append(said)

    def turn(self) -> JSON:
        """What is owed goes to the store; what the store says now."""
        try:
            if self._store is None:
                self._store = Store.open(self._start["store"])
            now = self._written(self._store)
        except MigrateError as error:
            self._lost_at = self._lost_at or time.time()
            return {"problem": str(error)}
        return {"shift": asdict(now)}

    def _written(self, store: Store) -> shift.Shift:
        now = self._latest(store)
        while self._halts:
            shifts.append(store, now.canary, self._rollback(self._halts[0]))
            self._halts.popleft()
        if self._lost_at is not None and time.time() - self._lost_at > self._start["lost_store"]:
            shifts.append(store, now.canary, self._cut_off(self._lost_at))
        self._lost_at = None
        return self._latest(store)

    def _latest(self, store: Store) -> shift.Shift:
        """Of the canary that began last: two gateways that begin one at once agree on it."""
        now = shifts.latest(store)
        if now is None:
            raise MigrateError("the store holds no canary any more")
        return now

    def _rollback(self, halt: JSON) -> shifts.Change:
        def change(now: shift.Shift) -> shift.Shift | None:
            return shift.rolled_back(
                now,
                at=halt["at"],
                who=self._start["who"],
                why=halt["halt"],
                cool_down=self._start["cool_down"],
                run=halt["run"],
            )

        return change

    def _cut_off(self, since: float) -> shifts.Change:
        at = time.time()
        why = (
            f"the store could not be reached for {at - since:.0f} s; meanwhile the baseline answered all here"
        )
        return lambda now: shift.noted(now, "cut_off", at=at, who=self._start["who"], why=why)


def main() -> int:
    """Runs until standard input ends. Returns the exit code."""
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # the gateway says when to stop, by closing the pipe
    keeper = _Keeper(orjson.loads(sys.stdin.buffer.readline()))
    heard: queue.SimpleQueue[JSON | None] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(heard,), daemon=True).start()
    end: float | None = None
    while end is None or (keeper.owes and time.monotonic() < end):
        said = _wait(heard, over=end is not None)
        if said is None and end is None:
            end = time.monotonic() + _LAST_S
        elif said:
            keeper.halt(said)
        _say(keeper.turn())
    if keeper.owes:
        print("migrate: a rollback could not be kept: the store takes nothing", file=sys.stderr)
    return int(keeper.owes)


def _listen(heard: queue.SimpleQueue[JSON | None]) -> None:
    for line in sys.stdin.buffer:
        heard.put(orjson.loads(line))
    heard.put(None)


def _wait(heard: queue.SimpleQueue[JSON | None], *, over: bool) -> JSON | None:
    """What came within a moment: ``{}`` for nothing, ``None`` at the end."""
    if over:
        time.sleep(_EVERY_S)
        return {}
    try:
        return heard.get(timeout=_EVERY_S)
    except queue.Empty:
        return {}


def _say(value: dict[str, Any]) -> None:
    with contextlib.suppress(BrokenPipeError):
        os.write(1, orjson.dumps(value) + b"\n")


if __name__ == "__main__":
    sys.exit(main())
