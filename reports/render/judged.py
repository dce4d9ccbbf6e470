"""A judgement of measured pairs: a line for programs, and a short text for a person. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from replay.exchange import JSON
from reports.counting import some
from reports.document import iso
from reports.history import Look
from reports.judgement import Judgement
from reports.render.terminal import Pen, failed_checks, rule_lines
from reports.render.text import clip, plain
from reports.render.words import MARKS, count, counted, moment, span

_OF_A_RULE = (
    "rule",
    "verdict",
    "estimate",
    "low",
    "high",
    "margin",
    "pairs",
    "reason",
    "forecast_pairs",
    "forecast_hours",
)


def as_line(name: str, judgement: Judgement, looks: Sequence[Look] | None = None) -> JSON:
    """The judgement of the file ``name`` as a program reads it; ``history`` only where it was looked at over time."""
    line: JSON = {
        "file": name,
        "verdict": judgement.verdict.value,
        "code": judgement.code,
        "reason": judgement.reason,
        "rules": [{key: getattr(rule, key) for key in _OF_A_RULE} for rule in judgement.rules],
        "checks": [
            {"code": check.code, "passed": check.passed, "message": check.message}
            for check in judgement.checks
        ],
    }
    if looks is not None:
        line["history"] = [
            {"at": look.at, "verdict": look.verdict.value, "code": look.code} for look in looks
        ]
    return line


def as_text(
    name: str,
    judgement: Judgement,
    looks: Sequence[Look] | None = None,
    *,
    width: int = 100,
    colour: bool = False,
) -> str:
    """The same on a screen of ``width`` columns, verdict first."""
    pen = Pen(width, colour)
    blocks = [
        _verdict(name, judgement, pen),
        rule_lines(judgement.rules, pen) if judgement.rules else [],
        _slices(judgement, pen),
        failed_checks(judgement.checks, pen) if judgement.rules else [],
        _history(looks or (), pen),
    ]
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def _verdict(name: str, judgement: Judgement, pen: Pen) -> list[str]:
    head = pen.paint(f" {MARKS[judgement.verdict]} {judgement.verdict} ", judgement.verdict, reverse=True)
    lines = [f"{head} {clip(judgement.code, 40)}  {clip(name, pen.width)}", *pen.lines(judgement.reason)]
    if pairs := judgement.ledger["dispatched"]:
        places = ", ".join(counted(judgement.ledger, without="dispatched"))
        lines += pen.lines(f"{some(pairs, 'pair')} over {span(judgement.span_s)}: {places}")
    return lines


def _slices(judgement: Judgement, pen: Pen) -> list[str]:
    named = [row for row in judgement.slices.rows if row.named]
    lines = [pen.title("  SLICES THAT BROKE (decide nothing)")] if named else []
    for row in named:
        lines += pen.lines(
            f"{plain(row.dimension)} {plain(row.value)}: {row.rule}: {row.reason}", "  ", " " * 4
        )
    return lines


def _history(looks: Sequence[Look], pen: Pen) -> list[str]:
    """Looks that said the same one after another are one line."""
    lines = [pen.title(f"  LOOKS ({count(len(looks))})")] if looks else []
    for (verdict, code), same in groupby(looks, key=lambda look: (look.verdict, look.code)):
        first = next(iter(same))
        lines.append(
            f"  {moment(iso(first.at))}  {pen.paint(f'{MARKS[verdict]} {verdict:<8}', verdict)} {code}"
        )
    return lines
