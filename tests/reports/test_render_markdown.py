"""The Markdown for a pull request or an incident."""

from __future__ import annotations

import pytest
from markdown_it import MarkdownIt

from reports.document import Document
from reports.render.markdown import code, escape, render_markdown
from reports.render.words import title
from tests.reports.builders import COUNTERS, alike, document, exchange, slow, wrong
from tests.reports.made import QUICK


@pytest.fixture(scope="module", params=["go", "rollback", "slow", "hold"])
def made(request: pytest.FixtureRequest) -> Document:
    exchanges = {"go": alike, "rollback": wrong, "slow": slow, "hold": list}[request.param]()
    return document(exchanges, counters=COUNTERS)


def shown(text: str) -> str:
    """What a reader of the rendered page sees of one paragraph."""
    page = MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(text)
    for entity, char in (("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&amp;", "&"), ("\u200b", "")):
        page = page.replace(entity, char)
    return page.removeprefix("<p>").removesuffix("</p>\n")


def test_the_verdict_is_the_heading_and_its_reason_follows(made: Document) -> None:
    lines = render_markdown(made).splitlines()
    assert lines[0].startswith("## ") and lines[0].endswith(made.verdict)
    assert shown(lines[2]) == f"<strong>Why:</strong> {made.reason}"


def test_every_rule_is_a_row(made: Document) -> None:
    rows = [line for line in render_markdown(made).splitlines() if line.startswith("| ")]
    assert [
        row.split(" | ")[0][2:].removesuffix(" (not required)") for row in rows[2 : 2 + len(made.rules)]
    ] == [title(rule.rule) for rule in made.rules]


def test_tables_are_tables(made: Document) -> None:
    tokens = MarkdownIt("commonmark").enable("table").parse(render_markdown(made))
    rows = sum(token.type == "tr_open" for token in tokens)
    latency = sum(bool(one.samples) for one in made.latency)
    assert rows == 1 + len(made.rules) + (1 + latency if latency else 0)


@pytest.mark.parametrize(
    "text",
    [
        "a <b> & c",
        "5 * 3 * 2",
        "[x](y)",
        "`tick`",
        "a_b_c_",
        "~~x~~",
        "a|b",
        "1. one",
        "@you",
        "see #12",
        "http://x.y",
        "\\",
    ],
)
def test_an_escaped_text_is_seen_as_it_was(text: str) -> None:
    assert shown(f"x {escape(text)}") == f"x {text}"


@pytest.mark.parametrize("text", ["plain", "a `b` c", "``` x", "`", "<i>", "*x*"])
def test_a_code_span_holds_its_text(text: str) -> None:
    assert shown(code(text)) == f"<code>{text}</code>"


def test_both_sides_of_the_worst_pairs_are_quoted_in_their_place() -> None:
    text = render_markdown(document([exchange(0, "OLD 1", "CAND 2")], QUICK))
    assert "  - baseline: ok, 200 ms: `OLD 1`" in text
    assert "  - candidate: ok, 200 ms: `CAND 2`" in text


def test_a_rehearsal_is_marked(made: Document) -> None:
    assert "> **Rehearsal.**" in render_markdown(made)
