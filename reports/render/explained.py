"""One rule explained: a screen for a person, and the same for programs. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict

from replay.exchange import JSON
from reports.counting import some
from reports.document import iso
from reports.explain import Block, Conversation, Explanation, Moment, Weighty
from reports.render.terminal import Pen, pair_lines
from reports.render.text import clip, plain
from reports.render.words import MARKS, count, interval, moment, quantity
from reports.shown import Shown

SCHEMA = {"name": "llm-migrate.explanation", "version": 1}
DEFINITIONS = {
    "evidence": "natural logarithms; GO is said from needed_go on, ROLLBACK from needed_rollback on",
    "growth": "the evidence of the pairs dispatched until then; go: harm is below the margin, with every missing pair counted as "
    "harm; rollback: harm is above it, each block counted as far as it may",
    "blocks": "those that count for less in ROLLBACK, because one incident is not a trend: what each would add to the evidence, "
    "and what is kept of it",
    "shortened": "how many there are",
    "whole": "what the evidence for ROLLBACK would be with every block in full",
    "since": "of an acknowledgement; growth, blocks and what is behind it are of the pairs from then on, which alone can make a "
    "ROLLBACK",
    "weight": "requests of one session speak once together, at most 30 within an hour",
}
_ROWS, _WIDEST, _GUTTER = 11, 100, 12
_TOP, _BOTTOM = 1.5, -0.5
"""What is drawn, in multiples of what ROLLBACK needs; what is beyond stands at the edge."""
_SINCE = "what follows is of the pairs since the acknowledgement at {}, which alone can make a ROLLBACK"
_BELOW, _ABOVE, _BOTH = "\u25cb", "\u25cf", "\u25c9"


def render_json(found: Explanation, run: str) -> JSON:
    """The whole explanation of a rule of the run."""
    return {
        "schema": SCHEMA,
        "run": run,
        "title": found.title,
        **asdict(found.result),
        "needed_go": found.needed_go,
        "needed_rollback": found.needed_rollback,
        "since": None if found.since is None else iso(found.since),
        "growth": [_dated(one) for one in found.growth],
        "whole": found.whole,
        "shortened": found.shortened,
        "blocks": [_dated(one) for one in found.blocks],
        "worse": [_dated(one) for one in found.worse],
        "better": [_dated(one) for one in found.better],
        "sessions": [asdict(one) for one in found.sessions],
        "definitions": DEFINITIONS,
    }


def _dated(one: Moment | Block | Weighty) -> JSON:
    return {name: iso(value) if name.endswith("at") else value for name, value in asdict(one).items()}


def render_terminal(
    found: Explanation, run: str, shown: Sequence[Shown] = (), *, width: int = 80, colour: bool = False
) -> str:
    """The screen for ``width`` columns; ``shown`` are pairs of ``found`` to print in full."""
    pen = Pen(width, colour)
    blocks = [
        _verdict(found, run, pen),
        _plot(found, pen),
        _blocks(found, pen),
        _pairs("PAIRS THAT SPEAK FOR HARM", found.worse, pen),
        _pairs("PAIRS THAT SPEAK AGAINST IT", found.better, pen),
        _sessions(found.sessions, pen),
        [line for pair in shown for line in pair_lines(pair, pen)],
    ]
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def _verdict(found: Explanation, run: str, pen: Pen) -> list[str]:
    result = found.result
    head = pen.paint(f" {MARKS[result.verdict]} {result.verdict} ", result.verdict, reverse=True)
    required = "" if result.required else " (not required: it decides nothing)"
    return [
        f"{head} {result.rule}: {found.title}{required}",
        *pen.lines(result.reason),
        "",
        *pen.lines(
            f"estimate {quantity(result.estimate, result.unit, signed=True)}, interval {interval(result)}, "
            f"margin {quantity(result.margin, result.unit)}"
        ),
        *pen.lines(
            f"baseline {quantity(result.baseline, result.unit)}, candidate {quantity(result.candidate, result.unit)}, baseline "
            f"against its own repeat {quantity(result.noise, result.unit, signed=True)}"
        ),
        *pen.lines(_counted(result.pairs, result.effective_pairs, result.missing) + f"; run {run}"),
        *(pen.lines(result.method) if result.method else ()),
        *(() if found.since is None else pen.lines(_SINCE.format(moment(iso(found.since))))),
    ]


def _counted(pairs: int, effective: float | None, missing: int) -> str:
    worth = (
        ""
        if effective is None or round(effective) >= pairs
        else f", worth {effective:,.0f} that are independent"
    )
    return f"{some(pairs, 'pair')}{worth}; {count(missing)} missing ones are counted as harm for GO"


def _plot(found: Explanation, pen: Pen) -> list[str]:
    """Both evidences on a scale of odds; dotted where GO and ROLLBACK are reached."""
    if not found.growth:
        return []
    columns = min(pen.width, _WIDEST) - _GUTTER - 2
    needed = {_row(one, found): one for one in (0.0, found.needed_go, found.needed_rollback)}
    grid = [["\u2508" if row in needed else " "] * columns for row in range(_ROWS)]
    for column, row, mark in _points(found, columns):
        grid[row][column] = (
            _BOTH if grid[row][column] in (_BELOW, _ABOVE) and grid[row][column] != mark else mark
        )
    names = {row: odds(evidence) for row, evidence in needed.items()}
    first, last = (moment(iso(one.at)) for one in (found.growth[0], found.growth[-1]))
    return [
        pen.title("  EVIDENCE OVER TIME"),
        *(
            f"{names.get(row, ''):>{_GUTTER}} {'┤' if row in names else '│'}{''.join(grid[row])}"
            for row in range(_ROWS)
        ),
        f"{'':>{_GUTTER}} └{'─' * columns}",
        f"{'':>{_GUTTER}}  {first}{last:>{max(0, columns - len(first))}}",
        *pen.lines(
            f"{_ABOVE} harm above the margin: {_now(found.growth[-1].rollback)}, ROLLBACK at {odds(found.needed_rollback)}"
        ),
        *pen.lines(f"{_BELOW} harm below it: {_now(found.growth[-1].go)}, GO at {odds(found.needed_go)}"),
    ]


def _points(found: Explanation, columns: int) -> Iterator[tuple[int, int, str]]:
    """Each column shows the look nearest to it."""
    last = len(found.growth) - 1
    for column in range(columns):
        one = found.growth[round(column / (columns - 1) * last)]
        for evidence, mark in ((one.go, _BELOW), (one.rollback, _ABOVE)):
            if evidence is not None:
                yield column, _row(evidence, found), mark


def _row(evidence: float, found: Explanation) -> int:
    place = min(_TOP, max(_BOTTOM, evidence / found.needed_rollback))
    return round((_TOP - place) / (_TOP - _BOTTOM) * (_ROWS - 1))


def _now(evidence: float | None) -> str:
    return "not known" if evidence is None else f"now {odds(evidence)}"


def odds(evidence: float) -> str:
    """A natural logarithm of evidence as odds: ``20 to 1``."""
    size = abs(evidence) / math.log(10)
    number = f"{10**size:,.0f}" if size < 5 else f"10^{size:.0f}"
    return f"{number} to 1" if evidence >= 0 else f"1 to {number}"


def _blocks(found: Explanation, pen: Pen) -> list[str]:
    if not found.blocks:
        return []
    more = found.shortened - len(found.blocks)
    rest = "" if found.whole is None else f"; in full they would make it {odds(found.whole)}"
    return [
        pen.title("  BLOCKS THAT COUNT FOR LESS IN ROLLBACK"),
        *(
            f"  {moment(iso(one.first_at))} to {iso(one.last_at)[11:19]}: {count(one.worse)} worse, {count(one.same)} the same, "
            f"{count(one.better)} better; {odds(one.adds)}, {f'counted as {odds(one.kept)}' if one.kept else 'left out'}"
            for one in found.blocks
        ),
        *([f"  and {count(more)} more"] if more else []),
        *pen.lines(f"One incident is not a trend{rest}."),
    ]


def _pairs(title: str, pairs: Sequence[Weighty], pen: Pen) -> list[str]:
    if not pairs:
        return []
    lines = [
        f"  {clip(one.id, 40):<26} {moment(iso(one.at))}  {_arms(one)}{_share(one.weight)}" for one in pairs
    ]
    return [pen.title(f"  {title}"), *(clip(line, pen.width) for line in lines)]


def _arms(one: Weighty) -> str:
    base, candidate = (
        outcome if seconds is None else quantity(seconds, "s")
        for outcome, seconds in ((one.baseline, one.baseline_s), (one.candidate, one.candidate_s))
    )
    return f"{base} \u2192 {candidate}"


def _share(weight: float) -> str:
    return "" if weight == 1 else f", weighs {weight:.2g}"


def _sessions(sessions: Sequence[Conversation], pen: Pen) -> list[str]:
    lines = [
        f"  {clip(plain(one.session), 40):<26} {some(one.pairs, 'pair')}: {count(one.worse)} worse, {count(one.better)} better, "
        f"together {one.weight:+.2f}"
        for one in sessions
    ]
    return [pen.title("  SESSIONS THAT WEIGH MOST"), *lines] if lines else []
