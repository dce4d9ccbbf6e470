"""The document on one terminal screen: as much of ``terminal`` as its lines hold, what matters most first. Pure."""

from __future__ import annotations

from functools import partial

from reports.document import Document
from reports.judgement import Verdict
from reports.render.terminal import Pen, aside, basis, blocks, joined, rule_line
from reports.render.text import clip
from reports.render.words import MARKS, count

_UPGRADES = ("checks", "rules", "causes", "verdict", "latency", "requests", "beside", "pairs")
"""In the order in which parts are shown whole as long as there are lines left."""
_CAUSES = 2
_CHECKS = 3


def render_screen(
    document: Document,
    *,
    width: int = 80,
    height: int = 24,
    colour: bool = False,
    foot: str = "",
    options: str = "",
) -> str:
    """At most ``height`` lines of ``width`` columns (80 to 160). ``foot``: the last line; by default it says where the rest is,
    if anything was left out. ``options``: what a command takes to find the run again, in the shell's words; a command with them
    goes on in a line of its own that is never cut, so that both can be pasted."""
    pen = Pen.of(width, colour)
    whole = blocks(document, pen)
    short = _SHORT | {"causes": partial(_causes, options=options)}
    shown = {name: short[name](document, pen) if name in short else [] for name in whole}
    for name in _UPGRADES:
        larger = shown | {name: whole[name]}
        if _lines(larger) < height:
            shown = larger
    rest = "" if shown == whole else "  All of it: migrate report | less, or --format html"
    lines = joined(shown.values()).splitlines()
    last = [clip(foot or rest, pen.width)] if foot or rest else []
    return "\n".join([*lines[: height - len(last)], *last]) + "\n"


def _lines(parts: dict[str, list[str]]) -> int:
    return sum(len(part) + 1 for part in parts.values() if part)


def _verdict(document: Document, pen: Pen) -> list[str]:
    head = f" {MARKS[document.verdict]} {document.verdict} "
    rehearsal = "  REHEARSAL" if document.rehearsal else ""
    return [
        pen.paint(head, document.verdict, reverse=True) + f" {clip(document.code, 40)}{rehearsal}",
        *pen.lines(document.reason)[:4],
        *pen.lines(f"Next: {document.advice}")[:2],
        "  " + clip(basis(document), pen.width - 2),
    ]


def _rules(document: Document, pen: Pen) -> list[str]:
    """A line for each broken promise; the others by name."""
    rules = [rule for rule in document.rules if not aside(rule)]
    lines = [rule_line(rule, pen)[0] for rule in rules if rule.verdict is Verdict.ROLLBACK]
    for verdict in (Verdict.HOLD, Verdict.GO):
        names = [rule.rule for rule in rules if rule.verdict is verdict]
        lines += pen.lines(f"{MARKS[verdict]} {verdict}: {', '.join(names)}", "", " " * 8) if names else []
    return lines


def _checks(document: Document, pen: Pen) -> list[str]:
    failed = [check for check in document.checks if not check.passed]
    return [clip(f"  \u2717 {check.code}: {check.message}", pen.width) for check in failed[:_CHECKS]]


def _causes(document: Document, pen: Pen, *, options: str) -> list[str]:
    """The leading ones, each with the command that shows its example."""
    lines = []
    for cause in document.causes[:_CAUSES]:
        lines += [
            clip(f"  {cause.severity} {count(cause.count)} {cause.category}: {cause.message}", pen.width),
            clip(f"      migrate show {cause.example}", pen.width - 2) + (" \\" if options else ""),
            *([f"        {options}"] if options else []),
        ]
    return lines


_SHORT = {"verdict": _verdict, "rules": _rules, "checks": _checks}
"""What a part says where lines are few; others are left out."""
