"""Latency against throughput, the picture that servers are compared by: as SVG and for a terminal. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from reports.benchmark import Benchmark, Figures
from reports.render.words import quantity


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    """One quantile of one metric over the steps."""

    title: str
    metric: str
    level: str
    mark: str
    """At a terminal."""
    colour: str
    dashed: bool
    """With squares, in the SVG."""


_LINES = (
    _Line(title="TTFT p50", metric="ttft_s", level="p50", mark="\u25cb", colour="#0072b2", dashed=False),
    _Line(title="TTFT p99", metric="ttft_s", level="p99", mark="\u25cf", colour="#0072b2", dashed=True),
    _Line(title="end to end p50", metric="e2e_s", level="p50", mark="\u25b3", colour="#d55e00", dashed=False),
    _Line(title="end to end p99", metric="e2e_s", level="p99", mark="\u25b2", colour="#d55e00", dashed=True),
)
"""Two colours that most colour-blind people tell apart."""
_WIDTH, _HEIGHT = 720.0, 420.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 70.0, 150.0, 56.0, 56.0
_ROWS = 12
_WIDEST = 100
_GUTTER = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class _Point:
    x: float
    """Answered requests a second."""
    y: float
    """Seconds."""
    valid: bool


def _points(steps: Sequence[Figures], line: _Line) -> list[_Point]:
    """By throughput; a step without the quantile has no point."""
    found = []
    for step in steps:
        y = step.latency[line.metric].answered[line.level]
        if step.requests_per_s is not None and y:
            found.append(_Point(x=step.requests_per_s, y=y, valid=not step.invalid))
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class _Axes:
    """Throughput from 0 to ``most``; time from ``low`` to ``high``, decimal logarithms."""

    most: float
    low: float
    high: float

    @classmethod
    def of(cls, points: Sequence[_Point]) -> _Axes:
        logs = [math.log10(point.y) for point in points]
        low, high = min(logs), max(logs)
        room = max(0.05, (0.5 - (high - low)) / 2)
        return cls(most=max(point.x for point in points) * 1.05, low=low - room, high=high + room)

    def x(self, value: float) -> float:
        """0 to 1."""
        return value / self.most

    def y(self, seconds: float) -> float:
        """0, at the top, to 1."""
        return (self.high - math.log10(seconds)) / (self.high - self.low)

    def times(self, most: int) -> list[float]:
        """Round times on the axis, at most so many where that is possible."""
        powers = range(math.floor(self.low), math.ceil(self.high) + 1)
        found: list[float] = []
        for factors in ((1, 2, 5), (1, 3), (1,)):
            steps = [factor * 10.0**power for power in powers for factor in factors]
            found = [step for step in steps if self.low <= math.log10(step) <= self.high]
            if len(found) <= most:
                break
        return found

    def rates(self) -> list[float]:
        """Round rates on the axis, four to ten of them."""
        size = 10.0 ** math.floor(math.log10(self.most))
        step = next(part * size for part in (0.1, 0.2, 0.5) if self.most < 9 * part * size or part == 0.5)
        return [number * step for number in range(int(self.most / step + 1e-9) + 1)]


def _tick(seconds: float) -> str:
    return quantity(seconds, "s").replace(".0 ", " ").replace(".00 ", " ")


def screen(steps: Sequence[Figures], *, width: int = 80) -> list[str]:
    """The plot in characters, at most 100 columns wide; nothing where fewer than two steps have something to show."""
    drawn = [(line, _points(steps, line)) for line in _LINES]
    points = [point for _, found in drawn for point in found]
    if len({point.x for point in points}) < 2:
        return []
    axes, columns = _Axes.of(points), min(width, _WIDEST) - _GUTTER - 2
    grid = [[" "] * columns for _ in range(_ROWS)]
    for line, found in drawn:
        for point in found:
            row, column = (
                round(at * (size - 1)) for at, size in ((axes.y(point.y), _ROWS), (axes.x(point.x), columns))
            )
            grid[row][column] = line.mark
    names = {round(axes.y(time) * (_ROWS - 1)): _tick(time) for time in axes.times(_ROWS // 2)}
    lines = [
        f"{names.get(row, ''):>{_GUTTER}} {'┤' if row in names else '│'}{''.join(grid[row])}"
        for row in range(_ROWS)
    ]
    legend = "  ".join(f"{line.mark} {line.title}" for line, found in drawn if found)
    return [*lines, f"{'':>{_GUTTER}} └{'─' * columns}", _scale(axes, columns), f"  {legend}"]


def _scale(axes: _Axes, columns: int) -> str:
    """The rates under the plot; one that does not fit is left out."""
    line = " " * columns
    for rate in axes.rates():
        at, text = round(axes.x(rate) * (columns - 1)), f"{rate:g}"
        if at + len(text) <= columns:
            line = line[:at] + text + line[at + len(text) :]
    return f"{'ok/s':>{_GUTTER}}  {line.rstrip()}"


def svg(benchmark: Benchmark) -> str:
    """The plot as an SVG document that needs nothing but itself."""
    drawn = [(line, found) for line in _LINES if (found := _points(benchmark.steps, line))]
    words = f"{benchmark.url} {benchmark.model or ''}".strip()
    body = list(_drawing(drawn)) if drawn else [_text(_LEFT, _HEIGHT / 2, "nothing was measured")]
    size = f'viewBox="0 0 {_WIDTH:g} {_HEIGHT:g}" width="{_WIDTH:g}" height="{_HEIGHT:g}"'
    font = 'font-family="system-ui, sans-serif" font-size="12" fill="#333"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} {font}>',
            f"<title>Latency against throughput: {escape(words)}</title>",
            f'<rect width="{_WIDTH:g}" height="{_HEIGHT:g}" fill="#fff"/>',
            _text(_LEFT, 22, "Latency against throughput", 'font-size="15" font-weight="600"'),
            _text(_LEFT, 40, words, 'fill="#666"'),
            *body,
            "</svg>\n",
        ]
    )


def _drawing(drawn: Sequence[tuple[_Line, list[_Point]]]) -> Iterator[str]:
    axes = _Axes.of([point for _, found in drawn for point in found])
    yield from _grid(axes)
    for line, found in drawn:
        yield from _curve(axes, line, found)
    yield from _legend(drawn)


def _x(axes: _Axes, rate: float) -> float:
    return round(_LEFT + axes.x(rate) * (_WIDTH - _LEFT - _RIGHT), 1)


def _y(axes: _Axes, seconds: float) -> float:
    return round(_TOP + axes.y(seconds) * (_HEIGHT - _TOP - _BOTTOM), 1)


def _grid(axes: _Axes) -> Iterator[str]:
    right, bottom = _WIDTH - _RIGHT, _HEIGHT - _BOTTOM
    for seconds in axes.times(7):
        y = _y(axes, seconds)
        yield f'<path d="M{_LEFT:g},{y:g}H{right:g}" stroke="#ddd"/>'
        yield _text(_LEFT - 8, y + 4, _tick(seconds), 'text-anchor="end"')
    for rate in axes.rates():
        x = _x(axes, rate)
        yield f'<path d="M{x:g},{bottom:g}v5" stroke="#888"/>'
        yield _text(x, bottom + 20, f"{rate:g}", 'text-anchor="middle"')
    yield f'<path d="M{_LEFT:g},{_TOP:g}V{bottom:g}H{right:g}" fill="none" stroke="#888"/>'
    middle = (_LEFT + right) / 2
    yield _text(middle, bottom + 42, "answered requests a second", 'text-anchor="middle"')


def _curve(axes: _Axes, line: _Line, found: Sequence[_Point]) -> Iterator[str]:
    """In the order of the steps, so that a server that does less under more load is seen to turn back."""
    places = [(_x(axes, point.x), _y(axes, point.y), point.valid) for point in found]
    path = "L".join(f"{x:g},{y:g}" for x, y, _ in places)
    dash = ' stroke-dasharray="5 4"' if line.dashed else ""
    yield f'<path d="M{path}" fill="none" stroke="{line.colour}" stroke-width="1.8"{dash}/>'
    for x, y, valid in places:
        style = f'fill="{line.colour if valid else "#fff"}" stroke="{line.colour}" stroke-width="1.5"'
        if line.dashed:
            yield f'<rect x="{x - 3.5:g}" y="{y - 3.5:g}" width="7" height="7" {style}/>'
        else:
            yield f'<circle cx="{x:g}" cy="{y:g}" r="4" {style}/>'


def _legend(drawn: Sequence[tuple[_Line, list[_Point]]]) -> Iterator[str]:
    x = _WIDTH - _RIGHT + 14
    rows = list(reversed(drawn))  # as they lie in the plot: the slowest on top
    for number, (line, _) in enumerate(rows):
        y, dash = _TOP + 10 + 20 * number, ' stroke-dasharray="5 4"' if line.dashed else ""
        yield f'<path d="M{x:g},{y:g}h22" stroke="{line.colour}" stroke-width="1.8"{dash}/>'
        yield _text(x + 28, y + 4, line.title)
    if any(not point.valid for _, found in drawn for point in found):
        y = _TOP + 10 + 20 * len(rows)
        yield f'<circle cx="{x + 11:g}" cy="{y:g}" r="4" fill="#fff" stroke="#666" stroke-width="1.5"/>'
        yield _text(x + 28, y + 4, "INVALID")


def _text(x: float, y: float, text: str, more: str = "") -> str:
    return f'<text x="{x:g}" y="{y:g}"{" " * bool(more)}{more}>{escape(text)}</text>'
