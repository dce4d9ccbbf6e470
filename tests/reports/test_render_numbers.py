"""Renderers format what the document holds; no number is theirs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import asdict

import pytest

from reports.document import Document
from reports.render.html import render_html
from reports.render.markdown import render_markdown
from reports.render.terminal import render_terminal
from reports.render.words import count, moment, quantity, span
from tests.reports.builders import COUNTERS, alike, document, exchange, slow, wrong
from tests.reports.test_render_html import Page

_NUMBER = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?")
_SHOWN = {"3", "10", "12", "20"}
"""How many of a long list are shown."""


def seen(document: Document) -> set[str]:
    """Every number in the document, in each way in which a person may read it, and how many things there are."""
    return {number for text in _forms(asdict(document)) for number in _NUMBER.findall(text)}


def _forms(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        for key, part in value.items():
            yield str(key)
            yield from _forms(part)
    elif isinstance(value, list | tuple):
        yield str(len(value))
        for part in value:
            yield from _forms(part)
    elif isinstance(value, str):
        yield from (value, moment(value))
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield from _written(value)


def _written(value: float) -> Iterator[str]:
    yield from (str(value), f"{value:g}", f"{value:.3f}", count(round(value)), span(abs(value)))
    yield from (quantity(value, "s"), quantity(value, "share"))
    # Two ends of one interval share a unit and its places.
    yield from (
        f"{scaled:,.{places}f}" for scaled in (value, value * 1e2, value * 1e3) for places in range(3)
    )


def html(document: Document) -> str:
    """The words of the page, without the scales of its drawings and the entities of its source."""
    page = Page(re.sub(r"<text .*?</text>", "", render_html(document)))
    return page.words


def markdown(document: Document) -> str:
    return re.sub(r"&#\d+;", "", render_markdown(document))


@pytest.mark.parametrize("render", [render_terminal, markdown, html])
@pytest.mark.parametrize("exchanges", [alike, wrong, slow, list], ids=["go", "wrong", "slow", "empty"])
def test_every_printed_number_is_in_the_document(
    render: Callable[[Document], str], exchanges: Callable[[], list[object]]
) -> None:
    made = document([*exchanges(), exchange(999, failed="HTTP 503")], counters=COUNTERS)  # type: ignore[list-item]
    assert set(_NUMBER.findall(render(made))) <= seen(made) | _SHOWN
