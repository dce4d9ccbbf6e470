"""The document as one terminal screen, verdict first. Plain text with a few colours; no colour carries meaning alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from replay.exchange import Arm
from reports.counting import some
from reports.document import Document, Latency
from reports.judgement import Check, RuleResult, Verdict
from reports.render.beside import beside
from reports.render.text import clip, columns, plain, wrap
from reports.render.words import (
    MARKS,
    METRICS,
    NOTHING,
    REHEARSAL,
    acknowledged,
    count,
    counted,
    from_to,
    interval,
    itself,
    latency,
    moment,
    quantity,
    share,
    span,
)
from reports.shown import Shown, Side

_COLOURS = {Verdict.GO: "32", Verdict.ROLLBACK: "31", Verdict.HOLD: "33"}
_CAUSES = 5
_PAIRS = 3
_NARROW, _WIDE = 80, 160
_TABLE = 77
"""Columns of a rule's line without its reason."""


def render_terminal(document: Document, *, width: int = 80, colour: bool = False) -> str:
    """The screen for ``width`` columns (80 to 160); ``colour`` adds ANSI colours."""
    return joined(blocks(document, Pen.of(width, colour)).values())


def blocks(document: Document, pen: Pen) -> dict[str, list[str]]:
    """The parts of the screen in order, by name; one that has nothing to say is empty."""
    return {name: part(document, pen) for name, part in _PARTS.items()}


def joined(parts: Iterable[list[str]]) -> str:
    """Blocks with a blank line between them."""
    return "\n\n".join("\n".join(part) for part in parts if part) + "\n"


class Pen:
    """A width, and whether there are colours."""

    def __init__(self, width: int, colour: bool) -> None:
        self.width = width
        self.colour = colour

    @classmethod
    def of(cls, width: int, colour: bool) -> Pen:
        """For a terminal of that width, within 80 to 160 columns."""
        return cls(min(_WIDE, max(_NARROW, width)), colour)

    def bold(self, text: str) -> str:
        return f"\x1b[1m{text}\x1b[0m" if self.colour else text

    def paint(self, text: str, verdict: Verdict, *, reverse: bool = False) -> str:
        """The text in the verdict's colour; ``reverse`` fills its background."""
        style = ("1;7;" if reverse else "") + _COLOURS[verdict]
        return f"\x1b[{style}m{text}\x1b[0m" if self.colour else text

    def title(self, text: str) -> str:
        return self.bold(text[: self.width])

    def lines(self, text: str, first: str = "  ", rest: str = "  ") -> list[str]:
        return wrap(text, self.width, first=first, rest=rest)


def _verdict(document: Document, pen: Pen) -> list[str]:
    head = f" {MARKS[document.verdict]} {document.verdict} "
    run = document.run
    lines = [
        pen.paint(head, document.verdict, reverse=True) + f" {clip(document.code, 40)}",
        *pen.lines(document.reason),
        *pen.lines(f"Next: {document.advice}"),
    ]
    if document.rehearsal:
        lines += [pen.bold(line) for line in pen.lines(f"REHEARSAL: {REHEARSAL}")]
    return [
        *lines,
        "",
        *pen.lines(basis(document)),
        *pen.lines(f"baseline {run['baseline']}; candidate {run['candidate'] or 'none'}"),
        *(line for one in document.acknowledgements for line in pen.lines(acknowledged(one))),
        *(line for note in document.notes for line in pen.lines(f"Note: {note}")),
    ]


def basis(document: Document) -> str:
    """What the verdict rests on, in a sentence."""
    run, gateway = document.run, document.gateway
    rests = f"Rests on {count(document.ledger.get('scored', 0))} scored pairs over {span(document.span_s)}"
    mirrored = f"{count(gateway['mirrored'])} mirrored{share(document)}" if gateway else ""
    passed = f"{some(gateway['passed'], 'request')} passed, {mirrored}; " if gateway else ""
    state = run["status"] if run["ended_at"] else f"{run['status']}, judged at {document.judged_at}"
    return f"{rests}; {passed}run {run['id']} ({state}); valid until {moment(document.valid_until)}"


def _rules(document: Document, pen: Pen) -> list[str]:
    return rule_lines(document.rules, pen)


