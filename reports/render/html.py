"""The document as one self-contained HTML file: no script, no network, readable on a phone and on paper.

Jinja2 escapes everything that a server or model said; the content security policy of the file allows nothing but its own
inline style.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from jinja2 import Environment, StrictUndefined, Template

from reports.document import Curve, Document
from reports.judgement import RuleResult
from reports.render.words import MARKS, NOTHING, interval, moment, plain, quantity, span, title

_WIDTH, _HEIGHT, _LEFT, _BOTTOM = 420.0, 200.0, 40.0, 28.0
_DECADES = 3.0
"""A logarithmic axis shows at most this much; what is faster stands at its left end."""
_ARMS = {"baseline_repeat": "repeat", "baseline": "baseline", "candidate": "candidate"}
_METRICS = {"ttft": "Time to first token", "itl": "Gap between chunks", "e2e": "End to end"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """One drawn distribution: SVG paths by arm, ticks, and what it shows in words."""

    title: str
    paths: tuple[tuple[str, str], ...]
    """(arm, SVG path data), the noise band first."""
    ticks: tuple[tuple[float, str], ...]
    """(x, label) of the logarithmic time axis."""
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A rule's interval against its margin, in percent of the bar's width."""

    low: float
    high: float
    estimate: float | None
    margin: float
    zero: float
    open_low: bool
    open_high: bool


def render_html(document: Document) -> str:
    """The whole report as one file."""
    charts = [chart for metric in _METRICS if (chart := draw(document, metric)) is not None]
    bars = {rule.rule: bar(rule) for rule in document.rules}
    return _template().render(
        d=document, charts=charts, bars=bars, width=_WIDTH, height=_HEIGHT, left=_LEFT, bottom=_BOTTOM
    )


@cache
def _template() -> Template:
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {
        "plain": plain,
        "span": span,
        "title_of": title,
        "interval": interval,
        "quantity": quantity,
        "moment": moment,
    }
    environment.globals |= {"marks": MARKS, "nothing": NOTHING}
    return environment.from_string(
        files("reports").joinpath("templates/report.html").read_text(encoding="utf-8")
    )


def bar(rule: RuleResult) -> Bar | None:
    """Where interval, estimate and margin stand on a common axis; ``None`` without an interval."""
    if rule.margin is None or (rule.low is None and rule.high is None):
        return None
    known = [value for value in (rule.low, rule.high, rule.estimate, rule.margin, 0.0) if value is not None]
    reach = min(max(abs(value) for value in known), 4 * rule.margin) or 1.0
    bottom, top = -reach * 1.1, reach * 1.1

    def place(value: float) -> float:
        return round(100 * min(max((value - bottom) / (top - bottom), 0.0), 1.0), 2)

    return Bar(
        low=0.0 if rule.low is None else place(rule.low),
        high=100.0 if rule.high is None else place(rule.high),
        estimate=None if rule.estimate is None else place(rule.estimate),
        margin=place(rule.margin),
        zero=place(0.0),
        open_low=rule.low is None,
        open_high=rule.high is None,
    )


def draw(document: Document, metric: str) -> Chart | None:
    """The empirical distribution functions of one metric on a logarithmic axis; ``None`` when nothing was measured."""
    curves = [curve for curve in document.curves if curve.metric == metric]
    values = [second for curve in curves for second in curve.seconds if second > 0]
    if not values:
        return None
    low, high = math.log10(min(values)), math.log10(max(values))
    low = max(low, high - _DECADES)
    high = max(high, low + 0.2)
    return Chart(
        title=_METRICS[metric],
        paths=tuple((arm, _path(curve, low, high)) for arm in _ARMS for curve in curves if curve.arm == arm),
        ticks=tuple(_ticks(low, high)),
        words=_words(document, metric),
    )


def _x(second: float, low: float, high: float) -> float:
    place = (math.log10(max(second, 10**low)) - low) / (high - low)
    return round(_LEFT + place * (_WIDTH - _LEFT - 8), 1)


def _path(curve: Curve, low: float, high: float) -> str:
    points, before = [], 0.0
    for second, share in zip(curve.seconds, curve.share, strict=True):
        x = _x(second, low, high)
        points += [f"{x},{_y(before)}", f"{x},{_y(share)}"]
        before = share
    return "M" + " L".join(points)


def _y(share: float) -> float:
    return round(8 + (1 - share) * (_HEIGHT - _BOTTOM - 8), 1)


def _ticks(low: float, high: float) -> list[tuple[float, str]]:
    steps = [
        factor * 10**power for power in range(math.floor(low), math.ceil(high) + 1) for factor in (1, 2, 5)
    ]
    inside = [step for step in steps if low <= math.log10(step) <= high]
    while len(inside) > 5:
        inside = inside[::2]
    return [(_x(step, low, high), quantity(step, "s")) for step in inside]


def _words(document: Document, metric: str) -> str:
    parts = []
    for one in document.latency:
        if one.metric == metric and one.samples:
            p50, p95, p99 = (quantity(q.value, "s") for q in one.quantiles)
            parts.append(f"{one.arm.value}: p50 {p50}, p95 {p95}, p99 {p99}")
    return "; ".join(parts)
