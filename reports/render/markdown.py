"""The document for a pull request or an incident channel."""

from __future__ import annotations

from reports.document import Document
from reports.render.words import MARKS, interval, plain, quantity, span, title

_SPECIAL = str.maketrans({char: f"\\{char}" for char in "\\`*_{}[]<>()#+!|~@"})


def render_markdown(document: Document) -> str:
    """Verdict, rules, checks that failed, causes. Everything that a server or model said is escaped."""
    lines = [
        f"## {MARKS[document.verdict]} {document.verdict}: {_safe(document.reason)}",
        "",
        _basis(document),
        "",
        f"**Next:** {_safe(document.advice)}",
        "",
        "| rule | verdict | estimate | interval | margin | noise floor | pairs | why |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
        *(_rule(document, n) for n in range(len(document.rules))),
        *_section(
            "Failed checks", [f"- `{c.code}`: {_safe(c.message)}" for c in document.checks if not c.passed]
        ),
        *_section("Causes", [_cause(document, n) for n in range(min(10, len(document.causes)))]),
        *_section(
            "Where requests went", [f"- {_safe(key)}: {count}" for key, count in document.ledger.items()]
        ),
    ]
    return "\n".join(lines) + "\n"


def _basis(document: Document) -> str:
    run = document.run
    mark = "**Rehearsal policy, not for production.** " if document.rehearsal else ""
    pairs = document.ledger.get("scored", 0)
    return (
        f"{mark}Run `{run['id']}`, {pairs} scored pairs over {span(document.span_s)}; baseline {_safe(str(run['baseline']))}, "
        f"candidate {_safe(str(run['candidate']))}."
    )


def _rule(document: Document, at: int) -> str:
    rule = document.rules[at]
    cells = (
        title(rule.rule) + ("" if rule.required else " (not required)"),
        f"{MARKS[rule.verdict]} {rule.verdict}",
        quantity(rule.estimate, rule.unit, signed=True),
        interval(rule),
        quantity(rule.margin, rule.unit),
        quantity(rule.noise, rule.unit, signed=True),
        str(rule.pairs),
        rule.reason,
    )
    return "| " + " | ".join(_safe(cell) for cell in cells) + " |"


def _cause(document: Document, at: int) -> str:
    cause = document.causes[at]
    return f"- {cause.severity} `{cause.category}` x{cause.count}: {_safe(cause.message)} (example `{cause.example}`)"


def _section(name: str, lines: list[str]) -> list[str]:
    return ["", f"### {name}", "", *lines] if lines else []


def _safe(text: str) -> str:
    return plain(text, 400).translate(_SPECIAL)
