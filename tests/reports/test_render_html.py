"""The HTML file: self-contained, accessible, and the same facts as the document."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shlex
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser
from importlib.resources import files

import pytest

from reports.document import Document, Target
from reports.render.curl import curl
from reports.render.drawing import BAR_WIDTH, MARGIN, ZERO, bar
from reports.render.explorer import choices, opened
from reports.render.html import render_html
from reports.render.words import MARKS
from reports.shown import show
from tests.reports.builders import COUNTERS, alike, calling, document, exchange, from_pairs, item, slow, wrong
from tests.reports.made import QUICK, same

_VOID = {"meta", "br", "input", "path", "rect", "circle"}


class Page(HTMLParser):
    """Elements with their attributes, in order; fails on one that is not closed."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in _VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, tag

    def handle_data(self, data: str) -> None:
        if not self.open or self.open[-1] not in ("style", "script"):
            self.text.append(data)

    @property
    def words(self) -> str:
        return " ".join(" ".join(self.text).split()).replace("\u00a0", " ").replace("\u2212", "-")

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


@pytest.fixture(scope="module", params=["go", "rollback", "slow", "hold"])
def made(request: pytest.FixtureRequest) -> Document:
    exchanges = {"go": alike, "rollback": wrong, "slow": slow, "hold": list}[request.param]()
    return document(exchanges, counters=COUNTERS)


@pytest.fixture(scope="module")
def page(made: Document) -> Page:
    return Page(render_html(made))


def test_loads_nothing_and_runs_its_own_script_alone(made: Document, page: Page) -> None:
    tags = Counter(tag for tag, _ in page.elements)
    assert tags["script"] == 1
    assert not tags.keys() & {"link", "img", "iframe", "object", "form", "base", "audio", "video"}
    for _, attributes in page.elements:
        assert not attributes.keys() & {"style", "src", "srcset", "action"}
        assert not [name for name in attributes if name.startswith("on")]
        assert (attributes.get("href") or "#").startswith("#")
    assert not re.search(r"url\(|@import|@font-face", render_html(made))


def test_the_content_policy_allows_its_own_style_sheet_and_script_and_nothing_else(
    made: Document, page: Page
) -> None:
    policy = next(m["content"] for m in page.all("meta") if m.get("http-equiv") == "Content-Security-Policy")
    style, script = (
        _digest(re.findall(f"<{tag}>(.*?)</{tag}>", render_html(made), re.DOTALL)[0])
        for tag in ("style", "script")
    )
    assert policy == (
        f"default-src 'none'; style-src '{style}'; script-src '{script}'; base-uri 'none'; form-action 'none'"
    )


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def test_the_script_is_small_and_makes_no_text_into_html() -> None:
    script = (files("reports") / "templates" / "report.js").read_text(encoding="utf-8")
    assert len(script) < 15_000 and script.startswith('"use strict";')
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacent|document\.write|eval|Function\(|fetch|XMLHttp|import", script
    )


def test_the_verdict_is_the_first_thing_in_words_and_sign(made: Document, page: Page) -> None:
    at = page.words.index(f"{MARKS[made.verdict]} {made.verdict} {made.reason}", 20)
    assert at < 250 and page.words.index(made.advice) < at + 600


def test_has_what_a_screen_reader_needs(page: Page) -> None:
    assert page.all("html")[0]["lang"] == "en"
    assert len(page.all("h1")) == 1 and len(page.all("main")) == 1
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert {link["href"] for link in page.all("a")} <= {f"#{name}" for name in ids}
    assert len(page.all("caption")) == len(page.all("table"))
    for image in page.all("svg"):
        assert image.get("aria-hidden") == "true" or (image.get("role") == "img" and image.get("aria-label"))
    assert page.all("a")[0]["class"] == "skip"


def test_every_rule_shows_its_numbers_and_reason(made: Document, page: Page) -> None:
    for rule in made.rules:
        assert " ".join(rule.reason.split()) in page.words
        assert rule.method in page.words
    assert len([row for row in page.all("tr") if "-row" in (row.get("class") or "")]) == len(made.rules)


def test_latency_is_drawn_for_each_metric_with_a_text_alternative() -> None:
    page = Page(render_html(document(slow())))
    drawings = [image["aria-label"] for image in page.all("svg") if image.get("role") == "img"]
    latency = [words or "" for words in drawings if (words or "").startswith("Share of answers")]
    assert len(latency) == 3 and all("p50" in words and "→" in words for words in latency)
    assert len([words for words in drawings if (words or "").startswith("Histogram of times")]) == 3
    arms = [
        path["class"]
        for path in page.all("path")
        if "curve s-" in (path.get("class") or "") and "V" in (path["d"] or "")
    ]
    assert Counter(arms) == {"curve s-baseline": 3, "curve s-candidate": 3, "curve s-baseline_repeat": 3}


def test_without_latency_there_is_no_empty_chart(page: Page) -> None:
    assert "<figure" not in render_html(from_pairs([]))


def test_every_bar_has_no_difference_and_the_margin_at_the_same_place(made: Document) -> None:
    for rule in made.rules:
        drawn = bar(rule)
        if drawn is not None:
            assert (drawn.zero, drawn.margin) == (ZERO, MARGIN)
            assert 0 <= drawn.low <= drawn.high <= BAR_WIDTH


