"""Where things stand in the drawings of a run as it went, as numbers for SVG. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from replay.exchange import Arm
from reports.advisory import Grown, Growth
from reports.document import Document
from reports.judgement import Verdict
from reports.render.drawing import RIGHT, WIDTH
from reports.render.words import moment, quantity, title
from reports.timeline import Series, Timeline

HEIGHT, LEFT, TOP, BOTTOM = 150.0, 54.0, 10.0, 24.0
_LOWEST, _HIGHEST = -0.3, 1.3
"""What a drawing of evidence shows, in multiples of what is needed; what is beyond stands at the edge."""
_TITLES = {
    "errors": "Errors",
    "p50": "End to end, p50",
    "p95": "End to end, p95",
    "disagreement": "Answers that differ from the baseline's",
}
_ORDER = (Arm.BASELINE_REPEAT, Arm.BASELINE, Arm.CANDIDATE)
"""What is drawn last lies on top."""
_ARMS = {"baseline": "baseline", "candidate": "candidate", "baseline_repeat": "the baseline's own repeat"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One drawing over time."""

    title: str
    lines: tuple[tuple[str, str], ...]
    """(arm, or ``go`` and ``rollback``; path), the last on top."""
    ticks: tuple[tuple[float, str, str], ...]
    """(x, anchor, time)."""
    grid: tuple[tuple[float, str], ...]
    """(y, value)."""
    words: str
    """What is drawn, for who cannot see it."""


def measures(document: Document) -> list[Panel]:
    """Errors, latency and disagreement; none of a run of less than a second."""
    run = document.timeline
    if run is None:
        return []
    return [
        _measure(run, name, some)
        for name in _TITLES
        if (some := [one for one in run.series if one.measure == name])
    ]


def evidence(document: Document) -> list[Panel]:
    """Of each required rule, towards GO and towards ROLLBACK."""
    return [_evidence(one) for one in document.growth if len(one.points) > 1]


def since(document: Document) -> str | None:
    """Since when the evidence suffices for the verdict (ISO 8601); ``None`` for HOLD, and where it does not rest on evidence."""
    if document.verdict is Verdict.ROLLBACK:
        return next((_crossed(one, _harm) for one in document.growth if one.rule == document.code), None)
    if document.verdict is Verdict.GO:
        found = [_crossed(one, _safe) for one in document.growth]
        known = [at for at in found if at is not None]
        return max(known) if known and len(known) == len(found) else None
    return None


def _safe(one: Growth, point: Grown) -> bool:
    return point.go is None or point.go >= one.needed_go


def _harm(one: Growth, point: Grown) -> bool:
    return point.rollback is None or point.rollback >= one.needed_rollback


def _crossed(one: Growth, enough: Callable[[Growth, Grown], bool]) -> str | None:
    """From when on to the end it was enough."""
    at = None
    for point in reversed(one.points):
        if not enough(one, point):
            break
        at = point.at
    return at


def _measure(run: Timeline, name: str, some: Sequence[Series]) -> Panel:
    unit = "s" if name in ("p50", "p95") else "share"
    top = _round_up(max(value for one in some for value in one.values if value is not None), unit)
    step = (WIDTH - LEFT - RIGHT) / len(run.pairs)

    def path(one: Series) -> str:
        points = [
            None if value is None else (LEFT + step * (place + 0.5), _y(value / top))
            for place, value in enumerate(one.values)
        ]
        return _path(points)

    order = sorted(some, key=lambda one: _ORDER.index(one.arm))
    return Panel(
        title=_TITLES[name],
        lines=tuple(
            (one.arm.value, path(one)) for one in sorted(order, key=lambda one: one.arm == "candidate")
        ),
        ticks=tuple(_ticks(_read(run.start), run.width_s * len(run.pairs))),
        grid=((_y(0.0), "0"), *((_y(part), _short(top * part, unit)) for part in (0.5, 1.0))),
        words="; ".join(_told(one, unit) for one in order),
    )


def _round_up(value: float, unit: str) -> float:
    """The next of 1, 2, 4, 10 … that is not below; of nothing a per cent, or a millisecond."""
    if value <= 0:
        return 0.01 if unit == "share" else 0.001
    size = 10.0 ** math.floor(math.log10(value))
    return next(part * size for part in (1, 2, 4, 6, 10) if part * size >= value * (1 - 1e-9))


def _short(value: float, unit: str) -> str:
    return f"{value * 100:g} %" if unit == "share" else quantity(value, unit).replace(".0 ", " ")


def _told(one: Series, unit: str) -> str:
    known = [value for value in one.values if value is not None]
    low, high = (quantity(end, unit) for end in (min(known), max(known)))
    if low == high:
        return f"{_ARMS[one.arm.value]} always {low}"
    return f"{_ARMS[one.arm.value]} {low} to {high}, at last {quantity(known[-1], unit)}"


def _evidence(one: Growth) -> Panel:
    start, end = (_read(one.points[place].at) for place in (0, -1))
    span = max(1.0, (end - start).total_seconds())

    def path(value: Callable[[Grown], float | None], needed: float) -> str:
        points = []
        for point in one.points:
            share = _HIGHEST if (found := value(point)) is None else found / needed
            x = LEFT + (_read(point.at) - start).total_seconds() / span * (WIDTH - LEFT - RIGHT)
            points.append((x, _y((min(max(share, _LOWEST), _HIGHEST) - _LOWEST) / (_HIGHEST - _LOWEST))))
        return _path(points)

    grid = ((at, words) for at, words in ((0.0, "0"), (1.0, "enough")))
    return Panel(
        title=title(one.rule),
        lines=(
            ("go", path(lambda point: point.go, one.needed_go)),
            ("rollback", path(lambda point: point.rollback, one.needed_rollback)),
        ),
        ticks=tuple(_ticks(start, span)),
        grid=tuple((_y((at - _LOWEST) / (_HIGHEST - _LOWEST)), words) for at, words in grid),
        words=f"GO {_reached(one, _safe)}, ROLLBACK {_reached(one, _harm)}",
    )


def _reached(one: Growth, enough: Callable[[Growth, Grown], bool]) -> str:
    at = _crossed(one, enough)
    if at is not None:
        return f"reached by {moment(at)}"
    return (
        "reached once, not at the end" if any(enough(one, point) for point in one.points) else "not reached"
    )


def _y(share: float) -> float:
    return round(HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM), 1)


def _path(points: Sequence[tuple[float, float] | None]) -> str:
    """A line with gaps where nothing is known; a point between two gaps is a dot."""
    steps, drawing = [], False
    for at, point in enumerate(points):
        if point is not None:
            steps.append(f"{'L' if drawing else 'M'}{point[0]:.1f},{point[1]:.1f}")
            alone = not drawing and (at + 1 == len(points) or points[at + 1] is None)
            steps.append("h.1" if alone else "")
        drawing = point is not None
    return "".join(steps)


def _ticks(start: datetime, span_s: float) -> Iterator[tuple[float, str, str]]:
    """The beginning, the middle and the end."""
    form = "%H:%M:%S" if span_s < 1_200 else "%H:%M" if span_s < 86_400 else "%d %b %H:%M"
    for share, anchor in ((0.0, "start"), (0.5, "middle"), (1.0, "end")):
        at = start + timedelta(seconds=span_s * share)
        yield round(LEFT + share * (WIDTH - LEFT - RIGHT), 1), anchor, at.strftime(form)


def _read(at: str) -> datetime:
    return datetime.fromisoformat(at)
