"""What a run says of the money: both backends at one traffic, low, expected and high, and every reason to doubt it. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from reports.costing import (
    MONTH_DAYS,
    GpuPrice,
    Quote,
    Stretch,
    Tariff,
    Three,
    TokenPrice,
    age_days,
    cheaper,
    ownership,
    payback_months,
    replica,
    return_on_investment,
    rollback,
    saving,
)
from reports.facts import duration
from reports.spending import FEW, Spent, Throughput

SCHEMA = {"name": "llm-migrate.cost", "version": 1}
HORIZONS = (12, 36)
"""Months of ownership."""
_SHORT_S = 86_400.0

DEFINITIONS = {
    "low, high": "for tokens the ends of the 95 % interval of the mean cost of a request (requests of one conversation speak "
    "together); for GPUs the ends of the 95 % interval of the measured throughput, where its counts are known; prices and "
    "traffic are taken as exact. What compares the two takes the worse end of one with the better end of the other",
    "request": "(prompt - cached) x input + cached x cached_input + output x output price, mean over the answers that stated "
    "their tokens; for GPUs a day's cost / the day's requests",
    "request at full load": "for GPUs: a replica's GPUs for a day / what it carries in a day within the limits of goodput",
    "this run": "all answers that stated their tokens; for GPUs one replica for as long as the run took",
    "day": "fixed cost + requests x cost of a request + replicas x GPUs x 24 h, with as many replicas as the peak takes, at "
    "least one",
    "month": "365 / 12 days",
    "12 months, 36 months": "total cost of ownership: the migration (candidate only) and so many months; nothing grows, and no "
    "interest is reckoned",
    "saving": "the baseline's month - the candidate's",
    "return": "(saving x months - migration) / migration",
    "payback": "migration / saving",
    "break-even": "the traffic from which on the candidate's day is the cheaper one; the migration is not in it",
    "rollback": "the migration, and for each day of overlap the candidate's day less what the baseline takes for each request: "
    "its fixed cost and its GPUs are paid twice",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """What is known of one backend."""

    arm: str
    """``baseline`` or ``candidate``."""
    name: str
    quote: Quote | None
    spent: Spent
    repeats: Spent | None = None
    """The second answers of the baseline, which only validation asked for."""
    throughput: Throughput | None = None
    """As measured; goes before what the price states."""
    usd_per_month: float = 0.0
    """Of the engineers who run it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What was given, or taken from the run."""

    traffic_per_day: float | None
    traffic_recorded: bool
    """It is that of the run, and nobody gave one."""
    run_s: float
    """How long the run took."""
    recorded_s: float
    """From its first request to its last."""
    peak: float = 1.0
    """The busiest moment's traffic over the day's mean."""
    migration: float = 0.0
    overlap_days: float = 0.0
    stale_days: float = 90.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One figure of both backends."""

    name: str
    unit: str
    """``usd``."""
    baseline: Three
    candidate: Three


@dataclass(frozen=True, slots=True, kw_only=True)
class Joint:
    """One figure that compares them."""

    name: str
    unit: str
    """``usd``, ``share``, ``months`` or ``requests``."""
    value: Three


