"""Holds a replay to what a backend allows in a minute. Pure: time comes in as an argument.

What a limit holds back is not lateness: the schedule is stretched before anything is due, and the report says by how much.
"""

from __future__ import annotations

_MINUTE_S = 60.0


class Pace:
    """Spreads requests, and their tokens, evenly over the minute. ``None`` limits are no limits."""

    def __init__(self, *, requests_per_minute: int | None, tokens_per_minute: int | None) -> None:
        self._request_s = _MINUTE_S / requests_per_minute if requests_per_minute else 0.0
        self._token_s = _MINUTE_S / tokens_per_minute if tokens_per_minute else 0.0
        self._free = 0.0

    def moment(self, due: float) -> float:
        """When a request that is due may leave."""
        return max(due, self._free)

    def leaves(self, moment: float, tokens: int) -> None:
        """A request with so many tokens, prompt and answer, leaves at ``moment``."""
        self._free = max(self._free, moment) + max(self._request_s, tokens * self._token_s)

    def pause(self, until: float) -> None:
        """The backend asked to be left alone until then."""
        self._free = max(self._free, until)
