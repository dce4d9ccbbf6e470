"""Tool calls and JSON of both sides as one tree."""

from __future__ import annotations

import json

import pytest

from replay.exchange import Arm
from reports.trees import MOST_ROWS, tree
from tests.reports.said import calls, choice, seen


def rows(baseline: object, candidate: object) -> list[tuple[int, str, str]]:
    found = tree(seen(baseline), seen(candidate, arm=Arm.CANDIDATE))  # type: ignore[arg-type]
    return [(row.depth, row.name, row.mark) for row in found]


def test_a_tree_names_the_place_that_differs_and_says_the_rest_in_one_row_each() -> None:
    old, new = '{"a": {"b": [1, 2], "c": 1.0}, "d": "x"}', '{"a": {"b": [1, 3], "c": 1}, "d": "x"}'
    assert rows(old, new) == [
        (0, "answer", "inside"),
        (1, "a", "inside"),
        (2, "b", "inside"),
        (3, "[0]", "same"),
        (3, "[1]", "changed"),
        (2, "c", "same"),
        (1, "d", "same"),
    ]


def test_what_one_side_alone_has_is_added_or_removed() -> None:
    assert rows('{"a": 1}', '```json\n{"b": 1}\n```') == [
        (0, "answer", "inside"),
        (1, "a", "removed"),
        (1, "b", "added"),
    ]
    assert rows(calls(("f", "{}"), ("f", '{"x": 1}')), calls(("f", "{}"))) == [
        (0, "f()", "same"),
        (0, "f() 2", "removed"),
    ]


def test_arguments_that_are_no_json_are_shown_as_they_came() -> None:
    (row,) = tree(seen(calls(("f", '{"x": '))), seen(calls(("f", '{"x": 1}'))))
    assert (row.mark, row.baseline, row.candidate) == ("changed", '"{\\"x\\": "', '{"x": 1}')


@pytest.mark.parametrize("text", ["plain words", "[" * 100_000, '{"a":' * 5_000, "42", "", '{"a": NaN}'])
def test_what_is_no_data_has_no_tree(text: str) -> None:
    assert rows(text, text) == []
    assert rows(text, '{"a": 1}') == []
    assert tree(None, seen(choice(text))) == ()


def test_a_tree_is_as_long_as_it_may_be() -> None:
    many = json.dumps({str(n): n for n in range(1_000)})
    assert len(rows(many, many.replace(": 999", ": 0"))) == MOST_ROWS
