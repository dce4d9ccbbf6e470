"""Frames have the columns and dtypes that are promised, NA for what did not happen, and rows for every pair."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import pytest

from reports import compare_texts
from reports.frames import FINDINGS, PAIRS, findings, pairs
from tests.reports.builders import exchange, item
from tests.reports.made import START

ITEMS = [
    item(exchange(0)),
    item(exchange(1, candidate="All is lost, sadly.")),
    item(exchange(2, failed="boom", repeat=False)),
]


def test_the_columns_and_their_dtypes_are_those_stated_also_without_rows() -> None:
    for frame in (pairs(ITEMS), pairs([])):
        assert list(frame.columns)[: len(PAIRS)] == list(PAIRS)
        for name, (dtype, _) in PAIRS.items():
            assert frame[name].dtype == pd.Series([], dtype=dtype).dtype, name
    for rows in (findings(one.comparison for one in ITEMS if one.comparison), findings([])):
        assert list(rows.columns) == list(FINDINGS) and {str(kind) for kind in rows.dtypes} == {"string"}


def test_what_did_not_happen_is_na_and_never_nought() -> None:
    frame = pairs(ITEMS).set_index("id")
    failed = frame.loc["r00002"]
    assert failed["candidate_outcome"] == "http_error" and failed["candidate_error"] == "server_error"
    for name in (
        "candidate_ttft_s",
        "candidate_output_tokens",
        "repeat_outcome",
        "repeat_e2e_s",
        "repeat_differs",
    ):
        assert failed[name] is pd.NA, name
    assert frame["candidate_e2e_s"].isna().sum() == 0 and frame["baseline_cached_share"].isna().all()


def test_values_are_those_of_the_pairs() -> None:
    frame = pairs(ITEMS)
    assert frame["id"].tolist() == ["r00000", "r00001", "r00002"]
    assert frame["at"][1] == pd.Timestamp(START + 0.1, unit="s", tz="UTC").round("us")
    assert frame["severity"].tolist() == ["EQUAL", "BLOCK", "BLOCK"]
    assert frame["differs"].tolist() == [False, True, ITEMS[2].pair.differs]
    assert frame["baseline_e2e_s"].tolist() == [one.pair.baseline.e2e_s for one in ITEMS]
    for name in ITEMS[0].pair.labels:
        assert frame[f"label_{name}"].tolist() == [one.pair.labels[name] for one in ITEMS]


def test_findings_join_their_pairs() -> None:
    joined = findings(one.comparison for one in ITEMS if one.comparison).merge(pairs(ITEMS), on="id")
    assert set(joined[joined["severity_x"] == "BLOCK"]["id"]) == {"r00001", "r00002"}


def test_pairs_from_anywhere_have_findings_too() -> None:
    frame = findings([compare_texts("It is open until five today.", "It is not open until five today.")])
    assert frame["category"].tolist() == ["text.negation"]


def test_texts_that_no_column_takes_are_made_to_fit() -> None:
    odd = replace(ITEMS[0], pair=replace(ITEMS[0].pair, session="\ud800", labels={"place": "/\udfff"}))
    frame = pairs([odd])
    assert frame["session"][0] == "?" and frame["label_place"][0] == "/?"


def test_a_label_that_a_pair_lacks_is_na() -> None:
    other = replace(ITEMS[0], pair=replace(ITEMS[0].pair, labels={"odd": "m"}))
    frame = pairs([ITEMS[0], other])
    assert frame["label_odd"][1] == "m" and frame["label_odd"].isna().tolist() == [True, False]


@pytest.mark.parametrize("name", list(PAIRS))
def test_names_carry_their_unit(name: str) -> None:
    dtype = PAIRS[name][0]
    assert dtype != "Float64" or name.endswith(("_s", "_share", "similarity"))
