"""Comparisons and bounds."""

from __future__ import annotations

import pytest

from reports.compare.guards.comparisons import guard_comparisons
from reports.compare.normal import normalise


def differs(old: str, new: str) -> bool:
    finding = guard_comparisons(normalise(old), normalise(new))
    assert (finding is None) == (guard_comparisons(normalise(new), normalise(old)) is None)
    return finding is not None


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("It needs at least 5 people", "It needs more than 5 people"),
        ("It needs at least five people", "It needs at most 5 people"),
        ("if n > 5 then stop", "if n >= 5 then stop"),
        ("if n ≤ 5 then stop", "if n < 5 then stop"),
        ("Take it before dinner", "Take it after dinner"),
        ("Ann is older than Bob", "Ann is younger than Bob"),
        ("It has 5 more than Bob", "It has 5 less than Bob"),
        ("Bring 5 or more bags", "Bring 5 or fewer bags"),
        ("It holds up to 5 litres", "It holds over 5 litres"),
        ("It costs exactly $5", "It costs at least $5"),
        ("It stays above the water", "It stays below the water"),
        ("no more than 5 people", "more than 5 people"),
        ("greater than or equal to 5", "greater than 5"),
    ],
)
def test_another_comparison_is_blocked(old: str, new: str) -> None:
    assert differs(old, new)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("It needs at least 5 people", "It needs no fewer than five people"),
        ("It needs at most 5 people", "It needs no more than 5 people"),
        ("It holds up to 5 litres", "It holds a maximum of 5 litres"),
        ("if n >= 5 then stop", "stop if n is greater than or equal to 5"),
        ("if n ≥ 5 then stop", "if n >= 5 then stop"),
        ("more than 5 people came", "over 5 people came"),
        ("Bring 5 or more bags", "Bring at least 5 bags"),
        ("Take it before dinner", "Take it prior to dinner"),
        ("After lunch, call me", "Before you call me, have lunch"),
        ("Ann is older than Bob", "Bob is younger than Ann"),
        ("not before Monday", "after Monday"),
        ("It takes more time than money", "It takes time"),
        ("<b>bold</b> -> arrow => and >>> x", "bold, arrow and x"),
    ],
)
def test_the_same_in_other_words_is_not(old: str, new: str) -> None:
    assert not differs(old, new)
