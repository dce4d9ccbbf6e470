"""The document as one self-contained HTML file: no network, readable on a phone, on paper and without its script.

Jinja2 escapes everything that a server or model said; the content security policy of the file allows nothing but its own
style sheet and script, by hash. The script finds, sorts and copies what is there; it makes no text of its own into HTML.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.resources import files

from jinja2 import Environment, StrictUndefined, Template
from markupsafe import Markup

from reports.advice import LATENCY_RULES
from reports.advisory import Looked
from reports.document import Document, Grouped
from reports.judgement import Severity, Verdict
from reports.render import drawing, over_time, words
from reports.render.beside import beside
from reports.render.cost_drawing import LEFT, cost_chart
from reports.render.costs import crossing, money, priced, traffic
from reports.render.explorer import BARS, CHOSEN, Opened, choices, opened
from reports.render.text import plain

_TEMPLATES = files("reports") / "templates"
_MOST_OF_PAIRS = 3_500_000
"""Bytes; what is worth less than others is left out."""
_MOST_SLICES = 500
_MEASURE = re.compile(r"(?<=\d) (?=(?:%|ms|s|min|h|days)\b|%)")


def render_html(document: Document) -> str:
    """The whole report as one file."""
    charts = (drawing.chart(document, metric) for metric in words.METRICS)
    some = opened(document)
    pairs = list(_within(_MOST_OF_PAIRS, _pairs(some)))
    some = some[: len(pairs)]
    return _template("report.html").render(
        d=document,
        bars={rule.rule: drawing.bar(rule) for rule in document.rules},
        charts=[chart for chart in charts if chart is not None],
        bins={metric: drawing.bins(document, metric) for metric in words.METRICS},
        beside=beside(document),
        measures=over_time.measures(document),
        evidence=over_time.evidence(document),
        since=over_time.since(document),
        slices=[row for row in document.slices.rows if row.looked is not Looked.WHOLE_RUN][:_MOST_SLICES],
        uncounted=words.counted({**document.ledger, "scored": 0}, without="dispatched"),
        cost_chart=cost_chart(document.cost) if document.cost else None,
        failed=[check for check in document.checks if not check.passed],
        policy=list(_flat(document.policy)),
        pairs=pairs,
        choices=choices(some),
        places={one.pair.id: number for number, one in enumerate(some, 1)},
        leading=_leading(document),
        slowest=document.worst[0] if document.code in LATENCY_RULES and document.worst else None,
    )


def _leading(document: Document) -> Grouped | None:
    """What to look at first; ``None`` where no finding explains the verdict."""
    if document.verdict is Verdict.GO or document.code in LATENCY_RULES:
        return None
    return next((cause for cause in document.causes if cause.severity != Severity.NOTE), None)


def _pairs(some: Iterable[Opened]) -> Iterator[Markup]:
    template = _template("pair.html")
    for number, one in enumerate(some, 1):
        yield Markup(template.render(o=one, n=number))  # noqa: S704 - the template escapes


def _within(most: int, parts: Iterable[Markup]) -> Iterator[Markup]:
    """The first ones, of so many bytes together."""
    for part in parts:
        most -= len(part.encode())
        if most < 0:
            return
        yield part


@cache
def _template(name: str) -> Template:
    return _environment().from_string(_text(name))


def _text(name: str) -> str:
    return (_TEMPLATES / name).read_text(encoding="utf-8")


@cache
def _environment() -> Environment:
    style, script = _text("report.css"), _text("report.js")
    environment = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {
        "acknowledged": words.acknowledged,
        "between": words.between,
        "bound": _bound,
        "plain": plain,
        "priced": priced,
        "number": _number,
        "count": words.count,
        "crossing": crossing,
        "from_to": words.from_to,
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
        "bars": BARS,
        "chosen": CHOSEN,
        "cost_left": LEFT,
        "draw": drawing,
        "time": over_time,
        "itself": words.itself,
        "latency": words.latency,
        "marks": words.MARKS,
        "metrics": words.METRICS,
        "nothing": words.NOTHING,
        "rehearsal": words.REHEARSAL,
        "style": Markup(style),  # noqa: S704 - our own file, and the policy names its hash
        "style_hash": _hash(style),
        "script": Markup(script),  # noqa: S704 - likewise
        "script_hash": _hash(script),
    }
    return environment


def _number(text: str) -> str:
    """With a true minus sign, as wide as the plus."""
    return text.replace("-", "\u2212")


def _bound(text: str) -> str:
    """With each number on one line with its unit."""
    return _MEASURE.sub("\u00a0", text)


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


def _flat(policy: dict[str, object], before: str = "") -> Iterator[tuple[str, str]]:
    """Keys as in a configuration, dotted."""
    for key, value in policy.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{before}{key}.")
        else:
            yield f"{before}{key}", words.NOTHING if value is None else str(value)
