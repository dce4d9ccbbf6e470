"""Measured pairs from anywhere: the same judgement as of the pairs themselves, and every bad value refused where it stands."""

from __future__ import annotations

import itertools
import random
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replay.exchange import Outcome
from reports.cells import NAMES, InvalidNumber, Unreadable, check_names, of_records, of_table, of_words
from reports.columns import Columns
from reports.judge import judge_columns
from reports.judgement import Judgement, Verdict
from reports.measured import MOST_LABELS, Measurements, unjudged
from reports.policy import Policy
from tests.reports.made import QUICK, REHEARSAL, START, run, verdict
from tests.reports.records import records

GOOD = {
    "id": "a",
    "at": START,
    "baseline": {"outcome": "ok", "e2e_s": 0.5},
    "candidate": {"outcome": "ok", "e2e_s": 0.5},
}


def read(rows: list[Any], *, chunk: int = 1_000) -> Columns:
    found = Measurements()
    for first in range(0, len(rows), chunk):
        lines = range(first + 1, min(first + chunk, len(rows)) + 1)
        found.add(of_records(rows[first : first + chunk], lines), lines)
    return found.columns()


def judged(rows: list[Any], policy: Policy = REHEARSAL, *, chunk: int = 1_000) -> Judgement:
    return judge_columns(read(rows, chunk=chunk), policy, now=START + 10**7, final=True)


def refused(*rows: Any) -> Unreadable:
    with pytest.raises(Unreadable) as caught:
        read(list(rows))
    assert "\n" not in str(caught.value)
    return caught.value


@pytest.mark.parametrize("harm", [{}, {"errors": 0.1}, {"slow": 0.2}, {"wrong": 0.2}])
def test_the_judgement_is_that_of_the_pairs(harm: dict[str, float]) -> None:
    pairs = run(600, 1, **harm)
    assert asdict(judged(records(pairs))) == asdict(verdict(pairs))


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 1_000), chunk=st.integers(1, 400))
def test_order_and_chunks_do_not_matter(seed: int, chunk: int) -> None:
    pairs = [replace(pair, at=float(round(pair.at))) for pair in run(300, 3, errors=0.1)]
    shuffled = records(pairs)
    random.Random(seed).shuffle(shuffled)
    assert asdict(judged(shuffled, QUICK, chunk=chunk)) == asdict(verdict(pairs, QUICK))


def test_equal_moments_are_in_order_of_their_ids() -> None:
    rows = [
        GOOD | {"id": name, "baseline": {"outcome": "ok", "e2e_s": len(name)}} for name in ("b", "a€", "a")
    ]
    assert read(rows).baseline.e2e.tolist() == [1, 2, 1]
    assert [*read(rows[:2]).baseline.e2e] == [2, 1]


def test_an_arm_of_which_nothing_is_said_was_not_sent() -> None:
    for arm in ({}, {"candidate": None}, {"candidate": {}}, {"candidate": {"outcome": None}}):
        rows = [{key: GOOD[key] for key in ("id", "at", "baseline")} | arm]
        table = read(rows)
        assert table.candidate.having(Outcome.NOT_SENT).all() and table.candidate.missing.all()
        assert judged(rows).verdict is Verdict.HOLD


@pytest.mark.parametrize("outcome", list(Outcome))
def test_every_outcome_is_known(outcome: Outcome) -> None:
    table = read([GOOD | {"candidate": {"outcome": outcome.value}}])
    assert table.candidate.having(outcome).all()


def test_nothing_is_hold() -> None:
    found = judged([])
    assert (found.verdict, found.code) == (Verdict.HOLD, "no_data")


def test_a_pair_with_a_ttft_was_streamed() -> None:
    rows = [
        GOOD,
        GOOD | {"id": "b", "baseline": {"outcome": "ok", "e2e_s": 1, "ttft_s": 0.1, "output_tokens": 12}},
        GOOD | {"id": "c", "candidate": {"outcome": "ok", "e2e_s": 1, "ttft_s": 0.1}},
    ]
    assert read(rows).streamed.tolist() == [False, True, True]
    assert read(rows).baseline.tokens[1] == 12


