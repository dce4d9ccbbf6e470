"""What serving costs: a request, a day, a fleet of GPUs, a move, and the traffic at which another backend is the cheaper one.

Money is US dollars. ``docs/cost.md`` works every formula by hand. Pure.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, fields
from datetime import UTC, date, datetime
from typing import TypeVar

from reports.stats import Floats

MONTH_DAYS = 365 / 12
"""A month is a twelfth of a year: 730 hours."""
DAY_S = 86_400.0
MOST_REQUESTS = 1e10
"""A day; break-even is looked for below it."""
_MOST_STEPS = 2_000
_MILLION = 1e6
Tokens = TypeVar("Tokens", float, Floats)


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenPrice:
    """USD for a million tokens. ``cached_input`` is for input from the server's prefix cache; ``None``: as other input."""

    input: float
    output: float
    cached_input: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuPrice:
    """USD for one GPU for an hour, and how many GPUs one replica of the server takes."""

    per_hour: float
    gpus: int

    @property
    def usd_per_hour(self) -> float:
        """Of one replica."""
        return self.per_hour * self.gpus


@dataclass(frozen=True, slots=True, kw_only=True)
class Quote:
    """A price and where it is from."""

    price: TokenPrice | GpuPrice
    throughput: float | None = None
    """Requests a second within the limits of goodput that one replica serves, as configured; ``None``: not stated."""
    source: str | None = None
    date: str | None = None
    """ISO 8601: the day on which it was read; ``None``: nobody said."""


def request_usd(
    price: TokenPrice, prompt: int | None, output: int | None, cached_share: float | None
) -> float | None:
    """What one answer's tokens cost; ``None`` where the server did not state both counts.

    ``cached_share``: of the prompt, from the cache, 0 to 1; ``None`` is priced as 0, which can only be too dear.
    Reasoning tokens are output, as every server counts them.
    """
    if prompt is None or output is None:
        return None
    return tokens_usd(price, prompt, output, cached_share or 0.0)


def tokens_usd(price: TokenPrice, prompt: Tokens, output: Tokens, cached_share: Tokens) -> Tokens:
    """What known tokens cost, of one answer or of many in arrays."""
    cached = prompt * cached_share
    of_cached = price.input if price.cached_input is None else price.cached_input
    return ((prompt - cached) * price.input + cached * of_cached + output * price.output) / _MILLION


@dataclass(frozen=True, slots=True, kw_only=True)
class Tariff:
    """What a backend costs at any traffic: fixed + for each request + for each replica that the traffic takes."""

    usd_per_month: float = 0.0
    """Whatever the traffic: the engineers who run it."""
    usd_per_request: float = 0.0
    replica_usd_per_day: float = 0.0
    replica_requests_per_day: float | None = None
    """What one replica carries; ``None``: not known, and one replica is taken to carry all."""

    @property
    def fixed_usd_per_day(self) -> float:
        """Of the month's fixed cost."""
        return self.usd_per_month / MONTH_DAYS

    def replicas(self, requests_per_day: float) -> int:
        """At least one, even without traffic: a server that is kept ready is paid for. 0 where none is rented."""
        if not self.replica_usd_per_day:
            return 0
        if self.replica_requests_per_day is None:
            return 1
        return max(1, math.ceil(requests_per_day / self.replica_requests_per_day - 1e-9))

    def per_day(self, requests_per_day: float) -> float:
        """The whole day's cost."""
        replicas = self.replicas(requests_per_day) * self.replica_usd_per_day
        return self.fixed_usd_per_day + requests_per_day * self.usd_per_request + replicas

    def at_full_load(self) -> float | None:
        """A request's cost without anything fixed, on replicas that are never idle; ``None`` where nobody knows what one
        carries."""
        if not self.replica_usd_per_day:
            return self.usd_per_request
        most = self.replica_requests_per_day
        return None if most is None else self.replica_usd_per_day / most