def test_a_pair_stands_side_by_side_with_every_word_marked_that_differs() -> None:
    text = render_html(
        document([exchange(0, "It costs 42 euros in all.", "It costs 24 euros at most.")], QUICK)
    )
    assert "It costs <mark>42</mark> euros <mark>in all</mark>." in text
    assert "It costs <mark>24</mark> euros <mark>at most</mark>." in text


def test_every_pair_is_in_the_file_once_and_says_what_it_can_be_found_by() -> None:
    page = Page(render_html(document(wrong())))
    pairs = [one for one in page.all("details") if (one.get("class") or "").startswith("pair")]
    assert len(pairs) == len({one["id"] for one in pairs}) > 40
    keys = {key for one in pairs for key in (one["data-kinds"] or "").split()}
    assert keys == {one["value"] for one in page.all("option")} - {""}


def test_the_leading_cause_stands_under_the_verdict_and_leads_to_its_example() -> None:
    made = document(wrong())
    text = render_html(made)
    lead = text[text.index("Leading cause") : text.index("Next:")]
    (target,) = re.findall(r'href="#([^"]+)"', lead)
    assert f'id="{target}"' in text and made.causes[0].example in lead
    assert "Leading cause" not in render_html(document(alike()))


def test_tool_calls_are_compared_as_a_tree() -> None:
    text = render_html(document([calling(0, '{"to": "Rome", "n": 2}', '{"to": "Oslo", "n": 2}')], QUICK))
    tree = text[text.index('<table class="tree">') :]
    assert "book()" in tree
    assert re.search(
        r"<code>to</code> <small>changed</small>.*&#34;Rome&#34;.*&#34;Oslo&#34;", tree, re.DOTALL
    )
    assert re.search(r'<tr class="same"><th scope="row"><span class="in in-1"><code>n</code>', tree)


def test_a_pair_can_be_asked_again_without_any_key() -> None:
    targets = {
        "baseline": Target(url="http://base:8000", key_env=None, models={}),
        "candidate": Target(url="https://cand", key_env="CAND_KEY", models={"m": "m-fp8"}),
    }
    one = exchange(0, "a", "b", prompt="it's")
    one = replace(
        one, request=replace(one.request, body=b'{"model":"m","messages":[{"content":"it\'s \xe2\x80\xae"}]}')
    )
    asked = show(item(one), one, "now").asked
    baseline, candidate = (curl(asked, targets[arm], key=None) for arm in ("baseline", "candidate"))
    words = shlex.split(candidate)
    assert words[:5] == ["curl", "-sS", "-X", "POST", "https://cand/v1/chat/completions"]
    assert "authorization: Bearer $CAND_KEY" in words and "authorization" not in baseline
    assert json.loads(words[-1]) == {"model": "m-fp8", "messages": [{"content": "it's \u202e"}]}
    assert "\u202e" not in candidate
    assert "BASELINE_KEY" in render_html(document([one], QUICK, targets=targets))


def test_the_file_stays_small_whatever_is_in_it() -> None:
    made = document([exchange(n, '"<' * 400, "&'" * 400, prompt='"' * 1_900) for n in range(40)])
    many = replace(made, sample=made.sample * 20)
    assert 3_000_000 < len(render_html(many).encode()) < 5_000_000


def test_a_rehearsal_and_notes_are_marked() -> None:
    text = render_html(from_pairs(same(3), notes=("no model here",)))
    assert "Rehearsal." in text and "no model here" in text


def test_every_definition_stands_in_the_file(made: Document, page: Page) -> None:
    for word, meaning in made.definitions.items():
        assert word in page.words and meaning in page.words


def _themes() -> list[dict[str, str]]:
    style = (files("reports") / "templates" / "report.css").read_text(encoding="utf-8")
    light, dark = (
        dict(re.findall(r"--([a-z-]+):(#[0-9a-f]{6})", block))
        for block in style.split("@media screen and (prefers-color-scheme: dark)", 1)
    )
    return [light, dark]


def _contrast(one: str, other: str) -> float:
    def luminance(colour: str) -> float:
        parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("theme", _themes(), ids=["light", "dark"])
def test_text_has_contrast_of_level_aa(theme: dict[str, str]) -> None:
    grounds = {
        "page": ("ink", "soft", "go", "back", "hold"),
        "card": ("ink", "soft"),
        "go-tint": ("ink", "go"),
        "back-tint": ("ink", "back"),
        "hold-tint": ("ink", "hold"),
        "mark": ("ink",),
    }
    for ground, inks in grounds.items():
        for ink in inks:
            assert _contrast(theme[ground], theme[ink]) >= 4.5, (ground, ink)
    for line in ("base", "cand", "back"):
        assert _contrast(theme["page"], theme[line]) >= 3, line


def test_what_is_left_out_is_not_offered() -> None:
    made = document(wrong())
    some = opened(made)
    few = choices(some[:3])
    assert sum(one.pairs for one in few.chosen) == 3
    assert {one.key for one in few.findings} <= {one.key for one in choices(some).findings}
    assert few.slices[0][0] == "route"
