"""The HTML report in a real browser: it finds, opens, sorts and copies; it loads nothing; everybody can use it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect, sync_playwright

from replay.exchange import Exchange
from reports.document import Document, Target
from reports.render.html import render_html
from tests.reports.builders import calling, document, exchange, said, wrong
from tests.reports.hostile import HOSTILE
from tests.reports.made import REHEARSAL

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")
PHONE, DESK = {"width": 360, "height": 780}, {"width": 1440, "height": 900}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        yield playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])


def mixed() -> Document:
    """A ROLLBACK with several causes, routes and slices."""
    exchanges = [
        *(_elsewhere(one) if n % 3 else one for n, one in enumerate(wrong(400))),
        *(exchange(400 + n, failed="out of memory") for n in range(6)),
        *(calling(410 + n, '{"to": "Rome"}', '{"to": "Oslo"}') for n in range(6)),
    ]
    targets = {
        "baseline": Target(url="http://base:8000", key_env=None, models={}),
        "candidate": Target(url="http://cand:8000", key_env="CAND_KEY", models={}),
    }
    return document(exchanges, REHEARSAL.model_copy(update={"rehearsal": False}), targets=targets)


def _elsewhere(one: Exchange) -> Exchange:
    return replace(one, request=replace(one.request, path="/v1/completions"))


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(render_html(mixed()), encoding="utf-8")
    return path


@pytest.fixture
def opened(browser: Browser, file: Path) -> Iterator[Page]:
    with visit(browser, file, viewport=DESK) as page:
        yield page


class visit:  # noqa: N801 - reads as the verb that it is
    """A page on a file; fails at its end when anything went wrong in it, or it asked for anything."""

    def __init__(self, browser: Browser, file: Path, **context: Any) -> None:
        self._context = browser.new_context(**context)
        self._file, self._wrong = file, list[str]()

    def __enter__(self) -> Page:
        page = self._context.new_page()
        page.set_default_timeout(5_000)
        page.on("console", lambda said: self._wrong.append(said.text))
        page.on("pageerror", lambda error: self._wrong.append(str(error)))
        page.on("dialog", lambda dialog: self._wrong.append(dialog.message))
        page.on(
            "request",
            lambda asked: self._wrong.append(asked.url) if asked.url != self._file.as_uri() else None,
        )
        page.goto(self._file.as_uri())
        return page

    def __exit__(self, *_: object) -> None:
        self._context.close()
        assert self._wrong == []


def shown(page: Page) -> list[str]:
    """The summaries of the pairs that are to be seen."""
    return page.locator("details.pair:not([hidden]) > summary").all_inner_texts()


def test_a_reader_searches_filters_and_opens_a_pair(opened: Page) -> None:
    every = len(shown(opened))
    assert every > 50
    opened.get_by_label("Search", exact=True).fill("OSLO rome")
    assert 0 < len(shown(opened)) < every and all("tools." in line for line in shown(opened))
    expect(opened.locator("output")).to_have_text(f"{len(shown(opened))} of {every} pairs")
    opened.get_by_role("button", name="Show all").click()
    assert len(shown(opened)) == every
    opened.get_by_label("Finding", exact=True).select_option(label=_option(opened, "Finding", "error."))
    assert 0 < len(shown(opened)) <= 6
    opened.get_by_label("Route", exact=True).select_option(label=_option(opened, "Route", "/v1/completions"))
    assert shown(opened) == []
    opened.get_by_role("button", name="Show all").click()
    pair = opened.locator("details.pair").nth(1)
    pair.locator("> summary").press("Enter")
    expect(pair.locator(".sides .candidate .said")).to_be_visible()


def _option(page: Page, label: str, part: str) -> str:
    return next(
        text
        for text in page.get_by_label(label, exact=True).locator("option").all_inner_texts()
        if part in text
    )


def test_a_cause_leads_to_its_example_and_to_its_pairs(opened: Page) -> None:
    opened.locator(".lead a").click()
    target = opened.evaluate("location.hash.slice(1)")
    expect(opened.locator(f"#{target}")).to_be_in_viewport()
    opened.locator(".causes a[data-kind]", has_text="pairs with it").last.click()
    assert 0 < len(shown(opened)) < 50


def test_slices_are_sorted_by_any_column_both_ways(opened: Page) -> None:
    opened.get_by_text("All slices").click()
    table = opened.locator("table.slices")
    for name, first in (("Pairs", "descending"), ("Requests", "ascending")):
        heading = table.get_by_role("columnheader", name=name)
        heading.get_by_role("button").click()
        expect(heading).to_have_attribute("aria-sort", first)
        column = [text.replace(",", "") for text in _column(opened, name)]
        heading.get_by_role("button").click()
        assert sorted(_column(opened, name)) == sorted(column)
        assert [text.replace(",", "") for text in _column(opened, name)] == column[::-1] or len(
            set(column)
        ) < len(column)
    assert table.locator("[aria-sort]").count() == 1


def _column(page: Page, name: str) -> list[str]:
    names = [text.split("\n")[0] for text in page.locator("table.slices thead th").all_inner_texts()]
    return page.locator(f"table.slices tbody tr > :nth-child({names.index(name) + 1})").all_inner_texts()


def test_a_command_is_copied_and_names_the_key_by_its_variable(browser: Browser, file: Path) -> None:
    with visit(browser, file, permissions=["clipboard-read", "clipboard-write"]) as page:
        command = page.locator("details.curl", has_text="Ask the candidate again").first
        command.locator("summary").click()
        command.get_by_role("button", name="Copy").click()
        expect(command.get_by_role("button")).to_have_text("Copied")
        assert "Bearer $CAND_KEY" in page.evaluate("navigator.clipboard.readText()")


def test_without_its_script_the_file_has_every_pair(browser: Browser, file: Path) -> None:
    with visit(browser, file, java_script_enabled=False) as page:
        expect(page.locator("#find")).to_be_hidden()
        pair = page.locator("details.pair").nth(2)
        pair.locator("> summary").click()
        expect(pair.locator(".sides .candidate .said")).to_be_visible()
        page.locator(".lead a").click()
        expect(page.locator("details.pair[open]").first).to_be_visible()


@pytest.mark.parametrize(("scheme", "size"), [("dark", PHONE), ("light", DESK)], ids=["phone", "desk"])
def test_axe_finds_no_fault(browser: Browser, file: Path, scheme: Any, size: Any) -> None:
    with visit(browser, file, color_scheme=scheme, viewport=size) as page:
        page.evaluate(
            "for (const one of [...document.querySelectorAll('details')].slice(0, 12)) one.open = true"
        )
        found = Axe().run(page)
        assert [(one["id"], one["nodes"][0]["html"][:200]) for one in found.response["violations"]] == []


@pytest.mark.parametrize("size", [PHONE, DESK], ids=["phone", "desk"])
def test_nothing_is_wider_than_the_screen_and_the_verdict_needs_no_scrolling(
    browser: Browser, file: Path, size: Any
) -> None:
    with visit(browser, file, viewport=size) as page:
        page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
        assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]
        for part in (".word", ".why", ".lead", ".next", ".facts div:first-child", ".arms"):
            box = page.locator(part).first.bounding_box()
            assert box is not None and box["y"] + box["height"] <= size["height"], part


def test_the_keyboard_reaches_everything(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "small.html"
    path.write_text(render_html(document(wrong(8))), encoding="utf-8")
    with visit(browser, path) as page:
        wanted = page.evaluate(
            "[...document.querySelectorAll('a[href], button, input, select, summary, [tabindex=\"0\"]')]"
            ".filter((one) => one.checkVisibility()).length"
        )
        reached = set()
        for _ in range(wanted):
            page.keyboard.press("Tab")
            reached.add(page.evaluate("[...document.querySelectorAll('*')].indexOf(document.activeElement)"))
        assert len(reached) == wanted > 20


def test_dark_is_dark_and_paper_is_white(browser: Browser, file: Path) -> None:
    with visit(browser, file, color_scheme="dark") as page:
        ground = "getComputedStyle(document.body).backgroundColor"
        assert page.evaluate(ground) == "rgb(16, 19, 23)"
        page.emulate_media(media="print", color_scheme="dark")
        assert page.evaluate(ground) == "rgb(255, 255, 255)"
        expect(page.locator("#find")).to_be_hidden()


def test_nothing_that_was_said_runs_or_breaks_out(browser: Browser, tmp_path: Path) -> None:
    made = [said(text, 1) for text in HOSTILE.values()]
    pairs = tuple(pair for one in made for pair in one.worst)
    path = tmp_path / "hostile.html"
    path.write_text(render_html(replace(made[0], worst=pairs, sample=())), encoding="utf-8")
    with visit(browser, path, viewport=PHONE) as page:
        page.get_by_label("Search", exact=True).fill("<script>alert")
        assert shown(page)
        page.get_by_role("button", name="Show all").click()
        page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
        assert page.locator("h1").count() == 1
        assert len(shown(page)) == len(pairs)
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


def test_a_full_file_is_ready_within_two_seconds(browser: Browser, tmp_path: Path) -> None:
    made = document([exchange(n, "All is well. " * 40, "All was well. " * 40) for n in range(40)])
    path = tmp_path / "full.html"
    path.write_text(render_html(replace(made, sample=made.sample * 40)), encoding="utf-8")
    assert path.stat().st_size > 3_000_000
    took = []
    for _ in range(3):  # the machine may have other things to do
        with visit(browser, path) as page:
            took.append(page.evaluate(_READY))
    assert min(took) < 2_000


_READY = "performance.timing.domContentLoadedEventEnd - performance.timing.navigationStart"
