"""One is one: no report says "1 pairs" or "1 requests"."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from reports.counting import some
from reports.document import Document
from reports.render.html import render_html
from reports.render.junit import render_junit
from reports.render.markdown import render_markdown
from reports.render.screen import render_screen
from reports.render.terminal import render_terminal
from tests.reports.builders import document, exchange

PLURAL = re.compile(
    r"(?<![\d.,])(?<!of )1 (pairs|requests|answers|copies|failures|causes|times|more causes)\b"
)


def test_counts() -> None:
    assert [some(n, "pair") for n in (0, 1, 1_200)] == ["0 pairs", "1 pair", "1,200 pairs"]
    assert some(1, "copy", "copies") == "1 copy" and some(2, "copy", "copies") == "2 copies"


@pytest.mark.parametrize(
    "render", [render_terminal, render_markdown, render_html, render_junit, render_screen]
)
def test_a_report_on_one_pair(render: Callable[[Document], str]) -> None:
    made = document([exchange(0, failed="no")], counters={"passed": 1, "mirrored": 1})
    assert not (found := PLURAL.findall(render(made))), found


def test_a_phone_shows_the_leading_cause_whole() -> None:
    assert "line-clamp" not in render_html(document([exchange(0, failed="no")]))
