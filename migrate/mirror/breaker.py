"""The circuit breaker on the candidate. Pure: time comes in as an argument."""

from __future__ import annotations

from enum import StrEnum

from replay.exchange import ErrorClass, Observation

_REQUESTS_OWN = frozenset({ErrorClass.BAD_REQUEST, ErrorClass.CONTEXT_OVERFLOW})


class State(StrEnum):
    """Closed lets copies through, open stops them, half-open lets one probe through."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


class Breaker:
    """Opens after ``failures`` in a row; after ``recovery`` seconds one probe decides whether it closes again."""

    def __init__(self, *, failures: int, recovery: float) -> None:
        self._limit, self._recovery = failures, recovery
        self._in_a_row = 0
        self._opened_at: float | None = None
        self._probing = False
        self._round = 0
        self.probes = 0
        """Sent since it opened; 0 while it is closed."""

    def state(self, now: float) -> State:
        """What it is at ``now`` (seconds of one monotonic clock)."""
        if self._opened_at is None:
            return State.CLOSED
        return State.HALF_OPEN if now - self._opened_at >= self._recovery else State.OPEN

    def allow(self, now: float) -> int | None:
        """A pass for a copy that may leave now; ``None`` when it may not. In half-open the first one to ask is the probe.

        The pass comes back with the copy's outcome: one from before the breaker opened says nothing about afterwards.
        """
        state = self.state(now)
        if state is State.HALF_OPEN and not self._probing:
            self._probing = True
            self.probes += 1
            return self._round
        return self._round if state is State.CLOSED else None

    def record(self, entry: int, *, failed: bool, now: float) -> None:
        """The copy with that pass has its outcome."""
        if entry != self._round:
            return
        self._probing = False
        self._in_a_row = self._in_a_row + 1 if failed else 0
        if not failed:
            self._opened_at, self.probes = None, 0
        elif self._opened_at is not None or self._in_a_row >= self._limit:
            self._opened_at = now
            self._round += 1

    def forget(self, entry: int) -> None:
        """The copy with that pass came to nothing by our doing; it says nothing about the candidate."""
        if entry == self._round:
            self._probing = False


def speaks_against(seen: Observation) -> bool:
    """Whether an outcome is the backend's failure; a request that is wrong in itself is not."""
    if not seen.outcome.failed:
        return False
    if seen.failure is None:
        return True
    return seen.failure.error_class not in _REQUESTS_OWN and seen.failure.code != "contract.unsupported"
