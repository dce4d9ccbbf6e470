"""Beside the causes stands how often the baseline differs from itself: what lets one trust a GO beside BLOCK causes."""

from __future__ import annotations

from dataclasses import replace

import orjson

from reports.document import Document
from reports.render.html import render_html
from reports.render.json import render_json
from reports.render.markdown import render_markdown
from reports.render.terminal import render_terminal
from tests.reports.builders import exchange, from_items, item

SAID = "The baseline against itself: 3 in 30 differ; the candidate against the baseline: 3 in 30."


def noisy(*, repeat: bool = True) -> Document:
    """The candidate differs in one answer of ten, and so does the baseline's repeat, where there is one."""
    items = []
    for number in range(30):
        other = "It costs 24 euros." if number % 10 == 0 else "It costs 42 euros."
        one = exchange(number, "It costs 42 euros.", other, repeat=repeat)
        if one.repeat is not None and one.candidate is not None:
            one = replace(one, repeat=replace(one.repeat, answer=one.candidate.answer))
        items.append(item(one))
    return from_items(items)


def test_every_form_of_the_report_says_it() -> None:
    made = noisy()
    assert made.causes[0].severity == "BLOCK" and made.itself == {"pairs": 30, "different": 3}
    for text in (render_terminal(made), render_markdown(made), render_html(made)):
        assert SAID in " ".join(text.split())
    assert orjson.loads(render_json(made))["itself"] == {"pairs": 30, "different": 3}


def test_without_a_repeat_nothing_is_said() -> None:
    made = noisy(repeat=False)
    assert made.itself == {"pairs": 0, "different": 0}
    for text in (render_terminal(made), render_markdown(made), render_html(made)):
        assert "against itself" not in text
