"""An outlook on costs for people at a terminal of 80 columns or more, and for programs. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict

from replay.exchange import JSON
from reports.costing import GpuPrice, Quote, Three
from reports.doubts import Side, throughput
from reports.outlook import SCHEMA, Joint, Outlook
from reports.render.text import plain, wrap
from reports.render.words import NOTHING, count

_ENDS = ("low", "expected", "high")
_PERIODS = {
    "saving": "saving a month",
    "rollback": "rollback costs",
    "payback": "payback, months",
    "break-even": "break-even, requests a day",
}


def render_json(outlook: Outlook, run: str) -> JSON:
    """Everything, with the definition of each figure; what is not known is null."""
    return {"schema": SCHEMA, "run": run, **asdict(outlook)}


def render_terminal(outlook: Outlook, run: str, *, width: int = 80) -> str:
    """Tables of at most 80 columns, sentences of ``width``."""
    parts = (list(_head(outlook, run, width)), list(_rows(outlook)), list(_joint(outlook, width)))
    notes = [
        line for note in outlook.notes for line in wrap(f"! {plain(note)}", width, first="  ", rest="    ")
    ]
    return "\n\n".join("\n".join(block) for block in (*parts, notes) if block) + "\n"


def money(value: float | None) -> str:
    """US dollars: four digits of a small amount, cents up to a thousand, then in millions, then in billions."""
    if value is None:
        return NOTHING
    size = abs(value)
    if size >= 1e9:
        return f"{value / 1e9:,.3f} B"
    if size >= 1e6:
        return f"{value / 1e6:,.3f} M"
    if size >= 1000 or not size:
        return f"{value:,.0f}"
    return f"{value:,.2f}" if size >= 1 else f"{value:.4g}" if size >= 1e-4 else f"{value:.3e}"


def figure(value: float | None, unit: str) -> str:
    """A figure of ``Joint``."""
    if value is None or unit == "usd":
        return money(value)
    if unit == "share":
        return f"{value * 100:,.0f} %"
    return f"{value:,.0f}" if unit == "requests" or abs(value) >= 100 else f"{value:.1f}"


def named(joint: Joint) -> str:
    """For people."""
    return _PERIODS.get(joint.name, joint.name)


def priced(quote: Quote | None) -> str:
    """A price with its day and source."""
    if quote is None:
        return "no price"
    price = quote.price
    if isinstance(price, GpuPrice):
        text = f"{price.per_hour:g} a GPU and hour x {count(price.gpus)} GPU{'s' * (price.gpus != 1)}"
    else:
        cached = "" if price.cached_input is None else f", {price.cached_input:g} cached"
        text = f"{price.input:g} input{cached}, {price.output:g} output for a million tokens"
    day = f", read on {quote.date}" if quote.date else ""
    return f"{text}{day}{f' ({quote.source})' if quote.source else ''}"


def used(side: Side) -> str:
    """The tokens of a request, which with the price make its cost."""
    seen = side.spent
    if not seen.answered:
        return "no answer of it is in this run"
    if seen.prompt_tokens is None or seen.output_tokens is None:
        return f"none of {count(seen.answered)} answers states its tokens"
    cached = "" if seen.cached_tokens is None else f", {seen.cached_tokens:,.1f} of them cached"
    return (
        f"{seen.prompt_tokens:,.1f} prompt tokens a request{cached}, and {seen.output_tokens:,.1f} output tokens, in "
        f"{count(seen.counted)} of {count(seen.answered)} answers"
    )


def carried(side: Side) -> str | None:
    """What a replica carries; ``None`` for tokens, and where nobody measured it."""
    rate = throughput(side)
    if side.quote is None or not isinstance(side.quote.price, GpuPrice) or rate is None:
        return None
    ends = "" if rate.low is None or rate.high is None else f" ({rate.low:.3g} to {rate.high:.3g})"
    return f"a replica serves {rate.per_s:.4g}{ends} requests a second within the limits of goodput ({rate.source})"


def crossing(outlook: Outlook) -> str:
    """Where the candidate is the cheaper one, in a sentence."""
    if not outlook.comparable:
        return "which backend is the cheaper one cannot be said"
    stretches = outlook.cheaper
    if not stretches:
        return "the candidate is the cheaper one at no traffic"
    first, *others = stretches
    words = [_between(first.above, first.to)]
    if len(others) > 1:
        words.append(f"in {len(others) - 1} more stretch{'es' * (len(others) > 2)} of traffic")
    if others:
        words.append(_between(others[-1].above, others[-1].to))
    between = "; in between, its last replica has too little to do" if others else ""
    return f"the candidate is the cheaper one {', '.join(words[:-1])}{' and ' * bool(others)}{words[-1]}{between}"


def _between(above: float, to: float | None) -> str:
    if to is None:
        return f"above {above:,.0f} requests a day" if above else "at any traffic"
    return f"from {above:,.0f} to {to:,.0f} requests a day" if above else f"below {to:,.0f} requests a day"


def traffic(outlook: Outlook) -> str:
    """What the figures of a day are for."""
    n = outlook.terms.traffic_per_day
    if n is None:
        return "no traffic is known"
    source = "as the run recorded" if outlook.terms.traffic_recorded else "as given"
    peak = outlook.terms.peak
    busiest = f"{peak:g} times the mean at the busiest moment" if peak > 1 else "evenly all day"
    return f"{n:,.0f} requests a day ({source}), {busiest}"


def _head(outlook: Outlook, run: str, width: int) -> Iterator[str]:
    yield f"COST of run {plain(run)}, in US dollars"
    for side in outlook.sides:
        said = (f"{side.arm}: {plain(side.name)}", priced(side.quote), used(side), carried(side))
        text = "; ".join(plain(part) for part in said if part)
        yield from wrap(text, width, first="  ", rest="    ")
    yield from wrap(traffic(outlook), width, first="  ", rest="    ")


def _rows(outlook: Outlook) -> Iterator[str]:
    arms = [side.arm.upper() for side in outlook.sides]
    yield f"  {'':<16}" + "".join(f"{arm:>30}" for arm in arms)
    yield f"  {'':<16}" + "".join(f"{end:>10}" for _ in arms for end in _ENDS)
    for row in outlook.rows:
        cells = (row.baseline, row.candidate)[: len(arms)]
        yield f"  {row.name:<16}" + "".join(f"{money(one):>10}" for cell in cells for one in _ends(cell))


def _ends(value: Three) -> tuple[float | None, float | None, float | None]:
    return value.low, value.expected, value.high


def _joint(outlook: Outlook, width: int) -> Iterator[str]:
    if len(outlook.sides) < 2:
        return
    known = [one for one in outlook.joint if one.value.known]
    if known:
        yield f"  {'':<28}" + "".join(f"{end:>12}" for end in _ENDS)
    for one in known:
        yield f"  {named(one):<28}" + "".join(f"{figure(end, one.unit):>12}" for end in _ends(one.value))
    yield from wrap(crossing(outlook), width, first="  ", rest="    ")
