"""The report on one screen, whatever its size."""

from __future__ import annotations

import pytest

from reports.document import Document
from reports.render.screen import render_screen
from reports.render.terminal import render_terminal
from reports.render.text import columns
from tests.reports.builders import alike, document, exchange, wrong
from tests.reports.hostile import HOSTILE

DOCUMENTS = {
    "go": document(alike()),
    "rollback": document(wrong()),
    "hold": document([exchange(0)]),
    "hostile": document([exchange(n, "yes", text, prompt=text) for n, text in enumerate(HOSTILE.values())]),
}


@pytest.mark.parametrize("height", [12, 23, 40, 60])
@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("made", DOCUMENTS.values(), ids=DOCUMENTS)
def test_it_never_needs_more_than_the_screen(made: Document, width: int, height: int) -> None:
    lines = render_screen(made, width=width, height=height).splitlines()
    assert len(lines) <= height and all(columns(line) <= width for line in lines)
    assert f" {made.verdict} " in lines[0] and made.code in lines[0]


def test_what_matters_most_is_there_on_24_lines() -> None:
    made = DOCUMENTS["rollback"]
    text = render_screen(made, width=80, height=23)
    assert "REHEARSAL" in text and made.causes[0].category in text and "Next: " in text
    assert "\u2717 ROLLBACK disagreement" in text and made.run["id"] in text
    assert "less, or --format html" in text.splitlines()[-1]


@pytest.mark.parametrize("made", DOCUMENTS.values(), ids=DOCUMENTS)
def test_a_tall_screen_shows_all_of_it(made: Document) -> None:
    assert render_screen(made, width=120, height=500) == render_terminal(made, width=120)


def test_the_foot_can_say_something_else() -> None:
    text = render_screen(DOCUMENTS["go"], height=23, foot="  Ctrl-C ends")
    assert text.splitlines()[-1] == "  Ctrl-C ends"
