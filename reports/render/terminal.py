"""The document as one terminal screen, verdict first. Plain text with a few colours; no colour carries meaning alone."""

from __future__ import annotations

import textwrap

from reports.document import Document, Shown
from reports.judgement import RuleResult, Verdict
from reports.metrics import Distribution
from reports.render.words import MARKS, interval, plain, quantity, span

_COLOURS = {Verdict.GO: "32", Verdict.ROLLBACK: "31", Verdict.HOLD: "33"}
_CAUSES = 6
_PAIRS = 3


def render_terminal(document: Document, *, width: int = 80, colour: bool = False) -> str:
    """The screen for ``width`` columns; ``colour`` adds ANSI colours."""
    screen = _Screen(width, colour)
    screen.verdict(document)
    screen.rules(document.rules)
    screen.latency(document.latency)
    screen.ledger(document)
    screen.causes(document)
    for pair in document.worst[:_PAIRS]:
        screen.pair(pair)
    return "\n".join(screen.lines) + "\n"


class _Screen:
    """Lines of one screen as they are written."""

    def __init__(self, width: int, colour: bool) -> None:
        self.width = max(60, width)
        self.colour = colour
        self.lines: list[str] = []

    def verdict(self, document: Document) -> None:
        head = f" {MARKS[document.verdict]} {document.verdict} "
        self.lines.append(self._paint(head, document.verdict, bold=True) + f" {document.code}")
        self._wrapped(document.reason)
        self._wrapped(f"Next: {document.advice}")
        if document.rehearsal:
            self._wrapped("REHEARSAL: the policy is shortened; this verdict says nothing about production.")
        run, ledger = document.run, document.ledger
        passed = document.traffic.get("passed")
        mirrored = document.traffic.get("mirrored")
        share = "" if passed is None else f"{passed} requests passed, {mirrored or 0} mirrored, "
        self._wrapped(
            f"Rests on {share}{ledger.get('scored', 0)} scored pairs over {span(document.span_s)}; run {run['id']} "
            f"({run['status']}), baseline {run['baseline']}, candidate {run['candidate'] or 'none'}."
        )
        for note in document.notes:
            self._wrapped(f"Note: {note}")

    def rules(self, rules: tuple[RuleResult, ...]) -> None:
        self._title("rule             estimate        interval              margin     noise  pairs")
        for rule in rules:
            mark = self._paint(MARKS[rule.verdict], rule.verdict)
            name = rule.rule if rule.required else f"({rule.rule})"
            cells = (
                f"{name:<15}{quantity(rule.estimate, rule.unit, signed=True):>11}  {interval(rule):>24} "
                f"{quantity(rule.margin, rule.unit):>9} {quantity(rule.noise, rule.unit, signed=True):>9} {rule.pairs:>6}"
            )
            self.lines.append(f"{mark} {cells}")
            self._wrapped(f"{rule.verdict}: {rule.reason}", indent=4)

    def latency(self, latency: tuple[Distribution, ...]) -> None:
        if not any(one.samples for one in latency):
            return
        self._title("latency   arm                    p50         p95         p99   requests")
        for one in latency:
            if one.samples:
                cells = "".join(f"{quantity(q.value, 's'):>12}" for q in one.quantiles)
                self.lines.append(f"  {one.metric:<8}{one.arm.value:<16}{cells}{one.requests:>11}")

    def ledger(self, document: Document) -> None:
        self._title("where requests went")
        parts = [f"{key} {count}" for key, count in document.ledger.items() if count]
        self._wrapped("dispatched: " + (", ".join(parts) or "none"))
        names = (
            "not_eligible",
            "not_sampled",
            "not_json",
            "too_large",
            "stateful",
            "paused",
            "queue_full",
            "mirror_down",
        )
        kept = [f"{key} {document.traffic[key]}" for key in names if document.traffic.get(key)]
        if kept:
            self._wrapped("not mirrored: " + ", ".join(kept))
        lost = [
            f"{k} {v}"
            for k, v in document.traffic.items()
            if v and k.startswith(("not_sent.", "repeats_skipped."))
        ]
        if lost:
            self._wrapped("not sent: " + ", ".join(lost))
        compared = document.compared
        self._wrapped(
            f"answers: {compared['alike']} alike, {compared['different']} different, {compared['not_scored']} not scored"
        )
        for check in document.checks:
            if not check.passed:
                self._wrapped(f"check failed: {check.code}: {check.message}")

    def causes(self, document: Document) -> None:
        if not document.causes:
            return
        self._title("causes")
        for cause in document.causes[:_CAUSES]:
            self._wrapped(
                f"{cause.severity:<6}{cause.category} x{cause.count} ({cause.example}): {cause.message}"
            )
        if (more := len(document.causes) - _CAUSES) > 0:
            self._wrapped(f"and {more} more")

    def pair(self, pair: Shown) -> None:
        self._title(f"pair {pair.id}")
        for label, text in (
            ("asked", pair.prompt),
            ("baseline", pair.baseline.text),
            ("candidate", pair.candidate.text),
        ):
            self.lines.append(f"  {label:<10}{plain(text, self.width - 14)}")

    def _title(self, text: str) -> None:
        self.lines += ["", self._bold(text[: self.width])]

    def _wrapped(self, text: str, indent: int = 2) -> None:
        pad = " " * indent
        wrapped = textwrap.wrap(plain(text), self.width, initial_indent=pad, subsequent_indent=pad)
        self.lines += wrapped or [pad]

    def _bold(self, text: str) -> str:
        return f"\x1b[1m{text}\x1b[0m" if self.colour else text

    def _paint(self, text: str, verdict: Verdict, *, bold: bool = False) -> str:
        if not self.colour:
            return text
        return f"\x1b[{'1;7;' if bold else ''}{_COLOURS[verdict]}m{text}\x1b[0m"
