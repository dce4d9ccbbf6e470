"""Where things stand in the drawings of a report: interval bars and latency curves as numbers for SVG."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from replay.exchange import Arm
from reports.curves import Curve
from reports.document import Document
from reports.judgement import RuleResult
from reports.render.words import METRICS, from_to, latency, quantity

BAR_WIDTH, BAR_HEIGHT = 260.0, 26.0
_FROM, _TO = -1.6, 3.2
"""What a bar shows, in margins: 0 and the margin stand at the same place in every bar."""
_LINEAR, _DECADE = 1.5, 1.1
"""Up to so many margins a bar is linear; beyond, ten times as much takes so much more room, or large harm had no place."""
_EDGE = 10.0
ZERO, MARGIN = (round(_EDGE + (at - _FROM) / (_TO - _FROM) * (BAR_WIDTH - 2 * _EDGE), 1) for at in (0.0, 1.0))

WIDTH, HEIGHT = 380.0, 240.0
LEFT, RIGHT, TOP, BOTTOM = 38.0, 14.0, 12.0, 28.0
_FIRST_SHARE, _FIRST_PART = 0.02, 0.05
"""Values below this share, and below this part of the median, do not stretch the axis: the tail is what matters."""
_GRID = (0.5, 0.95, 0.99, 0.999)
_TICKS = 5
_ORDER = (Arm.BASELINE_REPEAT, Arm.BASELINE, Arm.CANDIDATE)
"""What is drawn last lies on top."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A rule's interval against its margin: horizontal places, 0 to ``BAR_WIDTH``."""

    low: float
    high: float
    beyond_low: bool
    """The interval goes on to the left of the drawing."""
    beyond_high: bool
    estimate: float | None
    noise: float | None
    zero: float
    margin: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One arm's curve as SVG path data, and its p50, p95 and p99."""

    arm: str
    path: str
    marks: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """The distributions of one metric on a logarithmic time axis; the vertical axis gives each further nine equal room."""

    metric: str
    lines: tuple[Line, ...]
    ticks: tuple[tuple[float, str], ...]
    """(x, time)."""
    grid: tuple[tuple[float, str], ...]
    """(y, quantile)."""
    words: str
    """What is drawn, for who cannot see it."""


def bar(rule: RuleResult) -> Bar | None:
    """``None`` without an interval or a margin to hold it against."""
    if not rule.margin or (rule.low is None and rule.high is None):
        return None
    margin = rule.margin

    def at(value: float) -> float:
        share = (_pressed(value / margin) - _FROM) / (_TO - _FROM)
        return round(_EDGE + min(max(share, 0.0), 1.0) * (BAR_WIDTH - 2 * _EDGE), 1)

    low = -math.inf if rule.low is None else rule.low
    high = math.inf if rule.high is None else rule.high
    return Bar(
        low=at(low),
        high=at(high),
        beyond_low=_pressed(low / margin) < _FROM,
        beyond_high=_pressed(high / margin) > _TO,
        estimate=None if rule.estimate is None else at(rule.estimate),
        noise=None if rule.noise is None else at(rule.noise),
        zero=at(0.0),
        margin=at(margin),
    )


def _pressed(margins: float) -> float:
    if abs(margins) <= _LINEAR:
        return margins
    return math.copysign(_LINEAR + _DECADE * math.log10(abs(margins) / _LINEAR), margins)