def rule_lines(rules: Iterable[RuleResult], pen: Pen) -> list[str]:
    """A head, then each rule."""
    cells = ("RULE", "ESTIMATE", "INTERVAL", "MARGIN", "NOISE", "PAIRS")
    title = f"{'':11}" + _row(*cells)
    lines = [pen.title(f"{title}  REASON" if pen.width > _TABLE + 20 else title)]
    rules = tuple(rules)
    shown, others = [rule for rule in rules if not aside(rule)], [rule for rule in rules if aside(rule)]
    lines += [line for rule in shown for line in rule_line(rule, pen)]
    optional = [f"{rule.rule} {rule.verdict}" for rule in others if rule.applies]
    elsewhere = [rule.rule for rule in others if not rule.applies]
    for words, names in (("not required", optional), ("do not apply", elsewhere)):
        lines += pen.lines(f"{words}: {', '.join(names)}", "  ", " " * 4) if names else []
    return lines


def aside(rule: RuleResult) -> bool:
    """Has nothing to say that anybody has to act on."""
    return not rule.applies or (not rule.required and rule.verdict is Verdict.GO)


def _row(name: str, estimate: str, ends: str, margin: str, noise: str, pairs: str) -> str:
    return f"{name:<15}{estimate:>9} {ends:>18}{margin:>9}{noise:>9}{pairs:>7}"


def rule_line(rule: RuleResult, pen: Pen) -> list[str]:
    """One line a rule; the reason behind it where it fits, else below. A kept promise needs none: its line says it."""
    word = f"{MARKS[rule.verdict]} {rule.verdict}"
    row = _row(
        rule.rule if rule.required else f"({rule.rule})"[:15],
        quantity(rule.estimate, rule.unit, signed=True),
        interval(rule),
        quantity(rule.margin, rule.unit),
        quantity(rule.noise, rule.unit, signed=True),
        count(rule.pairs),
    )
    line = pen.paint(f"{word:<11}", rule.verdict) + row
    reason = plain(rule.reason)
    if 11 + columns(row) + 2 + columns(reason) <= pen.width:
        return [f"{line}  {reason}"]
    return [line] if rule.verdict is Verdict.GO else [line, *pen.lines(reason, " " * 11, " " * 11)]


def _beside(document: Document, pen: Pen) -> list[str]:
    """What broke or moved, then how much was looked at."""
    parts = beside(document)
    lines = [pen.title("  BESIDE THE RULES (decides nothing)")] if parts else []
    for part in parts:
        first = f"  {part.name:<9}"
        for text in part.remarkable:
            lines += pen.lines(text, first, " " * 13)
            first = " " * 11
        lines += pen.lines(part.counts, first, " " * 13)
    return lines


def _latency(document: Document, pen: Pen) -> list[str]:
    rows = [_distribution(document, metric) for metric in METRICS]
    title = f"  {'LATENCY':<11}{'p50':<18}{'p95':<18}{'p99':<18}requests"
    lines = [pen.title(title), *(row for row in rows if row)]
    return [*lines, "  baseline \u2192 candidate, answered requests"] if any(rows) else []


def _distribution(document: Document, metric: str) -> str:
    arms = [latency(document, metric, arm) for arm in (Arm.BASELINE, Arm.CANDIDATE)]
    if not any(arms):
        return ""
    values = zip(*map(_values, arms), strict=True)
    requests = " \u2192 ".join(dict.fromkeys(count(arm.requests) if arm else "0" for arm in arms))
    return f"  {METRICS[metric]:<11}{''.join(f'{from_to(*pair):<18}' for pair in values)}{requests}"


def _values(arm: Latency | None) -> list[float | None]:
    return [level.value_s for level in arm.quantiles] if arm else [None] * 3


