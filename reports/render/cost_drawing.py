"""Where things stand in the drawing of costs: a month's cost of each backend over the traffic, both logarithmic. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from reports.costing import MONTH_DAYS, Tariff
from reports.outlook import Outlook, Tariffs
from reports.render.costs import money
from reports.render.drawing import BOTTOM, HEIGHT, RIGHT, TOP, WIDTH

LEFT = 62.0
_POINTS = 120
_REACH = 20.0
"""How many times less and more than today's traffic is drawn."""
_FAR = 1e4
"""A break-even beyond so many times today's traffic does not stretch the axis."""
_MOST_STEPS = 200
_TICKS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class CostLine:
    """One backend: its expected cost, and the band from low to high, as SVG path data."""

    arm: str
    path: str
    band: str
    """Empty where an end is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CostChart:
    """Requests a day to the right, US dollars a month upwards."""

    lines: tuple[CostLine, ...]
    ticks: tuple[tuple[float, str], ...]
    """(x, requests a day)."""
    grid: tuple[tuple[float, str], ...]
    """(y, US dollars a month)."""
    today: float
    """The x of the traffic that the figures are for."""
    marks: tuple[tuple[str, float, float], ...]
    """(arm, x, y) at this traffic."""


def cost_chart(outlook: Outlook) -> CostChart | None:
    """``None`` without traffic, and where no backend costs anything that is known."""
    n = outlook.terms.traffic_per_day
    drawn = [
        (side.arm, some) for side, some in zip(outlook.sides, outlook.tariffs, strict=True) if _costs(some, n)
    ]
    if n is None or not drawn:
        return None
    at = _places(n, outlook, [one for _, some in drawn for one in _ends(some)])
    values = [_month(one, x) for _, some in drawn for one in _ends(some) for x in at]
    across = _Axis.of(at, LEFT, WIDTH - RIGHT)
    up = _Axis.of([value for value in values if value > 0], HEIGHT - BOTTOM, TOP)
    return CostChart(
        lines=tuple(_line(arm, some, at, across, up) for arm, some in drawn),
        ticks=tuple((across.at(step), _short(step)) for step in across.steps()),
        grid=tuple((up.at(step), f"${_short(step) if step >= 1000 else money(step)}") for step in up.steps()),
        today=across.at(n),
        marks=tuple(
            (arm, across.at(n), up.at(_month(some.expected, n))) for arm, some in drawn if some.expected
        ),
    )


def _costs(some: Tariffs, traffic: float | None) -> bool:
    return some.expected is not None and traffic is not None and some.expected.per_day(traffic) > 0


def _ends(some: Tariffs) -> list[Tariff]:
    return [one for one in (some.low, some.expected, some.high) if one is not None]


def _month(tariff: Tariff, traffic: float) -> float:
    return tariff.per_day(traffic) * MONTH_DAYS


def _places(traffic: float, outlook: Outlook, tariffs: Iterable[Tariff]) -> list[float]:
    """The traffic at which costs are drawn: evenly over the axis, and on both sides of each further replica."""
    crossed = [one for stretch in outlook.cheaper for one in (stretch.above, stretch.to) if one]
    near = [one for one in crossed[:2] if traffic / _FAR < one < traffic * _FAR]
    low = min(traffic / _REACH, *(one / 2 for one in near), traffic)
    high = max(traffic * _REACH, *(one * 2 for one in near), traffic)
    even = [low * (high / low) ** (n / (_POINTS - 1)) for n in range(_POINTS)]
    sizes = {one.replica_requests_per_day for one in tariffs if one.replica_requests_per_day}
    full = [size * number for size in sizes for number in range(1, _MOST_STEPS) if low < size * number < high]
    return sorted({*even, *full, *(one * (1 + 1e-6) for one in full)})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Axis:
    """Decimal logarithms from ``low`` to ``high`` at these places."""

    low: float
    high: float
    begin: float
    end: float

    @classmethod
    def of(cls, values: Sequence[float], begin: float, end: float) -> _Axis:
        low, high = math.log10(min(values)), math.log10(max(values))
        room = max(0.02, (0.5 - (high - low)) / 2)
        return cls(low=low - room, high=high + room, begin=begin, end=end)

    def at(self, value: float) -> float:
        """A value of 0 lies at the beginning."""
        share = (math.log10(value) - self.low) / (self.high - self.low) if value > 0 else 0.0
        return round(self.begin + min(max(share, 0.0), 1.0) * (self.end - self.begin), 1)

    def steps(self) -> list[float]:
        """Round values, at most so many where that is possible."""
        powers = range(math.floor(self.low), math.ceil(self.high) + 1)
        found: list[float] = []
        for factors, every in (((1, 2, 5), 1), ((1, 3), 1), ((1,), 1), ((1,), 2), ((1,), 3)):
            steps = [factor * 10.0**power for power in powers if power % every == 0 for factor in factors]
            found = [step for step in steps if self.low <= math.log10(step) <= self.high]
            if len(found) <= _TICKS:
                break
        return found


def _line(arm: str, some: Tariffs, at: Sequence[float], across: _Axis, up: _Axis) -> CostLine:
    def points(tariff: Tariff, places: Iterable[float]) -> list[str]:
        return _thinned(places, lambda x: (across.at(x), up.at(_month(tariff, x))))

    band = ""
    if some.low and some.high and some.low != some.high:
        band = f"M{'L'.join([*points(some.high, at), *points(some.low, reversed(at))])}Z"
    expected = points(some.expected, at) if some.expected else []
    return CostLine(arm=arm, path=f"M{'L'.join(expected)}", band=band)


def _thinned(places: Iterable[float], point: Callable[[float], tuple[float, float]]) -> list[str]:
    """Points as text, without those that repeat the one before."""
    return list(dict.fromkeys(f"{x},{y}" for x, y in map(point, places)))


def _short(value: float) -> str:
    """``50k``: round numbers on an axis."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:g}{unit}"
    return f"{value:g}"
