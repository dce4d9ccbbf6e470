"""When the candidate may answer no client any more, and how many requests may be asked twice. Pure: time comes in as an argument.

A safety stop is about now: a few seconds of failures, whatever the rates of the hours before. It decides in the gateway, within
the request that failed, and waits for no store and no judgement.
"""

from __future__ import annotations

import math
from collections import deque

from migrate.canary.section import Halt

_MINUTE_S = 60.0
_FEW = 20
"""Requests that may be asked twice in a minute with next to no traffic."""


class Window:
    """Sums of the last seconds, by whole seconds: at a thousand requests a second it holds a number for each, not a thousand."""

    def __init__(self, seconds: float, columns: int) -> None:
        self._seconds = seconds
        self._rows: deque[tuple[int, list[int]]] = deque()
        self._sums = [0] * columns

    def add(self, now: float, *values: int) -> None:
        """Adds to this second's row; ``now`` never goes back."""
        self.sums(now)
        second = math.floor(now)
        if not self._rows or self._rows[-1][0] != second:
            self._rows.append((second, [0] * len(self._sums)))
        row = self._rows[-1][1]
        for place, value in enumerate(values):
            row[place] += value
            self._sums[place] += value

    def sums(self, now: float) -> tuple[int, ...]:
        """Of the window that ends at ``now``."""
        while self._rows and self._rows[0][0] <= now - self._seconds:
            for place, value in enumerate(self._rows.popleft()[1]):
                self._sums[place] -= value
        return tuple(self._sums)


class Guard:
    """What the candidate's last requests say about the next one."""

    def __init__(self, halt: Halt) -> None:
        self._halt = halt
        self._window = Window(halt.window, 3)
        self._in_a_row = self._unhealthy = 0

    def saw(self, now: float, *, failed: bool, timed_out: bool = False) -> str | None:
        """One request has its outcome. Returns why the candidate has to stop; ``None``: it need not.

        ``now`` are seconds of one monotonic clock.
        """
        halt = self._halt
        self._window.add(now, 1, int(failed), int(timed_out))
        self._in_a_row = self._in_a_row + 1 if failed else 0
        if self._in_a_row >= halt.in_a_row:
            return f"{self._in_a_row} requests to the candidate failed in a row"
        requests, failures, timeouts = self._window.sums(now)
        if requests < halt.requests:
            return None
        if failures >= halt.errors * requests:
            return f"{failures:,} of the candidate's last {requests:,} requests failed ({failures / requests:.1%})"
        if timeouts > halt.timeouts * requests:
            return f"{timeouts:,} of the candidate's last {requests:,} requests ran out of time ({timeouts / requests:.1%})"
        return None

    def left(self) -> str | None:
        """A client gave up after a long wait for the first byte. Returns why the candidate has to stop.

        That is when as many as may fail in a row did, with no answer in between. It enters no share: a client may leave for
        reasons of its own.
        """
        self._in_a_row += 1
        if self._in_a_row < self._halt.in_a_row:
            return None
        return f"{self._in_a_row} requests to the candidate in a row failed, or were given up by clients that got nothing"

    def health(self, problem: str | None) -> str | None:
        """A health check found this problem, or none. Returns why the candidate has to stop."""
        self._unhealthy = self._unhealthy + 1 if problem else 0
        if self._unhealthy < self._halt.health:
            return None
        return f"{self._unhealthy} health checks of the candidate failed in a row: {problem}"


class Doubling:
    """Requests that may be asked twice: at most ``share`` of those that passed in the last minute, so that an outage of the
    candidate does not double what the baseline carries."""

    def __init__(self, share: float) -> None:
        self._share = share
        self._window = Window(_MINUTE_S, 2)

    def passed(self, now: float) -> None:
        """A request that the candidate might have answered."""
        self._window.add(now, 1, 0)

    def allow(self, now: float) -> bool:
        """Whether one more may be asked twice; it counts from then on."""
        passed, doubled = self._window.sums(now)
        if self._share <= 0 or doubled >= max(_FEW, self._share * passed):
            return False
        self._window.add(now, 0, 1)
        return True