def chart(document: Document, metric: str) -> Chart | None:
    """``None`` when nothing was measured."""
    found = {curve.arm: curve for curve in document.curves if curve.metric == metric}
    drawn = [found[arm] for arm in _ORDER if arm in found]
    if not drawn or not any(curve.seconds[-1] > 0 for curve in drawn):
        return None
    axes = _axes(drawn, max(one.samples for one in document.latency if one.metric == metric))
    return Chart(
        metric=metric,
        lines=tuple(_line(document, curve, axes) for curve in drawn),
        ticks=tuple(_ticks(axes)),
        grid=tuple(
            (axes.y(share), f"p{share * 100:g}")
            for share in _GRID
            if -math.log10(1 - share) < axes.nines - 0.1
        ),
        words=_words(document, metric),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Axes:
    """Decimal logarithms of the shortest and longest time, and how many nines fit."""

    low: float
    high: float
    nines: float

    def x(self, seconds: float) -> float:
        place = (math.log10(seconds) - self.low) / (self.high - self.low) if seconds > 0 else 0.0
        return round(LEFT + min(max(place, 0.0), 1.0) * (WIDTH - LEFT - RIGHT), 1)

    def y(self, share: float) -> float:
        nines = self.nines if share >= 1 else min(self.nines, -math.log10(1 - share))
        return round(TOP + (1 - nines / self.nines) * (HEIGHT - TOP - BOTTOM), 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bins:
    """A histogram of one metric on the time axis of its chart; the vertical axis begins at 0."""

    metric: str
    lines: tuple[tuple[str, str], ...]
    """(arm, path of its outline), the last on top."""
    ticks: tuple[tuple[float, str], ...]
    grid: tuple[tuple[float, str], ...]
    """(y, share of the values in a bin)."""
    words: str
    """What is drawn, for who cannot see it."""


def bins(document: Document, metric: str) -> Bins | None:
    """``None`` where there is none, or no chart to stand beside."""
    found = next((one for one in document.histograms if one.metric == metric), None)
    if found is None:
        return None
    axes = _Axes(low=math.log10(found.borders[0]), high=math.log10(found.borders[-1]), nines=1.0)
    top = max(max(share) for share in found.share.values())

    def y(share: float) -> float:
        return round(TOP + (1 - share / top) * (HEIGHT - TOP - BOTTOM), 1)

    def outline(share: Sequence[float]) -> str:
        steps = (f"V{y(part)}H{axes.x(end)}" for part, end in zip(share, found.borders[1:], strict=True))
        return f"M{axes.x(found.borders[0])},{y(0.0)}{''.join(steps)}V{y(0.0)}"

    return Bins(
        metric=metric,
        lines=tuple((arm.value, outline(found.share[arm])) for arm in _ORDER if arm in found.share),
        ticks=tuple(_ticks(axes)),
        grid=tuple((y(top * part), f"{top * part:.0%}") for part in (0.0, 0.5, 1.0)),
        words=", ".join(_most(arm, found.share[arm], found.borders) for arm in _ORDER if arm in found.share),
    )


def _most(arm: Arm, share: Sequence[float], borders: Sequence[float]) -> str:
    place = max(range(len(share)), key=share.__getitem__)
    low, high = (quantity(border, "s") for border in borders[place : place + 2])
    return f"{arm.value.replace('_', ' ')} most often {low} to {high} ({share[place]:.0%})"


def _axes(drawn: Sequence[Curve], samples: int) -> _Axes:
    firsts = [_first(curve) for curve in drawn]
    low = math.log10(min(seconds for seconds in firsts if seconds > 0))
    high = math.log10(max(curve.seconds[-1] for curve in drawn))
    middle = max(0.0, 0.3 - (high - low)) / 2
    nines = min(3.3, max(1.0, math.log10(samples)))
    return _Axes(low=low - middle - 0.02, high=high + middle + 0.02, nines=nines)


def _first(curve: Curve) -> float:
    """The shortest time worth drawing."""
    return max(_at(curve, _FIRST_SHARE), _FIRST_PART * _at(curve, 0.5))


def _at(curve: Curve, share: float) -> float:
    """The first time above 0 within which at least ``share`` were answered."""
    found = zip(curve.seconds, curve.share, strict=True)
    return next(
        (seconds for seconds, reached in found if reached >= share and seconds > 0), curve.seconds[-1]
    )


def _line(document: Document, curve: Curve, axes: _Axes) -> Line:
    steps = [f"M{axes.x(curve.seconds[0])},{axes.y(0.0)}"]
    for seconds, share in zip(curve.seconds, curve.share, strict=True):
        steps.append(f"H{axes.x(seconds)}V{axes.y(share)}")
    one = latency(document, curve.metric, curve.arm)
    levels = one.quantiles if one else ()
    marks = ((axes.x(q.value_s), axes.y(q.level)) for q in levels if q.value_s is not None)
    return Line(arm=curve.arm.value, path="".join(steps), marks=tuple(marks))


def _ticks(axes: _Axes) -> list[tuple[float, str]]:
    powers = range(math.floor(axes.low), math.ceil(axes.high) + 1)
    for factors in ((1, 2, 5), (1, 3), (1,)):
        steps = [factor * 10.0**power for power in powers for factor in factors]
        inside = [step for step in steps if axes.low <= math.log10(step) <= axes.high]
        if len(inside) <= _TICKS:
            break
    return [(axes.x(step), quantity(step, "s").replace(".0 ", " ")) for step in inside[:_TICKS]]


def _words(document: Document, metric: str) -> str:
    base, candidate = (latency(document, metric, arm) for arm in (Arm.BASELINE, Arm.CANDIDATE))
    if base is None or candidate is None:
        return f"{METRICS[metric]}: one arm has no value"
    pairs = zip(base.quantiles, candidate.quantiles, strict=True)
    return ", ".join(f"p{old.level * 100:g} {from_to(old.value_s, new.value_s)}" for old, new in pairs)
