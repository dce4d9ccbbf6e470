"""Pairs of which people know whether they serve a user alike: the project's own sets, and laws of the comparison."""

from __future__ import annotations

import csv
import re
import time
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from statistics import fmean

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reports.compare.guards import GUARDS
from reports.compare.guards.aligned import aligned
from reports.compare.guards.names import guard_names, names
from reports.compare.guards.negation import guard_negation
from reports.compare.guards.polarity import read
from reports.compare.guards.roles import guard_roles
from reports.compare.normal import normalise
from reports.judgement import Severity
from tests.reports.hostile import HOSTILE
from tests.reports.said import categories, compared

SETS = Path(__file__).parent / "sets"
LAWS = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def rows(name: str) -> list[tuple[bool, str, str]]:
    """(they differ, one text, the other)."""
    with (SETS / f"{name}.tsv").open(encoding="utf-8", newline="") as file:
        read_rows = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        return [(row["is"] == "different", row["baseline"], row["candidate"]) for row in read_rows]


ALL = [(one, two) for path in sorted(SETS.glob("*.tsv")) for _, one, two in rows(path.stem)]


def blocked(pairs: Sequence[tuple[str, str]]) -> float:
    """The share that rules call different, without similarity."""
    return fmean(compared(one, two).severity is Severity.BLOCK for one, two in pairs)


class TestOwnSets:
    """Without a model: what similarity would add to them, ``make bench-compare`` says."""

    @pytest.mark.parametrize(
        ("name", "most"),
        [
            ("negation_reworded", 0.10),
            ("answers_reworded", 0.10),
            ("contractions", 0.02),
            ("roles", 0.10),
            ("names", 0.10),
        ],
    )
    def test_harmless_rewordings_are_left_alone(self, name: str, most: float) -> None:
        assert blocked([(one, two) for different, one, two in rows(name) if not different]) <= most

    @pytest.mark.parametrize(
        ("name", "least"), [("negation_changed", 0.90), ("roles", 0.95), ("names", 0.90)]
    )
    def test_what_differs_is_found(self, name: str, least: float) -> None:
        assert blocked([(one, two) for different, one, two in rows(name) if different]) >= least

    def test_a_contraction_is_no_difference_to_the_guard_of_negations(self) -> None:
        found = [(one, two) for _, one, two in rows("contractions") if finds(guard_negation, one, two)]
        assert found == []

    def test_the_sets_are_large_enough_to_mean_something(self) -> None:
        assert len(rows("negation_reworded")) >= 100
        assert len(rows("contractions")) >= 50


def finds(guard, one: str, two: str) -> bool:
    return guard(normalise(one), normalise(two)) is not None


class TestReading:
    @pytest.mark.parametrize(
        ("sentence", "word", "sign"),
        [
            ("The refund was approved", "approv", 1),
            ("The refund was not approved", "approv", -1),
            ("Nobody approved the refund", "approv", -1),
            ("Nobody did not approve the refund", "approv", 1),
            ("I don't think that it was approved", "approv", -1),
            ("He was approved without a vote", "approv", 1),
            ("He was approved without a vote", "vot", -1),
            ("It was denied, but the second was approved", "approv", 1),
            ("A not very long day", "day", 1),
            ("It does not start at two but at ten", "start", 1),
            ("You cannot get in without a key", "key", 1),
            ("Why is the old pier not open?", "open", -1),
        ],
    )
    def test_what_is_affirmed_and_what_is_denied(self, sentence: str, word: str, sign: int) -> None:
        assert read(sentence).signs[word] == (sign,)

    @pytest.mark.parametrize(
        ("sentence", "count"),
        [
            ("All ports are open", "all"),
            ("Not all ports are open", "not all"),
            ("Some ports are not open", "not all"),
            ("No port is open", "none"),
            ("Few ports are open", "few"),
            ("Not many ports are open", "few"),
            ("A few ports are open", "some"),
        ],
    )
    def test_how_much_is_spoken_of(self, sentence: str, count: str) -> None:
        assert read(sentence).counts == {count}


