"""The live page in a real browser, in front of a real gateway with traffic: it shows, it stays, it stops the copies."""

from __future__ import annotations

import json
import re
import shutil
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, Route, expect, sync_playwright

from tests.serving import free_port
from tests.shadowing import MODEL, Shadow, shadowing, simulator

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
pytestmark = [
    pytest.mark.timeout(120),
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine"),
]
POLICY = "policy: {rehearsal: true, minimum_span: 1s, minimum_pairs: 10, warmup: 0s}\n"
LATER = 60_000
"""Milliseconds in which a first judgement comes on a busy machine."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        yield playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])


@pytest.fixture
def shadow(tmp_path: Path) -> Iterator[Shadow]:
    with (
        simulator() as one,
        simulator() as other,
        shadowing(tmp_path, baseline=one, candidate=other, policy=POLICY) as running,
    ):
        ask(running, 0, 30)
        yield running


@pytest.fixture
def page(browser: Browser, shadow: Shadow) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page, wrong = context.new_page(), list[str]()
    page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("request", lambda asked: None if asked.url.startswith(shadow.admin) else wrong.append(asked.url))
    page.goto(shadow.admin)
    yield page
    context.close()
    # A report that is not there yet is a 404 that the browser notes by itself.
    assert not [one for one in wrong if "404" not in one], wrong


def ask(shadow: Shadow, first: int, count: int) -> None:
    for n in range(first, first + count):
        body = {"model": MODEL, "messages": [{"role": "user", "content": f"When is high tide at pier {n}?"}]}
        request = urllib.request.Request(
            f"{shadow.url}/v1/chat/completions",
            json.dumps(body).encode(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=10) as answer:
            answer.read()


def test_it_shows_how_the_gateway_stands_and_the_report_in_its_place(page: Page, shadow: Shadow) -> None:
    expect(page.locator("#passed")).to_have_text("30")
    expect(page.locator("#mirroring")).to_have_text("on, 100 %")
    report = page.frame_locator("iframe:not(.next)")
    expect(report.locator(".verdict .word").first).to_be_visible(timeout=LATER)
    expect(page.locator("#judged")).to_contain_text("s ago")
    expect(page.locator("#candidate")).to_have_text("takes copies")
    expect(page.locator("#withheld")).to_have_text("0")
    scored = page.locator("#scored").inner_text()
    expect(report.locator("dt", has_text="Scored pairs").locator("+ dd")).to_have_text(scored)
    expect(page.locator("#word")).to_have_text("HOLD")
    ask(shadow, 30, 5)
    expect(page.locator("#passed")).to_have_text("35")
    found = Axe().run(page)
    assert not [one["id"] for one in found.response["violations"] if one["impact"] in ("serious", "critical")]


def test_the_reader_stays_where_he_was_when_a_newer_report_comes(page: Page, shadow: Shadow) -> None:
    report = page.frame_locator("iframe:not(.next)")
    expect(report.locator(".verdict .word").first).to_be_visible(timeout=LATER)
    first = page.locator("iframe:not(.next)").get_attribute("src")
    page.frames[1].evaluate("scrollTo(0, 700)")
    ask(shadow, 40, 5)
    expect(page.locator("iframe:not(.next)")).not_to_have_attribute("src", first or "", timeout=LATER)
    assert page.frames[-1].evaluate("scrollY") == 700
    assert page.locator("iframe").count() == 1


def test_the_switch_asks_first(page: Page, shadow: Shadow) -> None:
    switch = page.get_by_role("button", name="Stop mirroring")
    switch.click()
    page.get_by_role("button", name="No").click()
    expect(page.locator("#mirroring")).to_have_text("on, 100 %")
    switch.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator("#mirroring")).to_have_text("stopped")
    expect(page.locator("#candidate")).to_have_text("gets no copies: mirroring is stopped")
    ask(shadow, 50, 3)
    with urllib.request.urlopen(f"{shadow.admin}/status", timeout=5) as answer:
        status = json.load(answer)
    assert status["mirroring"] is False and status["counters"]["paused"] == 3
    page.get_by_role("button", name="Start mirroring").click()
    page.get_by_role("button", name="Yes").click()
    expect(page.locator("#mirroring")).to_have_text("on, 100 %")


def test_it_says_which_copies_are_withheld_and_why(browser: Browser, tmp_path: Path) -> None:
    away = f"http://127.0.0.1:{free_port()}"
    with simulator() as one, shadowing(tmp_path, baseline=one, candidate=away, policy=POLICY) as shadow:
        ask(shadow, 0, 40)
        page = browser.new_page()
        page.goto(shadow.admin)
        expect(page.locator("#candidate")).to_have_text(
            "gets no copies: it failed too often (breaker open)", timeout=10_000
        )
        ask(shadow, 40, 7)
        expect(page.locator("#withheld")).to_contain_text(
            re.compile(r"^\d+: breaker open \d+$"), timeout=10_000
        )
        page.close()
    assert re.search(
        r"passed 47 · mirrored 47 · withheld (\d+) \(breaker open \1\)\n",
        (tmp_path / "shadow.log").read_text(),
    )


def test_the_switch_shows_what_the_gateway_confirmed_without_asking_again(page: Page, shadow: Shadow) -> None:
    """Also when an answer that is older comes later."""
    expect(page.locator("#mirroring")).to_have_text("on, 100 %")
    held: list[Route] = []
    page.route("**/status", lambda route: held.append(route))  # noqa: PLW0108 - a builtin takes no attribute
    with page.expect_request("**/status"):
        pass
    page.wait_for_timeout(100)
    before = held[0].fetch()
    page.get_by_role("button", name="Stop mirroring").click()
    page.get_by_role("button", name="Yes").click()
    expect(page.locator("#mirroring")).to_have_text("stopped", timeout=1_000)
    expect(page.get_by_role("button", name="Start mirroring")).to_be_enabled()
    held[0].fulfill(response=before)
    page.wait_for_timeout(500)
    expect(page.locator("#mirroring")).to_have_text("stopped")
    page.unroute("**/status")


@pytest.mark.parametrize("width", [360, 1440])
def test_it_fits_a_phone_and_a_desk(page: Page, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 780})
    expect(page.locator("#mirroring")).to_have_text("on, 100 %")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    for name in ("#word", "#switch"):
        box = page.locator(name).bounding_box()
        assert box is not None and box["y"] + box["height"] <= 780
