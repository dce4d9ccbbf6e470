"""What is known of both sides of a cost, and every reason to doubt it, each with what would remove it. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from reports.costing import GpuPrice, Quote, TokenPrice, age_days
from reports.facts import duration
from reports.spending import FEW, Spent, Throughput

_SHORT_S = 86_400.0
"""A day has quiet hours, and less than one does not show them."""


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


def throughput(side: Side) -> Throughput | None:
    """As measured, else as the price states it, else ``None``."""
    if side.throughput is not None or side.quote is None or side.quote.throughput is None:
        return side.throughput
    return Throughput(per_s=side.quote.throughput, low=None, high=None, source="price.throughput")


def doubts(sides: tuple[Side, ...], terms: Terms, now: float) -> Iterator[str]:
    """Every reason to doubt a figure, with what would remove it."""
    if len(sides) == 1:
        yield "the run has no candidate: nothing is compared"
    if terms.traffic_per_day is None:
        yield "nothing says how much traffic there is: give migrate cost --traffic 50k/day for a day, a month and what follows"
    elif terms.traffic_recorded and terms.recorded_s < _SHORT_S:
        recorded = duration(terms.recorded_s)
        yield f"a day's traffic is reckoned from {recorded} of the run; migrate cost --traffic 50k/day takes another"
    for side in sides:
        yield from (f"{side.arm}: {text}" for text in (*_of_price(side, terms, now), *_of_tokens(side)))
    if any(isinstance(side.quote.price, GpuPrice) for side in sides if side.quote) and terms.peak == 1:
        yield "traffic is taken as even all day; a busiest moment of three times the mean takes more GPUs: migrate cost --peak 3"


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
        days = "1 day" if round(age) == 1 else f"{age:.0f} days"
        yield f"its price is stale: read on {quote.date}, {days} ago; look it up again{where}"
    if not isinstance(quote.price, GpuPrice):
        return
    rate = throughput(side)
    if rate is not None and rate.low is None:
        yield f"its throughput is taken as exact: migrate cost --{side.arm}-bench FILE knows its counts, and how far they reach"
    if rate is None:
        yield (
            "nobody measured what its GPUs carry: one replica is taken to carry all; measure it with migrate bench --goodput and "
            f"give migrate cost --{side.arm}-bench FILE"
        )


def _of_tokens(side: Side) -> Iterator[str]:
    """Doubts about counts; those of GPUs are for orientation only."""
    seen, price = side.spent, side.quote.price if side.quote else None
    if not isinstance(price, TokenPrice):
        return
    if not seen.answered + seen.failed:
        yield "it was not asked in this run, so that no request has a cost"
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
