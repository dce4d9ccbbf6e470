"""Whatever a model, a server or a client says, no report changes its shape and no terminal obeys it."""

from __future__ import annotations

import json
import unicodedata

import pytest
from markdown_it import MarkdownIt

from reports.document import Document
from reports.render import RENDERERS
from reports.render.html import render_html
from reports.render.json import render_json
from reports.render.markdown import render_markdown
from reports.render.terminal import render_terminal
from reports.render.text import clip, columns, plain, wrap
from tests.reports.builders import calling, document, exchange, said
from tests.reports.hostile import ANSWERS, HOSTILE
from tests.reports.test_render_html import Page


@pytest.fixture(scope="module", params=HOSTILE.values(), ids=HOSTILE.keys())
def hostile(request: pytest.FixtureRequest) -> Document:
    return said(request.param, 4)


@pytest.fixture(scope="module")
def harmless() -> Document:
    return said("harmless words", 4)


def acting(text: str) -> set[str]:
    """Characters that a terminal or a browser may obey."""
    return {
        char
        for char in set(text) - set("\n\u200c\u200d")
        if unicodedata.category(char) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
    }


@pytest.mark.parametrize("form", [*RENDERERS, "terminal"])
def test_no_format_prints_a_character_that_acts(form: str, hostile: Document) -> None:
    text = render_terminal(hostile) if form == "terminal" else RENDERERS[form](hostile)
    assert acting(text) == set()
    assert text.encode()


@pytest.mark.parametrize("text", ANSWERS.values(), ids=ANSWERS.keys())
def test_no_answer_gets_through_to_a_reader(text: str) -> None:
    """Different from the baseline's, and as a tool call's arguments."""
    made = document(
        [exchange(0, "All is well.", text), calling(1, "{}", text), exchange(2, text, f"{text} x")]
    )
    for form in (*RENDERERS, "terminal"):
        out = render_terminal(made) if form == "terminal" else RENDERERS[form](made)
        assert acting(out) == set() and len(out.encode()) < 300_000, form
    assert json.loads(render_json(made))["worst"]
    page = Page(render_html(made))
    assert len(page.all("script")) == len(page.all("style")) == 1 and not page.all("img")


def test_html_keeps_its_elements_and_attributes(hostile: Document, harmless: Document) -> None:
    page, expected = Page(render_html(hostile)), Page(render_html(harmless))

    def shape(one: Page) -> list[tuple[str, tuple[str, ...]]]:
        """Without what marks a cut or a difference, or offers a choice: that depends on the texts."""
        kept = (one for one in one.elements if one[0] not in ("mark", "option", "optgroup"))
        return [(tag, tuple(found)) for tag, found in kept if (tag, found.get("class")) != ("span", "soft")]

    assert shape(page) == shape(expected)


def test_markdown_keeps_its_blocks_and_makes_no_link(hostile: Document, harmless: Document) -> None:
    parser = MarkdownIt("commonmark", {"linkify": False}).enable(["table", "strikethrough"])
    tokens = parser.parse(render_markdown(hostile))
    assert [t.type for t in tokens] == [t.type for t in parser.parse(render_markdown(harmless))]
    inline = {child.type for token in tokens for child in token.children or ()}
    assert inline <= {"text", "code_inline", "strong_open", "strong_close", "softbreak"}
    outside = "".join(c.content for t in tokens for c in t.children or () if c.type == "text")
    assert "@e" not in outside and "://" not in outside and "#1" not in outside


def test_a_terminal_line_stays_a_line(hostile: Document) -> None:
    for colour in (False, True):
        text = render_terminal(hostile, width=80, colour=colour)
        bare = text.replace("\x1b[0m", "").replace("\x1b[1m", "")
        lines = [line for line in bare.split("\n") if "\x1b" not in line]
        assert max(map(columns, lines)) <= 80
        assert len(lines) < 900


def test_json_comes_back(hostile: Document) -> None:
    data = json.loads(render_json(hostile))
    assert data["reason"] == "".join("\ufffd" if "\ud800" <= c <= "\udfff" else c for c in hostile.reason)


def test_no_format_grows_with_what_was_said() -> None:
    long = said(HOSTILE["long"], 4)
    assert len(render_html(long)) < 300_000
    assert len(render_markdown(long)) < 60_000
    assert len(render_terminal(long)) < 60_000


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
@pytest.mark.parametrize("width", [3, 20, 77])
def test_a_clipped_or_wrapped_text_fits(text: str, width: int) -> None:
    assert columns(clip(text, width)) <= width
    assert all(columns(line) <= width for line in wrap(text[:500], width))


def test_wrapping_loses_no_word() -> None:
    text = "one two three four " * 9
    assert " ".join(" ".join(wrap(text, 23, first="> ", rest="  ")).replace(">", "").split()) == text.strip()


def test_joined_letters_and_accents_stay_whole() -> None:
    assert plain("👩‍🚀 می‌خواهم e\u0301") == "👩‍🚀 می‌خواهم e\u0301"