@dataclass(frozen=True, slots=True, kw_only=True)
class Tariffs:
    """A backend's tariff at each end; ``None`` where the end is not known."""

    low: Tariff | None = None
    expected: Tariff | None = None
    high: Tariff | None = None

    def map(self, figure: Callable[[Tariff], float | None]) -> Three:
        """A figure of each."""
        return Three(
            low=figure(self.low) if self.low else None,
            expected=figure(self.expected) if self.expected else None,
            high=figure(self.high) if self.high else None,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """Everything that a renderer shows of costs."""

    sides: tuple[Side, ...]
    terms: Terms
    rows: tuple[Row, ...]
    joint: tuple[Joint, ...]
    cheaper: tuple[Stretch, ...]
    """Traffic in which the candidate is expected to be the cheaper one; empty: nowhere, or not known."""
    comparable: bool
    """Both expected tariffs are known."""
    tariffs: tuple[Tariffs, ...]
    """As ``sides``."""
    notes: tuple[str, ...]
    definitions: dict[str, str] = field(default_factory=lambda: dict(DEFINITIONS))


def outlook(sides: tuple[Side, ...], terms: Terms, *, now: float) -> Outlook:
    """The figures of one backend, or of a baseline and its candidate in this order; ``now``: epoch seconds."""
    known = tuple(_tariffs(side, terms.peak) for side in sides)
    both = (*known, Tariffs())[:2]
    base, candidate = both
    comparable = base.expected is not None and candidate.expected is not None
    return Outlook(
        sides=sides,
        terms=terms,
        rows=tuple(_rows(sides, base, candidate, terms)),
        joint=tuple(_joint(base, candidate, terms)),
        cheaper=cheaper(base.expected, candidate.expected) if base.expected and candidate.expected else (),
        comparable=comparable,
        tariffs=known,
        notes=tuple(_notes(sides, terms, now)),
    )


def throughput(side: Side) -> Throughput | None:
    """As measured, else as the price states it, else ``None``."""
    if side.throughput is not None or side.quote is None or side.quote.throughput is None:
        return side.throughput
    return Throughput(per_s=side.quote.throughput, low=None, high=None, source="price.throughput")


def _tariffs(side: Side, peak: float) -> Tariffs:
    price = side.quote.price if side.quote else None
    if isinstance(price, GpuPrice):
        return _of_gpus(price, throughput(side), peak, side.usd_per_month)
    cost = side.spent.usd_per_request
    if cost is None:
        return Tariffs()
    made = [
        None if value is None else Tariff(usd_per_month=side.usd_per_month, usd_per_request=value)
        for value in (cost.low, cost.value, cost.high)
    ]
    return Tariffs(low=made[0], expected=made[1], high=made[2])


def _of_gpus(price: GpuPrice, rate: Throughput | None, peak: float, monthly: float) -> Tariffs:
    """The more a replica carries, the less is paid."""
    if rate is None:
        one = replica(price, None, usd_per_month=monthly)
        return Tariffs(low=one, expected=one, high=one)
    made = [
        None if per_s is None else replica(price, per_s, peak=peak, usd_per_month=monthly)
        for per_s in (rate.high, rate.per_s, rate.low)
    ]
    return Tariffs(low=made[0], expected=made[1], high=made[2])


def _rows(sides: tuple[Side, ...], base: Tariffs, candidate: Tariffs, terms: Terms) -> Iterator[Row]:
    def row(name: str, figure: Callable[[Tariff], float | None], once: float = 0.0) -> Row:
        return Row(
            name=name,
            unit="usd",
            baseline=base.map(figure),
            candidate=candidate.map(lambda one: None if (v := figure(one)) is None else v + once),
        )

    n = terms.traffic_per_day
    runs = [_of_run(side, terms.run_s) for side in sides]
    yield Row(name="this run", unit="usd", baseline=runs[0], candidate=(*runs, Three())[1])
    yield row("request at full load", Tariff.at_full_load)
    if n is None:
        return
    yield row("request", lambda one: replace(one, usd_per_month=0.0).per_day(n) / n if n else None)
    yield row("day", lambda one: one.per_day(n))
    yield row("month", lambda one: one.per_day(n) * MONTH_DAYS)
    for months in HORIZONS:
        yield row(f"{months} months", lambda one, m=months: ownership(one, n, m), terms.migration)  # type: ignore[misc]


def _of_run(side: Side, run_s: float) -> Three:
    """What was paid while the run went on; the baseline's repeats are in it."""
    price = side.quote.price if side.quote else None
    if isinstance(price, GpuPrice):
        return Three.certain(price.usd_per_hour * run_s / 3600)
    if side.spent.usd is None:
        return Three()
    return Three.certain(side.spent.usd + (side.repeats.usd or 0.0 if side.repeats else 0.0))


def _joint(base: Tariffs, candidate: Tariffs, terms: Terms) -> Iterator[Joint]:
    """The better end of a saving is the dear baseline with the cheap candidate."""
    n = terms.traffic_per_day
    if n is None:
        return
    saved = _across(base, candidate, lambda old, new: saving(old, new, n))
    yield Joint(name="saving", unit="usd", value=saved)
    for months in HORIZONS:
        value = _each(saved, lambda one, m=months: return_on_investment(one, m, terms.migration))  # type: ignore[misc]
        if value.known:
            yield Joint(name=f"return after {months} months", unit="share", value=value)
    if terms.migration:
        paid = _each(saved, lambda one: payback_months(one, terms.migration))
        yield Joint(
            name="payback", unit="months", value=Three(low=paid.high, expected=paid.expected, high=paid.low)
        )
    lost = _across(
        candidate, base, lambda new, old: rollback(old, new, n, terms.overlap_days, terms.migration)
    )
    yield Joint(name="rollback", unit="usd", value=lost)


def _each(value: Three, figure: Callable[[float], float | None]) -> Three:
    ends = (None if one is None else figure(one) for one in (value.low, value.expected, value.high))
    low, expected, high = ends
    return Three(low=low, expected=expected, high=high)


def _across(rising: Tariffs, falling: Tariffs, figure: Callable[[Tariff, Tariff], float]) -> Three:
    """A figure that grows with the cost of the first and shrinks with the cost of the second."""
    pairs = (
        (rising.low, falling.high),
        (rising.expected, falling.expected),
        (rising.high, falling.low),
    )
    low, expected, high = (figure(one, other) if one and other else None for one, other in pairs)
    return Three(low=low, expected=expected, high=high)


def _notes(sides: tuple[Side, ...], terms: Terms, now: float) -> Iterator[str]:
    """Every reason to doubt a figure, with what would remove it."""
    if len(sides) == 1:
        yield "the run has no candidate: nothing is compared"
    if terms.traffic_per_day is None:
        yield "nothing says how much traffic there is: give --traffic 50k/day for a day, a month and what follows"
    elif terms.traffic_recorded and terms.recorded_s < _SHORT_S:
        yield f"a day's traffic is reckoned from {duration(terms.recorded_s)} of the run; give --traffic 50k/day if you know it"
    for side in sides:
        yield from (f"{side.arm}: {text}" for text in (*_of_price(side, terms, now), *_of_tokens(side)))
    if any(isinstance(side.quote.price, GpuPrice) for side in sides if side.quote) and terms.peak == 1:
        yield "traffic is taken to be even all day: --peak 3 for a busiest moment of three times the mean takes more GPUs"


def _of_price(side: Side, terms: Terms, now: float) -> Iterator[str]:
    quote = side.quote
    if quote is None:
        yield (
            "no price is known; add price: {input: 0.15, output: 0.60} or price: {gpu_per_hour: 2.50, gpus: 4} to it in the "
            "configuration, and name that with --config"
        )
        return
    age = age_days(quote, now)
    if age is None:
        yield "its price has no date, so nobody knows how old it is; add date: and source: to price:"
    elif age < 0:
        yield f"its price is dated {quote.date}, which is still to come; correct date: of price:"
    elif age > terms.stale_days:
        where = f" at {quote.source}" if quote.source else ""
        yield f"its price is stale: read on {quote.date}, {age:.0f} days ago; look it up again{where}"
    if isinstance(quote.price, GpuPrice) and throughput(side) is None:
        yield (
            "nobody measured what its GPUs carry: one replica is taken to carry all; measure it with migrate bench --goodput and "
            f"give --{side.arm}-bench FILE"
        )


def _of_tokens(side: Side) -> Iterator[str]:
    """Doubts about counts; those of GPUs are for orientation only."""
    seen, price = side.spent, side.quote.price if side.quote else None
    if not isinstance(price, TokenPrice):
        return
    if not seen.answered:
        yield "it answered nothing in this run, so that no request has a cost"
        return
    if seen.counted < seen.answered:
        yield (
            f"{seen.answered - seen.counted:,} of {seen.answered:,} answers state no token counts and are in no figure; ask for "
            "them with stream_options: {include_usage: true}"
        )
    if price.cached_input is not None and seen.cached_stated < seen.counted:
        yield (
            f"{seen.counted - seen.cached_stated:,} of {seen.counted:,} answers do not state what came from the cache: their "
            "whole prompt is priced as input"
        )
    if seen.failed:
        yield f"{seen.failed:,} requests failed; what they cost is not known and not reckoned"
    if seen.retried:
        yield f"{seen.retried:,} answers took several attempts; only the last one is reckoned"
    if seen.usd_per_request and seen.usd_per_request.conversations < FEW:
        yield f"only {seen.usd_per_request.conversations} conversations: the interval is rough"