def test_sessions_are_texts_or_numbers_and_a_pair_without_one_is_its_own() -> None:
    rows = [GOOD | {"id": n, "at": n, "session": s} for n, s in enumerate(["x", None, 7, "x", "7", ""])]
    session = read(rows).session
    assert session[0] == session[3] != session[2] == session[4]
    assert (session[[1, 5]] < 0).all()


def test_labels_become_slices_also_where_they_begin_late() -> None:
    rows = [
        GOOD,
        GOOD | {"id": "b", "at": START + 1, "labels": {"route": "/v1/chat"}},
        GOOD | {"id": "c", "at": START + 2, "labels": {"turn": 3, "route": None}},
        GOOD | {"id": "d", "at": START + 3, "labels": None},
    ]
    for chunk in (1, 2, 4):
        table = read(rows, chunk=chunk)
        assert table.dimensions == (("route", ("/v1/chat",)), ("turn", ("3",)))
        assert table.slices.tolist() == [[-1, -1], [0, -1], [-1, 0], [-1, -1]]


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"at": None}, "at is missing"),
        ({"at": "1700000000"}, "at is '1700000000'; it must be a number of seconds"),
        ({"at": True}, "at is True; it must be a number"),
        ({"at": 1_700_000_000_000}, "looks like milliseconds"),
        ({"id": None}, "id is missing"),
        ({"id": ""}, "id is missing"),
        ({"id": 1.5}, "id is 1.5; it must be a text"),
        ({"id": True}, "id is True"),
        ({"session": ["s"]}, "session is ['s']"),
        ({"candidate": "ok"}, "candidate is 'ok'; it must be an object"),
        ({"candidate": [1]}, "candidate is [1]"),
        ({"candidate": {"outcome": "OK"}}, "candidate.outcome is 'OK'; it must be one of ok, http_error"),
        ({"candidate": {"outcome": 200}}, "candidate.outcome is 200"),
        ({"candidate": {"outcome": ["ok"]}}, "candidate.outcome is ['ok']"),
        ({"candidate": {"e2e_s": 0.5}}, "candidate.outcome is missing"),
        (
            {"candidate": {"outcome": "ok", "e2e_s": "0.5"}},
            "candidate.e2e_s is '0.5'; it must be a number of",
        ),
        ({"candidate": {"outcome": "ok", "e2e_s": True}}, "candidate.e2e_s is True"),
        (
            {"candidate": {"outcome": "ok", "e2e_ms": 5}},
            "no such key 'candidate.e2e_ms'; did you mean e2e_s?",
        ),
        ({"candidat": {}}, "no such key 'candidat'; did you mean candidate?"),
        ({"differs": 1}, "differs is 1; it must be true or false"),
        ({"repeat_differs": "no"}, "repeat_differs is 'no'"),
        ({"labels": ["route"]}, "labels is ['route']; it must be an object"),
        ({"labels": {"route": 1.5}}, "labels.route is 1.5; it must be a text"),
        ({"labels": {"route": True}}, "labels.route is True"),
    ],
)
def test_what_is_no_pair_is_refused_with_its_line(change: dict[str, Any], what: str) -> None:
    error = refused(GOOD, GOOD | {"id": "b"} | change)
    assert error.line == 2 and what in error.what and not isinstance(error, InvalidNumber)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf"), -1, -0.001])
@pytest.mark.parametrize("place", ["at", *(n for n in NAMES if n.endswith(("_s", "output_tokens")))])
def test_a_number_that_nothing_can_have_measured_is_told_apart(place: str, bad: float) -> None:
    arm, _, key = place.rpartition(".")
    change = {key: bad} if not arm else {arm: {"outcome": "ok", key: bad}}
    error = refused(GOOD, GOOD | {"id": "b"}, GOOD | {"id": "c"} | change)
    assert isinstance(error, InvalidNumber) and (error.line, error.code) == (3, "invalid_number")
    assert error.what == f"{place} is {bad!r}; a number must be finite and not negative"


@pytest.mark.parametrize("row", [1, None, [], "a", [GOOD]])
def test_a_line_that_is_no_object_is_refused(row: Any) -> None:
    assert "is no JSON object" in refused(GOOD, row).what


@pytest.mark.parametrize("chunk", [1, 2, 5])
def test_an_id_counts_once(chunk: int) -> None:
    rows = [GOOD | {"id": name} for name in ("a", "b", 7, "c", "7")]
    with pytest.raises(Unreadable, match="id '7' is that of line 3 too") as caught:
        read(rows, chunk=chunk)
    assert caught.value.line == 5


