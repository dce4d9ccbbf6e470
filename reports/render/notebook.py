"""The document as a notebook shows a value: the verdict, what it rests on, and the rules. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from reports.document import Document
from reports.render.terminal import basis
from reports.render.text import plain
from reports.render.words import MARKS, count, interval, quantity, title

_HEAD = ("Rule", "Verdict", "Estimate", "Interval", "Margin", "Noise", "Pairs", "Reason")


def render_notebook(document: Document) -> str:
    """HTML without style or script of its own: the notebook's theme applies."""
    head = f"{MARKS[document.verdict]} {document.verdict} {document.code}"
    said = (document.reason, f"Next: {document.advice}", basis(document), *document.notes)
    rules = (
        (
            title(rule.rule),
            f"{MARKS[rule.verdict]} {rule.verdict}" + ("" if rule.required else " (not required)"),
            quantity(rule.estimate, rule.unit, signed=True),
            interval(rule),
            quantity(rule.margin, rule.unit),
            quantity(rule.noise, rule.unit, signed=True),
            count(rule.pairs),
            rule.reason,
        )
        for rule in document.rules
        if rule.applies
    )
    return "".join(
        [
            f"<h3>{_text(head)}</h3>",
            *(f"<p>{_text(one)}</p>" for one in said),
            f"<table><thead>{_row('th', _HEAD)}</thead><tbody>",
            *(_row("td", cells) for cells in rules),
            "</tbody></table>",
        ]
    )


def _row(tag: str, cells: Iterable[str]) -> str:
    return f"<tr>{''.join(f'<{tag}>{_text(cell)}</{tag}>' for cell in cells)}</tr>"


def _text(text: str) -> str:
    return escape(plain(text))
