"""The document for a pull request or an incident channel (GitHub-flavoured Markdown)."""

from __future__ import annotations

import re
from collections.abc import Iterable

from replay.exchange import Arm
from reports.counting import some
from reports.document import Document, Grouped
from reports.judgement import RuleResult
from reports.render.beside import beside
from reports.render.text import plain
from reports.render.words import (
    MARKS,
    METRICS,
    REHEARSAL,
    acknowledged,
    count,
    counted,
    interval,
    itself,
    latency,
    moment,
    quantity,
    share,
    span,
    title,
)
from reports.shown import Shown, Side

_SPECIAL = re.compile(r"://|www\.|#(?=\d)|[@<>&\\`*_\[\]|~$]")
_ENTITIES = {"<": "&lt;", ">": "&gt;", "&": "&amp;"}
_UNLINKED = "&#8203;"
"""A zero-width space: a backslash does not keep a forge from making a mention, a reference or a link."""
_CAUSES = 10
_PAIRS = 3


def render_markdown(document: Document) -> str:
    """Verdict, rules, failed checks, causes, latency, ledger, worst pairs. Everything that was said is escaped."""
    mark = [f"> **Rehearsal.** {REHEARSAL}", ""] if document.rehearsal else []
    lines = [
        f"## {MARKS[document.verdict]} {document.verdict}",
        "",
        f"**Why:** {escape(document.reason)}",
        "",
        *mark,
        f"**Next:** {escape(document.advice)}",
        "",
        *_basis(document),
        *(f"- {escape(acknowledged(one))}" for one in document.acknowledgements),
        *(f"- Note: {escape(note)}" for note in document.notes),
        "",
        *_table("rule|verdict|estimate|interval|margin|noise floor|pairs|why", map(_rule, document.rules)),
        *_section(
            "Failed checks",
            [f"- {code(c.code)}: {escape(c.message)}" for c in document.checks if not c.passed],
        ),
        *_section("Beside the rules", _beside(document)),
        *_section("Causes", _causes(document)),
        *_section("Latency", _latency(document)),
        *_section("Where requests went", _ledger(document)),
        *_section("Worst pairs", [line for pair in document.worst[:_PAIRS] for line in _pair(pair)]),
    ]
    return "\n".join(lines) + "\n"


def escape(text: str, limit: int = 600) -> str:
    """A text that is shown as it is behind something else on its line: no markup, link, mention or reference comes of it."""
    return _SPECIAL.sub(_escaped, " ".join(plain(text, limit).split()))


def _escaped(match: re.Match[str]) -> str:
    found = match[0]
    if len(found) > 1 or found in "@#":
        return f"&#{ord(found[0])};{_UNLINKED}{found[1:]}"
    return _ENTITIES.get(found, f"\\{found}")


def code(text: str, limit: int = 300) -> str:
    """A text as a code span, which nothing in it can close."""
    shown = plain(text, limit).strip() or "\u2013"
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", shown)), default=0))
    return f"{fence} {shown} {fence}" if "`" in shown else f"{fence}{shown}{fence}"


def _basis(document: Document) -> list[str]:
    run, gateway, scored = document.run, document.gateway, count(document.ledger.get("scored", 0))
    state = run["status"] if run["ended_at"] else f"{run['status']}, judged at {moment(document.judged_at)}"
    passed = (
        f", {some(gateway['passed'], 'request')} passed, {count(gateway['mirrored'])} mirrored"
        if gateway
        else ""
    )
    return [
        f"- Rests on {scored} scored pairs over {span(document.span_s)}{passed}{share(document)}",
        f"- Run {code(run['id'])} ({escape(state)}), from {escape(moment(run['started_at']))}",
        f"- Valid until {escape(moment(document.valid_until))}",
        f"- Baseline {code(run['baseline'])}, candidate {code(run['candidate'] or 'none')}",
    ]


def _rule(rule: RuleResult) -> tuple[str, ...]:
    return (
        title(rule.rule) + ("" if rule.required else " (not required)"),
        f"{MARKS[rule.verdict]} {rule.verdict}" if rule.applies else "does not apply",
        quantity(rule.estimate, rule.unit, signed=True),
        interval(rule),
        quantity(rule.margin, rule.unit),
        quantity(rule.noise, rule.unit, signed=True),
        count(rule.pairs),
        escape(rule.reason),
    )


def _table(head: str, rows: Iterable[tuple[str, ...]]) -> list[str]:
    names = head.split("|")
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return [f"| {' | '.join(names)} |", f"|{' --- |' * len(names)}", *lines]


def _beside(document: Document) -> list[str]:
    return [
        line
        for part in beside(document)
        for line in (
            f"- {part.name}: {escape(part.counts)}",
            *(f"  - {escape(text)}" for text in part.remarkable),
        )
    ]


def _causes(document: Document) -> list[str]:
    lines = [_cause(cause) for cause in document.causes[:_CAUSES]]
    more = len(document.causes) - _CAUSES
    lines += [f"- and {more} more"] if more > 0 else []
    said = itself(document) if lines else None
    return [*lines, "", said] if said else lines


def _cause(cause: Grouped) -> str:
    evidence = f", {code(cause.evidence)}" if cause.evidence else ""
    return (
        f"- {cause.severity} {code(cause.category)}, {some(cause.count, 'request')}: {code(cause.message)}{evidence} "
        f"(example {code(cause.example, 80)})"
    )


def _latency(document: Document) -> list[str]:
    rows = [
        (
            METRICS[metric],
            arm.replace("_", " "),
            *(quantity(q.value_s, "s") for q in one.quantiles),
            count(one.requests),
        )
        for metric in METRICS
        for arm in Arm
        if (one := latency(document, metric, arm)) is not None
    ]
    return _table("metric|arm|p50|p95|p99|requests", rows) if rows else []


def _ledger(document: Document) -> list[str]:
    sums = (
        (document.gateway, "passed", "request passed", "requests passed"),
        (document.ledger, "dispatched", "dispatched", "dispatched"),
        (document.compared, "pairs", "answer compared", "answers compared"),
    )
    lines = [
        f"- {some(parts[total], one, many)}: {', '.join(counted(parts, without=total)) or 'none'}"
        for parts, total, one, many in sums
        if parts
    ]
    lost = document.not_recorded
    return [*lines, f"- not in the store: {some(lost, 'mirrored request')}"] if lost else lines


def _pair(pair: Shown) -> list[str]:
    found = ", ".join(code(category) for category in dict.fromkeys(f.category for f in pair.findings))
    excess = "" if pair.excess_s is None else f", end to end {quantity(pair.excess_s, 's', signed=True)}"
    return [
        f"- {pair.severity} {code(pair.id, 80)} {found}{excess}",
        f"  - asked: {code(pair.prompt)}",
        f"  - baseline: {_side(pair.baseline)}",
        f"  - candidate: {_side(pair.candidate)}",
    ]


def _side(side: Side) -> str:
    return f"{side.outcome}, {quantity(side.e2e_s, 's')}: {code(side.text)}"


def _section(name: str, lines: list[str]) -> list[str]:
    return ["", f"### {name}", "", *lines] if lines else []
