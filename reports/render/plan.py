"""A forecast for people at a terminal of 80 columns or more, and for programs. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from replay.exchange import JSON
from reports.odds import Span
from reports.plan import EFFECTS, SOON_S, Forecast, Plan
from reports.policy import Policy
from reports.render.text import wrap
from reports.render.words import count, quantity

SCHEMA = {"name": "llm-migrate.plan", "version": 1}
DEFINITIONS = {
    "half_hours": "hours from the start of the run by which half of the runs have said it; null: over 336 (14 days)",
    "most_hours": "the same for four in five runs",
    "go": "without harm; a rule's is when its evidence is there, the verdict's waits for all required rules, minimum_span and "
    "minimum_pairs",
    "rollback": "with harm of so many margins by this rule from the start; the verdict's is that of the rule that takes longest",
    "from": "where a number of the traffic is taken from; assumed ones are worth measuring",
}
_TRAFFIC = {
    "error_rate": "errors of each arm {:.2%}",
    "latency_s": "median latency {}",
    "spread": "spread of latency {:.2g}",
    "alike": "correlation of the arms' latencies {:.2g}",
    "ttft_s": "median TTFT {}",
    "tokens": "tokens of an answer {:.0f}",
    "noise": "noise floor {:.1%}",
    "turns": "requests of a conversation within an hour {:.3g}",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a plan was made of."""

    policy: Policy
    sources: Mapping[str, str]
    """Fields of the traffic, and where each is taken from; what is not named is assumed."""
    mirrored: float | None
    """Share of requests that is copied; ``None`` where it is not known."""
    notes: tuple[str, ...] = ()


def remedy(forecast: Forecast, plan: Plan, mirrored: float | None) -> str | None:
    """What would help a rule that cannot be decided; ``None`` for one that can."""
    if forecast.reason is not None:
        return forecast.reason
    if forecast.go.most_s is not None:
        return None
    ways = [*_margin(forecast), *_more(forecast, plan, mirrored)]
    return f"cannot be decided within 14 days at this traffic: {' or '.join(ways) or 'leave it out of what is required'}"


def _margin(forecast: Forecast) -> Iterator[str]:
    if forecast.wider is not None:
        yield f"widen the margin to {quantity(forecast.wider, forecast.unit)}"


def _more(forecast: Forecast, plan: Plan, mirrored: float | None) -> Iterator[str]:
    """The share that decides it within 48 hours: of repeats, which burden only the baseline, else of requests."""
    times, repeats = forecast.faster, plan.traffic.repeats
    if times is None:
        return
    soon = f"to have it in {SOON_S / 3600:.0f} h"
    if forecast.rule == "disagreement" and repeats * times <= 1:
        yield f"repeat {_percent(repeats * times)} of the pairs (shadow.repeat_baseline) {soon}"
    elif mirrored is None:
        yield f"record {_rate(plan.traffic.pairs_per_hour * times)} pairs a minute {soon}"
    elif mirrored * times <= 1:
        yield f"mirror {_percent(mirrored * times)} (shadow.percent) {soon}"
    else:
        yield f"mirror everything of {times * mirrored:.2g} times the traffic {soon}"


def _rate(per_hour: float) -> str:
    """A minute's."""
    value = per_hour / 60
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _percent(share: float) -> str:
    return f"{share * 100:.2g} %" if share < 0.995 else "100 %"


def render_json(plan: Plan, asked: Asked) -> JSON:
    """The whole plan; what takes over 14 days is null."""
    return {
        "schema": SCHEMA,
        "traffic": asdict(plan.traffic)
        | {"mirrored": asked.mirrored, "from": {name: _source(asked, name) for name in asdict(plan.traffic)}},
        "policy": asked.policy.model_dump(mode="json", by_alias=True),
        "rules": [
            {
                "rule": one.rule,
                "unit": one.unit,
                "margin": one.margin,
                **_spans(one.go, one.rollback),
                "advice": remedy(one, plan, asked.mirrored),
            }
            for one in plan.rules
        ],
        "verdict": _spans(plan.go, plan.rollback),
        "notes": list(asked.notes),
        "definitions": DEFINITIONS,
    }