def test_labels_are_few() -> None:
    rows = [GOOD | {"labels": {f"l{n}": "x" for n in range(MOST_LABELS + 1)}}]
    assert "a label is a kind of request" in refused(*rows).what


def test_what_is_shown_of_a_value_is_short_and_harmless() -> None:
    assert len(refused(GOOD | {"at": "\x1b[31m" + "x" * 10_000}).what) < 200
    assert "\x1b" not in refused(GOOD | {"at": "\x1b[31m"}).what


def test_words_of_a_table_are_read_by_their_column() -> None:
    names = ["id", "at", "differs", "baseline.outcome", "baseline.e2e_s", "labels.route"]
    found = of_words(names, [["1", "1.5e3", "TRUE", "ok", " 2 ", "/v1"], ["", "", "", "", "", ""]])
    assert found == {
        "id": ["1", None],
        "at": [1500.0, None],
        "differs": [True, None],
        "baseline.outcome": ["ok", None],
        "baseline.e2e_s": [2.0, None],
        "labels.route": ["/v1", None],
    }
    assert of_words(["at"], []) == {"at": []}


@pytest.mark.parametrize("word", ["1_000", "fast", "0x10", "1,5"])
def test_a_word_that_is_no_number_is_refused_with_its_line(word: str) -> None:
    cells = of_words(["id", "at"], [["a", "1"], ["b", word]])
    with pytest.raises(Unreadable, match="at is ") as caught:
        Measurements().add(cells, [2, 3])
    assert caught.value.line == 3


@pytest.mark.parametrize("word", ["nan", "NaN", "inf", "-Infinity", "-1", "1e999"])
def test_a_word_for_no_measurement_is_an_invalid_number(word: str) -> None:
    with pytest.raises(InvalidNumber):
        Measurements().add(of_words(["id", "at"], [["a", word]]), [2])


@pytest.mark.parametrize(
    ("names", "what"),
    [
        (["id", "at", "baseline.e2e"], "no such column 'baseline.e2e'; did you mean baseline.e2e_s?"),
        (["id", "id"], "the column 'id' is given twice"),
        (["labels."], "no such column 'labels.'"),
    ],
)
def test_columns_that_are_unknown_or_named_twice_are_refused(names: list[str], what: str) -> None:
    with pytest.raises(Unreadable) as caught:
        check_names(names)
    assert what in caught.value.what


def test_a_table_may_hold_objects_beside_dotted_names_but_not_both_for_one() -> None:
    table = {"id": ["a"], "at": [1.0], "baseline": [{"outcome": "ok"}], "candidate.outcome": ["ok"]}
    assert of_table(table, [1])["baseline.outcome"] == ["ok"]
    with pytest.raises(Unreadable, match="given twice"):
        of_table(table | {"baseline.outcome": ["ok"]}, [1])


def test_what_was_not_read_is_hold_with_its_code() -> None:
    found = unjudged("invalid_number", "pairs.jsonl:3: at is nan")
    assert found.verdict is Verdict.HOLD and found.code == "invalid_number" and not found.rules
    assert [check.passed for check in found.checks] == [False]


def test_a_million_pairs_are_arrays() -> None:
    """Kept of each pair: its numbers, and the texts that are too long to stand in their place."""
    found = Measurements()
    for first in range(0, 20_000, 5_000):
        lines = range(first + 1, first + 5_001)
        found.add(of_records([GOOD | {"id": f"{n:036d}"} for n in lines], lines), lines)
    kept = sum(piece.nbytes for pieces in found._pieces.values() for piece in pieces if piece.strides != (0,))
    assert kept / found.size < 80
    assert isinstance(found.columns().at, np.ndarray)
    assert list(itertools.islice(found._labels, 1)) == []


@pytest.mark.parametrize("place", [n for n in NAMES if n.endswith(("_s", "output_tokens"))])
def test_nothing_takes_thousands_of_years(place: str) -> None:
    arm, _, key = place.rpartition(".")
    error = refused(GOOD, GOOD | {"id": "b", arm: {"outcome": "ok", key: 1e308}})
    assert isinstance(error, InvalidNumber) and error.line == 2
    assert error.what == f"{place} is 1e+308; a number must be below 1e11"
