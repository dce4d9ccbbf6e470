"""What a run says of the money: both backends at one traffic, low, expected and high, and every reason to doubt it. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from reports.costing import (
    MONTH_DAYS,
    GpuPrice,
    Stretch,
    Tariff,
    Three,
    break_even,
    cheaper,
    ownership,
    payback_months,
    replica,
    return_on_investment,
    rollback,
    saving,
)
from reports.doubts import Side, Terms, doubts, throughput
from reports.spending import Throughput

SCHEMA = {"name": "llm-migrate.cost", "version": 1}
HORIZONS = (12, 36)
"""Months of ownership."""

DEFINITIONS = {
    "low, high": "for tokens the ends of the 95 % interval of the mean cost of a request (requests of one conversation speak "
    "together); for GPUs the ends of the 95 % interval of the measured throughput, where its counts are known; prices, "
    "traffic and a throughput without counts are taken as exact. What compares the two takes the worse end of one with the "
    "better end of the other",
    "request": "(prompt - cached) x input + cached x cached_input + output x output price, mean over the answers that stated "
    "their tokens; for GPUs a day's cost / the day's requests",
    "at full load": "a request's cost; for GPUs a replica's GPUs for a day / what it carries in a day within the limits of "
    "goodput",
    "this run": "all answers that stated their tokens; for GPUs one replica for as long as the run took",
    "day": "fixed cost + requests x cost of a request + replicas x GPUs x 24 h, with as many replicas as the peak takes, at "
    "least one",
    "month": "365 / 12 days",
    "12 months, 36 months": "total cost of ownership: the migration (candidate only) and so many months; nothing grows, and no "
    "interest is reckoned",
    "saving": "the baseline's month - the candidate's",
    "return": "(saving x months - migration) / migration",
    "payback": "migration / saving",
    "break-even": "requests a day at which the day of the one becomes the cheaper one instead of the other's, for the first "
    "time; more replicas may turn it again. The migration is not in it",
    "rollback": "the migration, and for each day of overlap the candidate's day less what the baseline takes for each request: "
    "its fixed cost and its GPUs are paid twice",
}


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
        notes=tuple(doubts(sides, terms, now)),
    )


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
    """The more a replica carries, the less is paid. A throughput that came without its counts is taken as exact."""
    if rate is None:
        one = replica(price, None, usd_per_month=monthly)
        return Tariffs(low=one, expected=one, high=one)
    made = [
        replica(price, per_s or rate.per_s, peak=peak, usd_per_month=monthly)
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
    yield row("at full load", Tariff.at_full_load)
    if n is None:
        return
    yield row("request", lambda one: replace(one, usd_per_month=0.0).per_day(n) / n if n else None)
    yield row("day", lambda one: one.per_day(n))
    yield row("month", lambda one: one.per_day(n) * MONTH_DAYS)
    for months in HORIZONS:
        yield row(f"{months} months", lambda one, m=months: ownership(one, n, m), terms.migration)  # type: ignore[misc]


def _of_run(side: Side, run_s: float) -> Three:
    """What was paid while the run went on; the baseline's repeats are in it. Unknown for who was not asked."""
    price = side.quote.price if side.quote else None
    if not side.spent.answered + side.spent.failed:
        return Three()
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
    yield Joint(name="break-even", unit="requests", value=_even(base, candidate))
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


def _even(base: Tariffs, candidate: Tariffs) -> Three:
    """The first traffic at which the cheaper one changes. Which end of the costs makes it low depends on who has the GPUs."""
    found = _across(candidate, base, lambda new, old: break_even(old, new))
    known = [one for one in (found.low, found.high) if one is not None]
    if found.expected is None:
        return Three()
    return Three(
        low=min((one for one in known if one <= found.expected), default=None),
        expected=found.expected,
        high=max((one for one in known if one >= found.expected), default=None),
    )


def _each(value: Three, figure: Callable[[float], float | None]) -> Three:
    ends = (None if one is None else figure(one) for one in (value.low, value.expected, value.high))
    low, expected, high = ends
    return Three(low=low, expected=expected, high=high)


def _across(rising: Tariffs, falling: Tariffs, figure: Callable[[Tariff, Tariff], float | None]) -> Three:
    """A figure that grows with the cost of the first and shrinks with the cost of the second."""
    pairs = (
        (rising.low, falling.high),
        (rising.expected, falling.expected),
        (rising.high, falling.low),
    )
    low, expected, high = (figure(one, other) if one and other else None for one, other in pairs)
    return Three(low=low, expected=expected, high=high)
