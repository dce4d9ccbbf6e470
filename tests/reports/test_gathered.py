"""A run put together from sheets is the run: nothing depends on where it was cut, or on its having been kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from reports.causes import causes
from reports.columns import Answers, Columns, columns
from reports.gathered import Gathered, gather, of_items
from reports.judgement import Measured, Pair, Traits
from reports.picking import worth_a_look
from reports.policy import Policy
from reports.sheets import packed, sheet, unpacked
from reports.shown import Item, worst_first
from tests.reports.builders import exchange, item
from tests.reports.made import MISSING, TIMEOUT, WITHHELD, answer, failure

WORDS = ("", "en", "de", "fr", "es", "it", "nl", "pl", "pt", "sv", "da", "\ud800")
TEXTS = (
    "The pier is open.",
    "The pier is shut.",
    "The pier, I think, is open today.",
    "",
    "Five boats, and 7 crew.",
)

traits = st.builds(
    Traits,
    characters=st.integers(0, 99),
    repetitive=st.booleans(),
    truncated=st.booleans(),
    refuses=st.booleans(),
    calls_tools=st.booleans(),
    valid_json=st.none() | st.booleans(),
    language=st.none() | st.sampled_from(WORDS[1:]),
    answer=st.sampled_from("abc"),
)
measured = st.sampled_from([MISSING, TIMEOUT, WITHHELD, failure()]) | st.builds(
    answer,
    st.integers(1, 10**6).map(lambda tick: tick / 1e6),
    traits=st.none() | traits,
    version=st.none() | st.sampled_from(WORDS),
    itl_s=st.lists(st.integers(0, 999).map(lambda tick: tick / 1e6), max_size=3).map(tuple),
    prompt_tokens=st.none() | st.integers(0, 3),
    attempts=st.integers(1, 2),
)
pairs = st.builds(
    Pair,
    id=st.just(""),
    at=st.integers(0, 9).map(float),
    baseline=measured,
    candidate=measured,
    repeat=st.none() | measured,
    differs=st.none() | st.booleans(),
    repeat_differs=st.none() | st.booleans(),
    differs_by=st.sampled_from([(), ("text",), ("tools", "text")]),
    not_comparable=st.none() | st.just("not_comparable"),
    session=st.none() | st.sampled_from(WORDS),
    streamed=st.booleans(),
    prompt=st.sampled_from(("", "p", "q")),
    system_prompt=st.booleans(),
    labels=st.dictionaries(st.sampled_from(("team", "route", "model")), st.sampled_from(WORDS)),
)


def named(some: Sequence[Pair]) -> list[Pair]:
    """In time order, as a store has them."""
    return sorted(
        (replace(one, id=f"{n:03}") for n, one in enumerate(some)), key=lambda one: (one.at, one.id)
    )


def cut(items: Sequence[Item], size: int) -> Gathered:
    """From sheets of so many items, each kept and read again."""
    return gather(unpacked(packed(sheet(items[at : at + size]))) for at in range(0, len(items), size))


def assert_same(one: Columns | Answers, other: Columns | Answers) -> None:
    for field in fields(one):
        left, right = getattr(one, field.name), getattr(other, field.name)
        if isinstance(left, Answers):
            assert_same(left, right)
        elif isinstance(left, tuple):
            assert left == right, field.name
        else:
            assert left.dtype == right.dtype, field.name
            assert_array_equal(left, right, field.name)


@settings(deadline=None)
@given(st.lists(pairs, max_size=30), st.integers(1, 12))
def test_the_columns_are_those_of_the_pairs(some: list[Pair], size: int) -> None:
    ordered = named(some)
    whole = cut([Item(pair=pair, comparison=None) for pair in ordered], size)
    assert_same(whole.columns, columns(some and ordered))
    assert [whole.ids[place] for place in range(len(ordered))] == [pair.id for pair in ordered]


@settings(deadline=None)
@given(st.lists(pairs, min_size=1, max_size=30), st.integers(1, 12))
def test_it_does_not_matter_where_a_run_is_cut(some: list[Pair], size: int) -> None:
    items = [Item(pair=pair, comparison=None) for pair in named(some)]
    whole, parts = of_items(items), cut(items, size)
    for arm, gaps in whole.gaps.items():
        assert gaps.requests == parts.gaps[arm].requests
        assert_array_equal(gaps.seconds.values, parts.gaps[arm].seconds.values)
        assert_array_equal(gaps.seconds.counts, parts.gaps[arm].seconds.counts)
        assert_array_equal(whole.answer[arm], parts.answer[arm])
        assert_array_equal(whole.prompt_tokens[arm], parts.prompt_tokens[arm])
    assert_array_equal(whole.prompt, parts.prompt)
    assert_array_equal(whole.system, parts.system)


def compared(chance: np.random.Generator, count: int) -> list[Item]:
    """Pairs of answers of all kinds: alike, unlike, slower, failed."""
    found = [
        item(
            exchange(
                n,
                *(TEXTS[place] for place in chance.integers(0, len(TEXTS), 2)),
                slower_s=float(chance.choice([0.0, 0.0, 0.05, 0.3, 2.0])),
                failed="busy" if chance.random() < 0.1 else None,
            )
        )
        for n in range(count)
    ]
    similar = [
        replace(one, comparison=replace(one.comparison, similarity=float(chance.integers(70, 99)) / 100))
        if one.comparison is not None and chance.random() < 0.3
        else one
        for one in found
    ]
    return sorted(similar, key=lambda one: (one.pair.at, one.pair.id))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("slow_first", [False, True])
def test_the_pairs_worth_a_look_are_all_among_the_few_that_are_looked_at(seed: int, slow_first: bool) -> None:
    items = compared(np.random.default_rng(seed), 40 + 20 * seed)
    few = set(worth_a_look(cut(items, 17), Policy()))
    chosen = [one for one in items if one.pair.id in few]
    assert worst_first(chosen, Policy(), slow_first=slow_first) == worst_first(
        items, Policy(), slow_first=slow_first
    )


def test_the_causes_are_those_of_all_comparisons() -> None:
    items = compared(np.random.default_rng(3), 80)
    whole = causes((one.pair.at, one.comparison) for one in items if one.comparison)
    assert len(whole) > 2
    assert cut(items, 7).causes == whole


def test_what_is_not_known_of_any_pair_takes_no_room() -> None:
    """A float that no pair has is not kept, and not held."""
    item_ = Item(pair=Pair(id="a", at=1.0, baseline=answer(), candidate=answer()), comparison=None)
    assert unpacked(packed(sheet([item_] * 5))).arrays["baseline.cost"].size == 0
    assert cut([item_] * 5, 2).columns.baseline.cost.strides == (0,)


@pytest.mark.parametrize(
    "broken", [b"", b"{}", b"[]\n", b'{"arrays": [["at", "<f8", [9]]], "words": {}}\nxx']
)
def test_what_is_no_sheet_is_refused(broken: bytes) -> None:
    with pytest.raises((ValueError, TypeError, KeyError)):
        unpacked(broken)


def test_nothing_was_recorded() -> None:
    assert len(gather([])) == 0
    assert isinstance(answer(), Measured)
