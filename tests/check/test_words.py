"""The pure parts: a server's words made fit to show, names that may be meant, two sides side by side."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrate.preflight.beside import beside
from migrate.preflight.keys import key_line
from migrate.preflight.lines import Line, Result, clean, failed, ok, unknown, unlike
from migrate.preflight.naming import closest
from migrate.presets import presets

KEY = "sk-3f9Lq7Tz0WmVbX2nR8sKdJ5y"


@given(before=st.text(), after=st.text())
def test_whatever_a_server_says_is_one_clean_line_without_a_key(before: str, after: str) -> None:
    shown = clean(f"{before} {KEY} {after}", KEY)
    assert KEY not in shown and len(shown) <= 160
    assert all(one.isprintable() for one in shown)


@given(value=st.text(max_size=60), preset=st.none() | st.sampled_from(sorted(presets())))
def test_no_key_is_ever_repeated(value: str, preset: str | None) -> None:
    line = key_line("CANDIDATE_KEY", value + KEY, preset, presets())
    assert KEY not in line.detail + line.change


@pytest.mark.parametrize(
    ("model", "listed", "near"),
    [
        ("harbor-7b", ["pier-1b", "org/Harbor-7B-Instruct"], ["org/Harbor-7B-Instruct"]),
        ("meta-llama/Llama-3.1-8B", ["llama3.1:8b", "qwen3:8b"], ["llama3.1:8b"]),
        ("gpt-4o-mini", ["gpt-4o", "gpt-4o-mini-2024-07-18"], ["gpt-4o-mini-2024-07-18", "gpt-4o"]),
        ("harbor-7b", ["something-else"], ["something-else"]),
        ("harbor-7b", ["quay", "zzz"], []),
    ],
)
def test_the_name_that_may_be_meant_comes_first(model: str, listed: list[str], near: list[str]) -> None:
    assert closest(model, listed) == near


@pytest.mark.parametrize(
    ("baseline", "candidate", "result"),
    [
        (ok("tools", "", "served"), ok("tools", "", "served"), Result.OK),
        (unlike("tools", "", "", "refused"), unlike("tools", "", "", "refused"), Result.OK),
        (ok("tools", "", "served"), unlike("tools", "", "", "refused"), Result.DIFFERS),
        (ok("tools", "", "served"), unknown("tools", ""), Result.NOT_CHECKED),
        (ok("tools", "", "served"), failed("tools", "", ""), Result.FAIL),
        (ok("context", "", 4_096), ok("context", "", 8_192), Result.OK),
        (ok("context", "", 8_192), ok("context", "", 4_096), Result.DIFFERS),
        (ok("context", "", 8_192), unknown("context", ""), Result.NOT_CHECKED),
    ],
)
def test_two_sides(baseline: Line, candidate: Line, result: Result) -> None:
    (row,) = beside({"baseline": (baseline,), "candidate": (candidate,)})
    assert row.result is result


def test_one_backend_alone_is_compared_with_nothing() -> None:
    (row,) = beside({"baseline": (ok("context", "", 8_192),)})
    assert row.result is Result.OK and row.changes == ()
