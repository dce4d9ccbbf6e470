"""Some rows of a table are what its columns hold at these rows, whenever each is read."""

from __future__ import annotations

import copy
import pickle
from dataclasses import fields, replace

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from numpy.typing import NDArray

from benchmarks.calibration.generator import TIMEOUT_S, Harm, Traffic, made
from reports.columns import Answers, Columns
from reports.judge import judge_columns
from reports.policy import Policy

HOUR = 3600.0


@pytest.fixture(scope="module")
def table() -> Columns:
    traffic = Traffic(hours=6, sessions=True, missing=0.05, incidents=2)
    return made(traffic, Harm(errors=0.01), np.random.SeedSequence(5))


def rows_of(table: Columns) -> dict[str, NDArray]:
    size = len(table)
    chance = np.random.default_rng(1)
    return {
        "some": chance.random(size) < 0.3,
        "a stretch": (np.arange(size) >= 100) & (np.arange(size) < 900),
        "one": np.arange(size) == 7,
        "none": np.zeros(size, dtype=np.bool_),
        "all": np.ones(size, dtype=np.bool_),
        "indices": chance.permutation(size)[:500],
    }


def copied(table: Columns | Answers, rows: NDArray) -> Columns | Answers:
    """All columns at once, with NumPy alone."""
    found = {}
    for field in fields(table):
        column = getattr(table, field.name)
        if isinstance(column, Answers):
            column = copied(column, rows)
        elif not isinstance(column, tuple):
            column = column[rows]
        found[field.name] = column
    return type(table)(**found)


def assert_same(one: Columns | Answers, other: Columns | Answers) -> None:
    for field in fields(one):
        left, right = getattr(one, field.name), getattr(other, field.name)
        if isinstance(left, Answers):
            assert_same(left, right)
        elif isinstance(left, tuple):
            assert left == right
        else:
            assert left.dtype == right.dtype
            assert_array_equal(left, right)


@pytest.mark.parametrize("kind", ["some", "a stretch", "one", "none", "all", "indices"])
def test_rows_are_the_same_as_copies_of_all_columns(table: Columns, kind: str) -> None:
    rows = rows_of(table)[kind]
    assert_same(table.take(rows), copied(table, rows))


def test_rows_of_rows(table: Columns) -> None:
    rows = rows_of(table)["some"]
    part = table.take(rows)
    again = np.flatnonzero(np.arange(len(part)) % 3 == 0)
    assert_same(part.take(again), copied(copied(table, rows), again))


def test_rows_are_values(table: Columns) -> None:
    """Before any column was read: they can be replaced, copied and sent to another process."""
    rows = rows_of(table)["some"]
    whole = copied(table, rows)
    for part in (
        replace(table.take(rows)),
        copy.copy(table.take(rows)),
        pickle.loads(pickle.dumps(table.take(rows))),
    ):
        assert_same(part, whole)
    assert not hasattr(table.take(rows), "colour")


def test_a_judgement_does_not_depend_on_how_rows_were_taken(table: Columns) -> None:
    for rows in rows_of(table).values():
        if rows.dtype == np.bool_:
            one, other = (
                judge_columns(part, Policy(), now=table.at[-1] + HOUR, final=True, timeout_s=TIMEOUT_S)
                for part in (table.take(rows), copied(table, rows))
            )
            assert repr(one) == repr(other)