def _ledger(document: Document, pen: Pen) -> list[str]:
    answers, repeats = document.compared, counted(document.repeats, without="")
    lines = [pen.title("  WHERE REQUESTS WENT")]
    if document.gateway:
        lines += pen.lines(_sum(document.gateway, "passed"))
    lines += pen.lines(_sum(document.ledger, "dispatched"))
    if document.not_recorded:
        lines += pen.lines(f"{some(document.not_recorded, 'mirrored request')} not in the store")
    if answers["pairs"]:
        lines += pen.lines(_sum(answers, "pairs", "answer" if answers["pairs"] == 1 else "answers"))
    if repeats:
        lines += pen.lines(f"baseline repeats: {_repeats(document.repeats)}")
    if any(document.retried.values()):
        lines += pen.lines(
            "retried: " + ", ".join(f"{count(n)} {arm}" for arm, n in document.retried.items())
        )
    return lines


def _sum(parts: dict[str, int], total: str, name: str = "") -> str:
    found = ", ".join(counted(parts, without=total))
    return f"{count(parts.get(total, 0))} {name or total}" + (f": {found}" if found else "")


def _repeats(repeats: dict[str, int]) -> str:
    asked = [f"{count(repeats[name])} {name}" for name in ("answered", "failed") if repeats.get(name)]
    skipped = [
        f"{count(n)} skipped ({name.removeprefix('skipped.').replace('_', ' ')})"
        for name, n in repeats.items()
        if n and name.startswith("skipped.")
    ]
    return ", ".join([*asked, *skipped]) or "none"


def _checks(document: Document, pen: Pen) -> list[str]:
    return failed_checks(document.checks, pen)


def failed_checks(checks: Sequence[Check], pen: Pen) -> list[str]:
    """A head, then each check that failed; nothing when none did."""
    failed = [check for check in checks if not check.passed]
    if not failed:
        return []
    lines = [pen.title(f"  FAILED CHECKS ({len(failed)} of {len(checks)})")]
    for check in failed:
        lines += pen.lines(check.message, f"  \u2717 {check.code:<20} ", " " * 25)
    return lines


def _causes(document: Document, pen: Pen) -> list[str]:
    if not document.causes:
        return []
    lines = [pen.title(f"  {'CAUSES':<8}{'REQUESTS':>8}")]
    for cause in document.causes[:_CAUSES]:
        head = f"  {cause.severity:<8}{count(cause.count):>8}  "
        text = f"{cause.category}: {plain(cause.message, 300)} (example {plain(cause.example, 40)})"
        lines += pen.lines(text, head, " " * 20)
        lines += [" " * 20 + clip(cause.evidence, pen.width - 20)] if cause.evidence else []
    if said := itself(document):
        lines += pen.lines(said, "  ", "  ")
    if (more := len(document.causes) - _CAUSES) > 0:
        lines.append(f"{'':20}and {some(more, 'more cause')}")
    return lines


def _pairs(document: Document, pen: Pen) -> list[str]:
    if not document.worst:
        return []
    lines = [
        pen.title(
            f"  WORST PAIRS ({min(_PAIRS, len(document.worst))} of {len(document.worst)} in the report)"
        )
    ]
    for pair in document.worst[:_PAIRS]:
        lines += pair_lines(pair, pen)
    return lines


def pair_lines(pair: Shown, pen: Pen) -> list[str]:
    """A pair: what was asked, and what each arm said."""
    found = ", ".join(dict.fromkeys(finding.category for finding in pair.findings)) or "answers"
    excess = "" if pair.excess_s is None else f", end to end {quantity(pair.excess_s, 's', signed=True)}"
    return [
        "  " + clip(f"{pair.id}  {found} {pair.severity}{excess}", pen.width - 2),
        *_shown(
            (
                ("asked", pair.prompt),
                ("baseline", _side(pair.baseline)),
                ("candidate", _side(pair.candidate)),
            ),
            pen,
        ),
    ]


def _side(side: Side) -> str:
    cut = "\u2026" if side.skipped else ""
    return f"[{side.outcome}, {quantity(side.e2e_s, 's')}] {cut}{side.text or NOTHING}"


def _shown(texts: Iterable[tuple[str, str]], pen: Pen) -> Sequence[str]:
    return [f"    {label:<11}{clip(text, pen.width - 15)}" for label, text in texts]


_PARTS: dict[str, Callable[[Document, Pen], list[str]]] = {
    "verdict": _verdict,
    "rules": _rules,
    "beside": _beside,
    "latency": _latency,
    "requests": _ledger,
    "checks": _checks,
    "causes": _causes,
    "pairs": _pairs,
}
