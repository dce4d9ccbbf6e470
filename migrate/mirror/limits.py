"""How much validation may ask of a backend. Pure: time comes in as an argument."""

from __future__ import annotations

from collections import deque
from statistics import median

from migrate.config import Limits

_DAY_S = 86_400.0
_MINUTE_S = 60.0


class Budget:
    """Copies in flight, requests in any minute, tokens in any UTC day. ``None`` limits are no limits.

    ``day`` and ``tokens``: what was spent on a day before this process began.
    """

    def __init__(self, limits: Limits, *, day: int = 0, tokens: int = 0) -> None:
        self._limits = limits
        self._sent: deque[float] = deque()
        self.day = day
        """Days since the epoch on which ``tokens`` counts."""
        self._tokens = tokens
        self.in_flight = 0

    def refusal(self, now: float) -> str | None:
        """Why no copy may leave at ``now`` (epoch seconds); ``None`` when one may."""
        limits = self._limits
        if self.in_flight >= limits.in_flight:
            return "in_flight_limit"
        while self._sent and now - self._sent[0] >= _MINUTE_S:
            self._sent.popleft()
        if limits.requests_per_minute is not None and len(self._sent) >= limits.requests_per_minute:
            return "rate_limit"
        if limits.tokens_per_day is not None and self.tokens(now) >= limits.tokens_per_day:
            return "token_budget"
        return None

    def sent(self, now: float) -> None:
        """One request left (a retry is one more)."""
        if self._limits.requests_per_minute is not None:
            self._sent.append(now)

    def spend(self, tokens: int, now: float) -> None:
        """Counts the tokens of a finished copy, prompt and answer."""
        self._tokens = self.tokens(now) + tokens

    def tokens(self, now: float) -> int:
        """Tokens spent so far in the day of ``now``."""
        day = int(now // _DAY_S)
        if day != self.day:
            self.day, self._tokens = day, 0
        return self._tokens


class RepeatGuard:
    """Stops baseline repeats at the first sign that the baseline has enough to do; pauses grow while it recurs.

    A sign is a 429 or 503 to anybody, or the median time to the answer's head over the last 50 answers above one and a
    half times that of the first 50, and above it by 50 ms.
    """

    _WINDOW = 50
    _FACTOR = 1.5
    _SLACK_S = 0.05
    _LONGEST_S = 3_600.0

    def __init__(self, *, pause: float = 60.0) -> None:
        self._pause = self._first_pause = pause
        self._until = 0.0
        self._early: list[float] = []
        self._late: deque[float] = deque(maxlen=self._WINDOW)
        self.reason: str | None = None
        """Why repeats are paused, or were last; ``None``: never."""

    def paused(self, now: float) -> bool:
        """Whether no repeat may leave at ``now`` (epoch seconds)."""
        return now < self._until

    def saw(self, *, status: int | None, head_s: float | None, now: float) -> None:
        """The baseline answered somebody, or did not (``None``)."""
        if status in (429, 503):
            self._stop(f"the baseline answered {status}", now)
        if head_s is None:
            return
        if len(self._early) < self._WINDOW:
            self._early.append(head_s)
            return
        self._late.append(head_s)
        if len(self._late) == self._WINDOW and self._slower():
            self._stop("the baseline slowed down", now)
            self._late.clear()

    def _slower(self) -> bool:
        before, after = median(self._early), median(self._late)
        return after > before * self._FACTOR and after > before + self._SLACK_S

    def _stop(self, reason: str, now: float) -> None:
        if self.paused(now):
            return
        again = self._until > 0 and now - self._until < self._pause
        self._pause = min(self._pause * 2, self._LONGEST_S) if again else self._first_pause
        self._until, self.reason = now + self._pause, reason