def replica(
    price: GpuPrice, throughput: float | None, *, peak: float = 1.0, usd_per_month: float = 0.0
) -> Tariff:
    """Self-hosted: GPUs are paid by the hour, busy or idle.

    ``throughput``: requests a second of one replica within the limits of goodput; ``peak``: the busiest moment's traffic
    over the day's mean, which the replicas have to carry.
    """
    return Tariff(
        usd_per_month=usd_per_month,
        replica_usd_per_day=price.usd_per_hour * 24,
        replica_requests_per_day=None if throughput is None else throughput * DAY_S / peak,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """Traffic in which the candidate is the cheaper one: above ``above`` and up to ``to`` requests a day."""

    above: float
    to: float | None
    """``None``: without end, as far as ``MOST_REQUESTS``."""


def cheaper(
    baseline: Tariff, candidate: Tariff, most: float = MOST_REQUESTS, steps: int = _MOST_STEPS
) -> tuple[Stretch, ...]:
    """Where the candidate costs less than the baseline, by rising traffic.

    Costs are straight lines between the points at which another replica is needed, so each piece is solved exactly. Only
    the first ``steps`` pieces are looked at one by one: the last one found stands for what lies beyond.
    """
    ends = _steps((baseline, candidate), most, steps)
    found: list[tuple[float, float]] = []
    start = 0.0
    for end in ends:
        piece = _below(baseline, candidate, start, end)
        if piece and found and math.isclose(piece[0], found[-1][1]):
            found[-1] = found[-1][0], piece[1]
        elif piece:
            found.append(piece)
        start = end
    return tuple(Stretch(above=low, to=None if high >= ends[-1] else high) for low, high in found)


def break_even(baseline: Tariff, candidate: Tariff) -> float | None:
    """The first traffic above 0, in requests a day, at which the cheaper one changes; ``None``: it never does."""
    stretches = cheaper(baseline, candidate)
    if not stretches:
        return None
    return stretches[0].above or stretches[0].to


def _steps(tariffs: Iterable[Tariff], most: float, steps: int) -> list[float]:
    """Where another replica is needed, in rising order, ``most`` last."""
    sizes = [one.replica_requests_per_day for one in tariffs if one.replica_requests_per_day]
    ends = {size * number for size in sizes for number in range(1, steps + 1)}
    if ends:
        most = min(most, *(size * steps for size in sizes))
    return sorted({end for end in ends if end < most} | {most})


def _below(baseline: Tariff, candidate: Tariff, start: float, end: float) -> tuple[float, float] | None:
    """The part of one piece in which the candidate costs less; ``None`` where it nowhere does."""
    inside = (start + end) / 2
    slope = candidate.usd_per_request - baseline.usd_per_request
    middle = candidate.per_day(inside) - baseline.per_day(inside)
    at_start, at_end = middle - slope * (inside - start), middle + slope * (end - inside)
    if at_start >= 0 and at_end >= 0:
        return None
    if at_start < 0 and at_end < 0:
        return start, end
    even = inside - middle / slope
    return (start, even) if at_start < 0 else (even, end)


def ownership(tariff: Tariff, requests_per_day: float, months: int, once: float = 0.0) -> float:
    """Total cost of ownership: ``once`` and so many months. Nothing grows, and no interest is reckoned."""
    return once + months * MONTH_DAYS * tariff.per_day(requests_per_day)


def saving(baseline: Tariff, candidate: Tariff, requests_per_day: float) -> float:
    """A month's; below 0 where the candidate costs more."""
    return (baseline.per_day(requests_per_day) - candidate.per_day(requests_per_day)) * MONTH_DAYS


def return_on_investment(saved_per_month: float, months: int, migration: float) -> float | None:
    """(what is saved in so many months - migration) / migration; ``None`` for a migration that costs nothing."""
    return (saved_per_month * months - migration) / migration if migration > 0 else None


def payback_months(saved_per_month: float, migration: float) -> float | None:
    """Until the migration has paid for itself; ``None``: never."""
    return migration / saved_per_month if saved_per_month > 0 else None


def rollback(
    baseline: Tariff, candidate: Tariff, requests_per_day: float, days: float, migration: float
) -> float:
    """What a move costs that is taken back after so many days in which the baseline was kept ready without traffic.

    The migration, and for each day the candidate's cost, less only what the baseline takes for each request.
    """
    extra = candidate.per_day(requests_per_day) - requests_per_day * baseline.usd_per_request
    return migration + days * extra


@dataclass(frozen=True, slots=True, kw_only=True)
class Three:
    """A figure with its ends; ``None`` where it cannot be said."""

    low: float | None = None
    expected: float | None = None
    high: float | None = None

    @classmethod
    def certain(cls, value: float | None) -> Three:
        """One without uncertainty."""
        return cls(low=value, expected=value, high=value)

    @property
    def known(self) -> bool:
        """Whether anything can be said at all."""
        return any(getattr(self, one.name) is not None for one in fields(self))


def age_days(quote: Quote, now: float) -> float | None:
    """How old a price is at ``now`` (epoch seconds), below 0 for a date to come; ``None`` without a date."""
    if quote.date is None:
        return None
    return (datetime.fromtimestamp(now, UTC).date() - date.fromisoformat(quote.date)).days