def _source(asked: Asked, name: str) -> str:
    return asked.sources.get(name, "assumed")


def _spans(go: Span, rollback: tuple[Span, ...]) -> JSON:
    effects = zip(EFFECTS, rollback, strict=True)
    return {"go": _hours(go), "rollback": [{"margins": effect, **_hours(one)} for effect, one in effects]}


def _hours(one: Span) -> dict[str, float | None]:
    return {"half_hours": _rounded(one.half_s), "most_hours": _rounded(one.most_s)}


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds / 3600, 2)


def render_terminal(plan: Plan, asked: Asked, *, width: int = 80) -> str:
    """A table of hours, then what it rests on, in ``width`` columns."""
    blocks = [list(_table(plan)), list(_said(plan, asked, width)), list(_rests(plan, asked, width))]
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def _table(plan: Plan) -> Iterator[str]:
    yield "HOURS until half of the runs, and four in five, have decided"
    yield _row("", "MARGIN", ["GO", "ROLLBACK", *[""] * (len(EFFECTS) - 1)])
    yield _row("", "", ["no harm", *(f"{effect:g}x harm" for effect in EFFECTS)])
    for one in plan.rules:
        yield _row(one.rule, quantity(one.margin, one.unit), map(_cell, (one.go, *one.rollback)))
    yield _row("VERDICT", "", map(_cell, (plan.go, *plan.rollback)))


def _row(name: str, margin: str, cells: Any) -> str:
    return (f"{name:<15}{margin:>9}" + "".join(f"{cell:>11}" for cell in cells)).rstrip()


def _cell(one: Span) -> str:
    half, most = _short(one.half_s), _short(one.most_s)
    return half if half == most else f"{half}/{most}"


def _short(seconds: float | None) -> str:
    if seconds is None:
        return ">336"
    hours = seconds / 3600
    return f"{hours:.1f}" if hours < 9.95 else f"{hours:.0f}"


def _said(plan: Plan, asked: Asked, width: int) -> Iterator[str]:
    for one in plan.rules:
        if (said := remedy(one, plan, asked.mirrored)) is not None:
            yield from _sentence(f"{one.rule}: {said}", width)
    for note in asked.notes:
        yield from _sentence(note, width)


def _rests(plan: Plan, asked: Asked, width: int) -> Iterator[str]:
    traffic, policy = plan.traffic, asked.policy
    copied = "" if asked.mirrored is None else f" ({_percent(asked.mirrored)} mirrored)"
    yield from _sentence(
        f"{_rate(traffic.pairs_per_hour)} pairs a minute{copied}, {_percent(traffic.repeats)} of them with a baseline repeat, "
        "evenly day and night",
        width,
    )
    yield from _sentence(
        f"hours are counted from the start: {_minutes(policy.warmup)} of warm-up, and {_minutes(traffic.timeout_s)} until the "
        f"last pair counts, are in them; GO also waits for a span of {_minutes(policy.minimum_span)} and "
        f"{count(policy.minimum_pairs)} pairs",
        width,
    )
    for source in dict.fromkeys(_source(asked, name) for name in _TRAFFIC):
        named = [_number(plan, name) for name in _TRAFFIC if _source(asked, name) == source]
        yield from _sentence(f"{source}: {', '.join(named)}", width)


def _number(plan: Plan, name: str) -> str:
    value = getattr(plan.traffic, name)
    return _TRAFFIC[name].format(quantity(value, "s") if name.endswith("_s") else value).replace("%", " %")


def _minutes(seconds: float) -> str:
    if seconds >= 7_200:
        return f"{seconds / 3600:g} h"
    return f"{seconds / 60:g} min" if seconds >= 60 else f"{seconds:g} s"


def _sentence(text: str, width: int) -> list[str]:
    return wrap(text, width, first="  ", rest="    ")
