"""One pair on a screen: whatever two models say, it stays within its columns and cannot act."""

from __future__ import annotations

import json
import unicodedata
from dataclasses import replace

import pytest

from replay.exchange import Exchange
from reports.render.json import indented
from reports.render.listed import render_terminal as listed
from reports.render.pair import as_json, render_terminal
from reports.render.text import columns
from reports.tabular import findings_csv, pairs_csv
from tests.reports.builders import calling, exchange, item
from tests.reports.hostile import HOSTILE

CASES = [
    (name, made)
    for name, text in HOSTILE.items()
    for made in (exchange(0, "All is well.", text, prompt=text),)
]


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("one", [one for _, one in CASES], ids=[name for name, _ in CASES])
def test_a_hostile_answer_stays_within_its_columns(one: Exchange, width: int) -> None:
    screens = (
        render_terminal(item(one), one, "run", width=width),
        listed([item(one)], width=width),
    )
    for screen in screens:
        assert all(columns(line) <= width for line in screen.splitlines())
        assert not any(unicodedata.category(char) in ("Cc", "Cs") for char in screen.replace("\n", ""))
        assert "\u202e" not in screen and "\ufeff" not in screen
        # No line begins with what a model said: a runner would obey a line such as "::error::".
        assert not any(line.lstrip().startswith("::") for line in screen.splitlines())


@pytest.mark.parametrize("one", [one for _, one in CASES], ids=[name for name, _ in CASES])
def test_programs_can_read_a_hostile_pair(one: Exchange) -> None:
    text = indented(as_json(item(one), one, "run"))
    assert json.loads(text)["id"] == "r00000" and "\x1b" not in text
    tables = pairs_csv([item(one)], ["route"]) + findings_csv([item(one)])
    assert not any(unicodedata.category(char) in ("Cc", "Cs") for char in tables.replace("\n", ""))


def test_a_spreadsheet_runs_no_cell() -> None:
    one = item(exchange(0, identity='=HYPERLINK("http://evil")'))
    assert pairs_csv([one], []).splitlines()[1].startswith("\"'=HYPERLINK")


def test_the_words_that_differ_are_marked_with_and_without_colours() -> None:
    one = exchange(0, "The tide is high at noon today.", "The tide is low at noon today.")
    plain = render_terminal(item(one), one, "run", width=100)
    assert "is [-high-] at noon" in plain and "is {+low+} at noon" in plain
    painted = render_terminal(item(one), one, "run", width=100, colour=True)
    assert "\x1b[31m[-high-]\x1b[0m" in painted


def test_data_is_a_tree_of_what_changed() -> None:
    one = calling(0, '{"when": {"day": 1, "hour": 2}, "a": 1}', '{"when": {"day": 1, "hour": 3}, "b": 1}')
    lines = render_terminal(item(one), one, "run", width=100).splitlines()
    tree = {
        line.split()[1]: line.split()[0]
        for line in lines[lines.index(next(x for x in lines if "DATA" in x)) :][:8]
        if len(line.split()) > 1
    }
    assert tree["hour"] == "~" and tree["day"] == "=" and tree["a"] == "-" and tree["b"] == "+"


def test_the_strip_shows_when_chunks_came() -> None:
    one = exchange(0, slower_s=0.2)
    lines = render_terminal(item(one), one, "run", width=80).splitlines()
    strips = [
        line for line in lines if line.startswith(("  baseline  ", "  candidate ")) and "\u00b7" in line
    ]
    assert len(strips) == 2 and len(strips[0].rstrip()) < len(strips[1].rstrip()) <= 80
    assert all(line.count("\u2588") == 3 for line in strips)


def test_a_pair_that_cannot_be_compared_says_why() -> None:
    one = exchange(0)
    assert one.candidate is not None
    one = replace(one, candidate=replace(one.candidate, reason="not_comparable: redacted"))
    assert "  not_comparable: redacted" in render_terminal(item(one), one, "run").splitlines()
