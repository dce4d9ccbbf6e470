"""The document as annotations of GitHub Actions: the verdict, then what stands against GO.

A runner reads them from either output of a step, so that they go to standard error and disturb no data.
"""

from __future__ import annotations

from collections.abc import Iterator

from reports.document import Document
from reports.judgement import Verdict
from reports.render.text import plain

_LEVELS = {Verdict.GO: "notice", Verdict.HOLD: "warning", Verdict.ROLLBACK: "error"}
_MOST = 10
"""Of one level and step are shown by GitHub."""


def render_github(document: Document) -> str:
    """A line each, at most ``_MOST``."""
    return "".join(list(_lines(document))[:_MOST])


def _lines(document: Document) -> Iterator[str]:
    yield _line(
        document.verdict,
        f"{document.verdict} {document.code}",
        f"{document.reason} Next: {document.advice} (run {document.run['id']})",
    )
    for rule in document.rules:
        if rule.applies and rule.required and rule.verdict is not Verdict.GO:
            yield _line(rule.verdict, f"{rule.verdict} {rule.rule}", rule.reason)
    for check in document.checks:
        if not check.passed:
            yield _line(Verdict.HOLD, f"check {check.code}", check.message)


def _line(verdict: Verdict, title: str, message: str) -> str:
    """With what would end the line, or its title, escaped as a runner reads it."""
    text = plain(message).replace("%", "%25")
    head = plain(title).replace("%", "%25").replace(":", "%3A").replace(",", "%2C")
    return f"::{_LEVELS[verdict]} title=migrate report%3A {head}::{text}\n"
