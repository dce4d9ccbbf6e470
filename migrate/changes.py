"""What has changed in a run, in lines for the person who watches: each change once, and few where something flaps. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from replay.exchange import JSON

_AT_ONCE = 6
"""Lines of one subject that may follow each other: two whole outages."""
_THEN_S = 600.0
"""And one more after each so many seconds."""

State = str | bool | None


@dataclass(slots=True)
class _Subject:
    """What was said of it last, and what has been seen since."""

    said: State
    seen: State
    at: float
    room: float = _AT_ONCE
    changes: int = 0

    def news(self, state: State, now: float) -> int | None:
        """Takes note of a state. Returns how many changes before it go unsaid; ``None`` when there is nothing to say now."""
        self.room, self.at = min(_AT_ONCE, self.room + (now - self.at) / _THEN_S), now
        self.changes += state != self.seen
        self.seen = state
        if state == self.said or self.room < 1:
            return None
        unsaid, self.changes = self.changes - 1, 0
        self.said, self.room = state, self.room - 1
        return unsaid


class Changes:
    """Compares each status of a run (``/status``) with what was said before. A run begins with all in order, and HOLD."""

    def __init__(self, now: float) -> None:
        self._subjects = {read: _Subject(said=first, seen=first, at=now) for read, first in _SUBJECTS.items()}

    def lines(self, status: JSON, now: float) -> Iterator[str]:
        """What is to be said at ``now`` (seconds of one monotonic clock). What waits because it flaps is said later, as it
        stands then."""
        for read, subject in self._subjects.items():
            before = subject.said
            state, line = read(status, before)
            unsaid = subject.news(state, now)
            if unsaid is not None:
                yield line + (f" (after {unsaid} more changes)" if unsaid else "")


def _mirroring(status: JSON, before: State) -> tuple[State, str]:
    on = bool(status["mirroring"])
    return on, "mirroring is started by hand" if on else "mirroring is stopped by hand: no copies leave"


def _mirror(status: JSON, before: State) -> tuple[State, str]:
    problem = status["mirror"].get("problem")
    if problem is None:
        return None, "the mirror is up again"
    return problem, f"the mirror is down: {problem}; production goes on unmirrored, and it is started again"


def _breaker(status: JSON, before: State) -> tuple[State, str]:
    """All probes of an outage are one state."""
    mirror = status["mirror"]
    if "breaker" not in mirror:
        return before, ""
    if mirror["breaker"] == "closed":
        return "closed", "the circuit breaker closes: the candidate takes copies again"
    if mirror.get("probes") and before != "closed":
        return "probed", "the circuit breaker probes: one copy at a time until the candidate answers one"
    return "open", "the circuit breaker opens: the candidate failed too often in a row and gets no copies"


def _verdict(status: JSON, before: State) -> tuple[State, str]:
    said = status["verdict"]
    if said is None:
        return before, ""
    return said[
        "verdict"
    ], f"the verdict is {said['verdict']}, was {before}: {said['reason']} ({said['code']})"


_SUBJECTS: dict[Callable[[JSON, State], tuple[State, str]], State] = {
    _mirroring: True,
    _mirror: None,
    _breaker: "closed",
    _verdict: "HOLD",
}
"""Each reads a state, and how it is said, off a status and what was said last; with the state that is no news."""