class TestNegation:
    @pytest.mark.parametrize(
        ("one", "two"),
        [
            ("The claim is correct as far as I know.", "The claim is incorrect as far as I know."),
            ("Die Zahlung wurde gestern genehmigt.", "Die Zahlung wurde gestern nicht genehmigt."),
            (
                "La tienda abre los domingos por la mañana.",
                "La tienda nunca abre los domingos por la mañana.",
            ),
            ("Le magasin est ouvert le dimanche matin.", "Le magasin n'est pas ouvert le dimanche matin."),
            ("She decided not to sell the house.", "She did not decide to sell the house."),
        ],
    )
    def test_what_is_denied_on_one_side_is_found(self, one: str, two: str) -> None:
        assert finds(guard_negation, one, two)

    @pytest.mark.parametrize(
        ("one", "two"),
        [
            ("The loop never ends, so the counter grows.", "The counter grows, so the loop never ends."),
            ("It is not the case that the pier is shut.", "The pier is open, as far as anyone can tell."),
            ("Die Zahlung wurde nicht genehmigt.", "Es wurde keine Zahlung genehmigt."),
        ],
    )
    def test_other_words_for_the_same_are_not(self, one: str, two: str) -> None:
        assert not finds(guard_negation, one, two)


class TestNames:
    def test_what_is_a_name(self) -> None:
        found = names(
            "Here in New York the old man met some of IBM's people again. Note: Use it (Yes) or not"
        )
        assert [" ".join(name) for name in found] == ["New York", "IBM"]

    def test_a_title_holds_none(self) -> None:
        assert names("Pakistan's Musharraf Charged in Bhutto Death") == []

    def test_a_name_that_stands_elsewhere_in_the_other_text_is_none_of_its_own(self) -> None:
        one = "She lives in Berlin with her dog. The city is large."
        two = "She lives there with her dog. Berlin is a large city."
        assert not finds(guard_names, one, two)


class TestRoles:
    def test_both_parts_are_named(self) -> None:
        found = guard_roles(normalise("Alice pays Bob today"), normalise("Bob pays Alice today"))
        assert found is not None and found.message == '"Alice" and "Bob" have changed places'


texts = st.one_of(
    st.sampled_from([text for pair in ALL for text in pair]),
    st.lists(st.sampled_from([text for pair in ALL for text in pair]), min_size=2, max_size=6).map(" ".join),
    st.text(max_size=80),
)


class TestLaws:
    @LAWS
    @given(texts)
    def test_a_text_is_equal_to_itself(self, text: str) -> None:
        assert compared(text, text).severity is Severity.EQUAL

    @LAWS
    @given(texts, texts)
    def test_swapping_the_sides_changes_no_decision(self, one: str, two: str) -> None:
        here, there = compared(one, two), compared(two, one)
        assert here.severity is there.severity
        assert categories(here) == categories(there)

    @pytest.mark.parametrize("number", range(len(ALL)))
    def test_no_pair_of_the_sets_is_decided_by_its_order(self, number: int) -> None:
        one, two = ALL[number]
        assert categories(compared(one, two)) == categories(compared(two, one))

    @LAWS
    @given(st.sampled_from(ALL), st.sampled_from(range(4)))
    def test_formatting_changes_no_decision(self, pair: tuple[str, str], how: int) -> None:
        one, two = pair
        assert categories(compared(formatted(one, how), two)) == categories(compared(one, two))


def formatted(text: str, how: int) -> str:
    """The same text in another dress."""
    ways = (
        text.replace(" ", "  "),
        text.replace("'", "\u2019"),
        re.sub(r"\b([a-z]{5,})\b", r"**\1**", text, count=1),
        f"\n{text}\n\n",
    )
    return ways[how]


class TestHostile:
    @pytest.mark.parametrize("name", HOSTILE)
    def test_no_input_breaks_a_guard(self, name: str) -> None:
        one, two = normalise(HOSTILE[name]), normalise(f"It is not so. {HOSTILE[name]} never")
        for guard in GUARDS:
            guard(one, two)
            guard(two, one)

    @pytest.mark.parametrize(
        "piece",
        [
            "no ",
            "not a ",
            "and not ",
            "that ",
            "think that ",
            "word ",
            "never. ",
            "Alice Bob ",
            "unless ",
            "'s ",
            "but not ",
        ],
    )
    def test_time_is_linear(self, piece: str) -> None:
        """Eight times the text takes far less than eight times eight times as long."""

        def took(times: int) -> float:
            one, two = normalise(piece * times), normalise("so it is " + piece * times)
            start = time.process_time()
            for guard in (guard_negation, guard_roles, guard_names):
                guard(one, two)
            aligned.cache_clear()
            return time.process_time() - start

        short = min(took(1_000) for _ in range(3))
        long = min(took(8_000) for _ in islice(iter(int, 1), 2))
        assert long <= 40 * short + 0.05
