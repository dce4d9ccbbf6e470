"""The desk: where the tap's work waits for a moment in which no client waits for us."""

from __future__ import annotations

import asyncio
from collections import deque

from migrate.tap import Ticket
from replay.exchange import Ending

_MOMENT = 0.001
_AT_A_TIME = 4
_BEHIND = 32
"""One more at a time for each so many that wait: what comes faster than it is done must not pile up in memory."""


class Desk:
    """Where tickets wait for a moment in which nobody waits for us.

    What the tap has to do for a request is done about a millisecond after the request has left, when the baseline works on
    it, and after its answer has left; a few at a time, so that packets are served in between.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: deque[Ticket] = deque()
        self._called = False

    def put(self, ticket: Ticket) -> None:
        """Something is to be done for this ticket soon."""
        if ticket.at_desk or (ticket.decided and not ticket.recording):
            return
        ticket.at_desk = True
        self._waiting.append(ticket)
        if not self._called:
            self._called = True
            self._loop.call_later(_MOMENT, self._work)

    def close(self, ticket: Ticket, at: float, ending: Ending, detail: str) -> None:
        """The ticket's exchange is over. Every way out of a request leads here, so that each is counted once."""
        if ticket.sent_at is None:
            ticket.refuse("incomplete")
        ticket.over = (at, ending, detail)
        self.put(ticket)

    def clear(self) -> None:
        """Does everything that waits, now."""
        while self._waiting:
            self._next()

    def _work(self) -> None:
        waiting = len(self._waiting)
        for _ in range(min(waiting, _AT_A_TIME + waiting // _BEHIND)):
            self._next()
        self._called = bool(self._waiting)
        if self._called:
            self._loop.call_soon(self._work)

    def _next(self) -> None:
        ticket = self._waiting.popleft()
        ticket.at_desk = False
        ticket.offer()
        if ticket.over is not None:
            ticket.end(*ticket.over)
