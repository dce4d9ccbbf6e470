"""How much validation may ask of a backend. Pure: time comes in as an argument."""

from __future__ import annotations

import math
from collections import deque
from statistics import median

from migrate.config import Limits, Price

_DAY_S = 86_400.0
_MINUTE_S = 60.0


class Budget:
    """Copies in flight, requests in any minute, tokens and dollars in any UTC day. ``None`` limits are no limits.

    ``day``, ``tokens`` and ``micro_usd``: what was spent on a day before this process began.
    """

    def __init__(
        self, limits: Limits, price: Price | None = None, *, day: int = 0, tokens: int = 0, micro_usd: int = 0
    ) -> None:
        self._limits, self._price = limits, price.tokens if price else None
        self._sent: deque[float] = deque()
        self.day = day
        """Days since the epoch on which ``tokens`` and ``micro_usd`` count."""
        self._tokens, self._micro_usd = tokens, micro_usd
        self._reserved = [0, 0]
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
        return self.exhausted(now)

    def exhausted(self, now: float, prompt: int = 0, answer: int = 0) -> str | None:
        """Why the day has no room for another request of so many tokens, what is in flight counted at its most."""
        limits = self._limits
        spent = self.tokens(now), self.micro_usd(now)
        wanted = sum(self._reserved) + prompt + answer
        if limits.tokens_per_day is not None and not _room(spent[0], wanted, limits.tokens_per_day):
            return "token_budget"
        cost = self._cost(self._reserved[0] + prompt, self._reserved[1] + answer)
        if limits.usd_per_day is not None and not _room(spent[1], cost, round(limits.usd_per_day * 1e6)):
            return "usd_budget"
        return None

    def reserve(self, prompt: int, answer: int) -> None:
        """A request leaves that may cost so many tokens; ``release`` takes it back when ``spend`` knows better."""
        self._reserved[0] += prompt
        self._reserved[1] += answer

    def release(self, prompt: int, answer: int) -> None:
        """A request that was reserved has ended."""
        self.reserve(-prompt, -answer)

    def sent(self, now: float) -> None:
        """One request left (a retry is one more)."""
        if self._limits.requests_per_minute is not None:
            self._sent.append(now)

    def spend(self, prompt: int, answer: int, now: float) -> None:
        """Counts the tokens of a finished request."""
        self._tokens = self.tokens(now) + prompt + answer
        self._micro_usd += self._cost(prompt, answer)

    def tokens(self, now: float) -> int:
        """Tokens spent so far in the day of ``now``."""
        day = int(now // _DAY_S)
        if day != self.day:
            self.day, self._tokens, self._micro_usd = day, 0, 0
        return self._tokens

    def micro_usd(self, now: float) -> int:
        """Millionths of a dollar spent so far in the day of ``now``."""
        self.tokens(now)
        return self._micro_usd

    def spent(self, now: float) -> dict[str, int]:
        """What the day of ``now`` has cost so far, as counters: ``tokens``, and ``micro_usd`` where a price is known."""
        tokens = {"tokens": self.tokens(now)}
        return tokens if self._price is None else tokens | {"micro_usd": self._micro_usd}

    def _cost(self, prompt: int, answer: int) -> int:
        """Dollars a million tokens are millionths of a dollar each."""
        return (
            0 if self._price is None else math.ceil(prompt * self._price.input + answer * self._price.output)
        )


def _room(spent: int, wanted: int, limit: int) -> bool:
    return spent < limit and spent + wanted <= limit


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
