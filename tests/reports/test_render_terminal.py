"""The terminal screen: verdict first, one line a rule, readable at 80 columns and without colours."""

from __future__ import annotations

import re

import pytest

from reports.document import Document
from reports.judgement import Verdict
from reports.policy import Policy
from reports.render.terminal import render_terminal
from reports.render.text import columns
from tests.reports.builders import COUNTERS, alike, document, exchange, from_pairs, slow, wrong
from tests.reports.made import QUICK, REHEARSAL, same

_ANSI = re.compile(r"\x1b\[[0-9;]*m")


@pytest.fixture(scope="module", params=["go", "rollback", "slow", "hold"])
def made(request: pytest.FixtureRequest) -> Document:
    exchanges = {"go": alike, "rollback": wrong, "slow": slow, "hold": list}[request.param]()
    return document(exchanges, counters=COUNTERS)


def test_the_verdict_its_reason_and_what_to_do_come_first(made: Document) -> None:
    lines = render_terminal(made, width=120).splitlines()
    assert lines[0].split()[1] == made.verdict
    head = " ".join(" ".join(lines[:8]).split())
    assert made.reason in head and made.advice in head


def test_each_rule_is_one_line_with_mark_word_and_numbers(made: Document) -> None:
    text = render_terminal(made)
    folded = " ".join(text[: text.index("BESIDE")].split()) if "BESIDE" in text else " ".join(text.split())
    elsewhere = folded.partition("do not apply: ")[2].split(", ")
    for rule in made.rules:
        if not rule.applies:
            assert any(rule.rule == name.split(" ")[0] for name in elsewhere)
            continue
        if not rule.required and rule.verdict is Verdict.GO:
            assert f"{rule.rule} {rule.verdict}" in folded.partition("not required: ")[2]
            continue
        (line,) = (line for line in text.splitlines() if line[11:].startswith((rule.rule, f"({rule.rule})")))
        assert line[0] in "✓✗■" and line.split()[1] == rule.verdict
        assert line.split()[-1].replace(",", "") == str(rule.pairs)


def test_a_rule_that_is_not_kept_says_why(made: Document) -> None:
    text = " ".join(render_terminal(made).split())
    for rule in made.rules:
        assert rule.verdict is Verdict.GO or not rule.applies or " ".join(rule.reason.split()) in text


@pytest.mark.parametrize("width", [80, 100, 120])
def test_no_line_is_wider_than_the_screen(made: Document, width: int) -> None:
    assert max(columns(line) for line in render_terminal(made, width=width).splitlines()) <= width


def test_a_good_run_fits_one_screen() -> None:
    assert render_terminal(document(alike(), counters=COUNTERS)).count("\n") <= 48


def test_colours_change_nothing_but_colours(made: Document) -> None:
    bare, coloured = render_terminal(made), render_terminal(made, colour=True)
    assert "\x1b" not in bare and _ANSI.sub("", coloured) == bare and coloured != bare


def test_a_rehearsal_is_marked_and_nothing_else_is() -> None:
    production = Policy(minimum_pairs=300, minimum_span=10, warmup=0)
    assert "REHEARSAL" in render_terminal(document(alike(), REHEARSAL))
    assert "REHEARSAL" not in render_terminal(document(alike(), production))


def test_says_where_requests_went_and_what_was_not_paired() -> None:
    text = render_terminal(document(alike(30), counters=COUNTERS), width=120)
    assert "1,000 passed: 590 not sampled, 400 mirrored, 10 lean on server state" in text
    assert "30 dispatched: 30 scored" in text
    assert "370 mirrored requests not in the store" in text


def test_failed_checks_are_listed_with_their_code() -> None:
    text = render_terminal(from_pairs(same(5)))
    assert "FAILED CHECKS" in text and "✗ too_few_pairs" in text and "295 more needed" in text


def test_both_sides_of_the_worst_pairs_are_quoted_in_their_place() -> None:
    text = render_terminal(document([exchange(0, "OLD 1", "CAND 2")], QUICK))
    baseline, candidate = (line for line in text.splitlines() if "[ok" in line)
    assert "OLD 1" in baseline and "CAND 2" in candidate
    assert baseline.split()[0] == "baseline" and candidate.split()[0] == "candidate"
    assert "asked      How is it?" in text


def test_a_run_in_progress_says_when_it_was_judged() -> None:
    text = render_terminal(from_pairs(same(5), ended_at=None, status="running"))
    assert "running, judged at 2023-11-14T23:13:20Z" in " ".join(text.split())


def test_notes_are_shown() -> None:
    assert "Note: no model here" in render_terminal(from_pairs([], notes=("no model here",)))
