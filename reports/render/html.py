"""The document as one self-contained HTML file: no script, no network, readable on a phone and on paper.

Jinja2 escapes everything that a server or model said; the content security policy of the file allows nothing but its own
style sheet, by hash.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator
from functools import cache
from importlib.resources import files

from jinja2 import Environment, StrictUndefined, Template
from markupsafe import Markup

from reports.document import Document
from reports.render import drawing, words
from reports.render.beside import beside
from reports.render.cost_drawing import LEFT, cost_chart
from reports.render.costs import crossing, money, priced, traffic
from reports.render.text import plain
from reports.shown import Shown, alike_until

_TEMPLATES = files("reports") / "templates"
_LONGEST_WORD = 40
_MEASURE = re.compile(r"(?<=\d) (?=(?:%|ms|s|min|h|days)\b|%)")


def render_html(document: Document) -> str:
    """The whole report as one file."""
    charts = (drawing.chart(document, metric) for metric in words.METRICS)
    return _template().render(
        d=document,
        bars={rule.rule: drawing.bar(rule) for rule in document.rules},
        charts=[chart for chart in charts if chart is not None],
        beside=beside(document),
        cost_chart=cost_chart(document.cost) if document.cost else None,
        failed=[check for check in document.checks if not check.passed],
        policy=list(_flat(document.policy)),
    )


@cache
def _template() -> Template:
    style = (_TEMPLATES / "report.css").read_text(encoding="utf-8")
    environment = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {
        "acknowledged": words.acknowledged,
        "bound": _bound,
        "plain": plain,
        "priced": priced,
        "number": _number,
        "count": words.count,
        "crossing": crossing,
        "interval": words.interval,
        "moment": words.moment,
        "money": money,
        "place": words.place,
        "quantity": words.quantity,
        "span": words.span,
        "title_of": words.title,
        "traffic": traffic,
    }
    environment.globals |= {
        "cost_left": LEFT,
        "draw": drawing,
        "latency": words.latency,
        "marks": words.MARKS,
        "metrics": words.METRICS,
        "nothing": words.NOTHING,
        "parted": parted,
        "rehearsal": words.REHEARSAL,
        "style": Markup(style),  # noqa: S704 - our own file, and the policy names its hash
        "style_hash": _hash(style),
    }
    return environment.from_string((_TEMPLATES / "report.html").read_text(encoding="utf-8"))


def parted(pair: Shown) -> dict[str, tuple[str, str, str]]:
    """Each side's text as (what both begin with, what differs, what both end with), cut at spaces.

    The middle is empty when one side has no answer, or nothing in common with the other.
    """
    texts = [plain(side.text, lines=True) for side in (pair.baseline, pair.candidate)]
    start = _common(*texts)
    end = _common(*(text[start:][::-1] for text in texts))
    if not (pair.baseline.outcome == pair.candidate.outcome == "ok" and start + end):
        return {"baseline": (texts[0], "", ""), "candidate": (texts[1], "", "")}
    cuts = [(text[:start], text[start : len(text) - end], text[len(text) - end :]) for text in texts]
    return dict(zip(("baseline", "candidate"), cuts, strict=True))


def _common(one: str, other: str) -> int:
    """Length of the common beginning, shortened to a whole word."""
    alike = alike_until(one, other)
    if alike == len(one) == len(other):
        return alike
    inside = one[:alike].rsplit(" ", 1)[-1]
    return alike - len(inside) if len(inside) <= _LONGEST_WORD else alike


def _number(text: str) -> str:
    """With a true minus sign, as wide as the plus."""
    return text.replace("-", "\u2212")


def _bound(text: str) -> str:
    """With each number on one line with its unit."""
    return _MEASURE.sub("\u00a0", text)


def _hash(style: str) -> str:
    digest = hashlib.sha256(style.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


def _flat(policy: dict[str, object], before: str = "") -> Iterator[tuple[str, str]]:
    """Keys as in a configuration, dotted."""
    for key, value in policy.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{before}{key}.")
        else:
            yield f"{before}{key}", words.NOTHING if value is None else str(value)
