"""Quality without a reference: what is counted in an answer by itself, in both arms of the same pairs."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from replay.exchange import Choice, ToolCall
from reports.advisory import Drift
from reports.compare.asked import Asked
from reports.intervals import share_interval
from reports.judgement import Judgement, Pair, Traits
from reports.render.beside import beside
from reports.stats import log_evidence_above
from reports.traits import traits_of
from tests.reports.builders import document, exchange, from_pairs
from tests.reports.made import QUICK, answer, failure, same, verdict
from tests.reports.said import calls, choice

PLAIN = Traits(
    characters=100,
    repetitive=False,
    truncated=False,
    refuses=False,
    calls_tools=False,
    valid_json=None,
    language="latin",
)
JSON = Asked(structured=True, schema={"type": "object", "required": ["a"]})


def drift(judgement: Judgement, name: str) -> Drift:
    return next(one for one in judgement.quality if one.name == name)


def pairs(count: int, candidate: Callable[[int], dict[str, Any]], **baseline: Any) -> list[Pair]:
    """Pairs whose answers have plain traits but for these; the repeat is as the baseline."""
    old = answer(traits=replace(PLAIN, **baseline), output_tokens=20)
    return [
        replace(
            pair,
            baseline=old,
            repeat=old,
            candidate=answer(traits=replace(PLAIN, **baseline | candidate(n)), output_tokens=20),
        )
        for n, pair in enumerate(same(count))
    ]


def mirrored(found: list[Pair]) -> list[Pair]:
    return [replace(pair, baseline=pair.candidate, candidate=pair.baseline) for pair in found]


class TestTraits:
    @pytest.mark.parametrize(
        ("one", "expected"),
        [
            (
                choice("The office opens at eight."),
                {"characters": 26, "language": "latin script", "refuses": False},
            ),
            (choice("Нет."), {"language": "cyrillic script"}),
            (choice("42"), {"language": None}),
            (choice("no " * 60), {"repetitive": True}),
            (choice("half", finish_reason="MAX_TOKENS"), {"truncated": True}),
            (choice("I'm sorry, but I can't help with that."), {"refuses": True}),
            (choice(refusal="No."), {"refuses": True, "characters": 3}),
            (calls(("find", "{}")), {"calls_tools": True, "characters": 0, "language": None}),
        ],
    )
    def test_of_an_answer(self, one: Choice, expected: dict[str, Any]) -> None:
        found = traits_of(Asked(), (one,))
        assert found is not None and {name: getattr(found, name) for name in expected} == expected
        assert found.valid_json is None

    @pytest.mark.parametrize(
        ("text", "valid"),
        [(' {"a": 1}\n', True), ('{"a": 1', False), ("no", False), ('{"b": 1}', False), ("", False)],
    )
    def test_json_is_looked_at_where_it_was_asked_for(self, text: str, valid: bool) -> None:
        found = traits_of(JSON, (choice(text),))
        assert found is not None and found.valid_json is valid

    def test_a_tool_call_in_place_of_json_breaks_nothing(self) -> None:
        called = replace(choice(), tool_calls=(ToolCall(name="find", arguments="{}"),))
        found = traits_of(JSON, (called,))
        assert found is not None and found.valid_json is None

    def test_several_choices_count_as_one_answer(self) -> None:
        found = traits_of(Asked(), (choice("one"), choice("three", finish_reason="length")))
        assert found is not None and (found.characters, found.truncated) == (8, True)

    def test_an_answer_without_choices_has_none(self) -> None:
        assert traits_of(Asked(), ()) is None


class TestRates:
    def test_figures_are_those_of_the_pairs(self) -> None:
        found = drift(verdict(pairs(400, lambda n: {"truncated": n % 5 == 0}), QUICK), "truncation")
        assert (found.pairs, found.baseline, found.candidate) == (400, 0, 0.2)
        assert found.estimate == pytest.approx(0.2) and found.noise == 0
        assert (found.low, found.high) == pytest.approx(share_interval(80, 320, 0, 0.05))
        both = [log_evidence_above(80, 320, 0, 0.01), log_evidence_above(0, 320, 80, 0.01)]
        assert found.evidence == pytest.approx(math.log(0.5) + np.logaddexp(*both) - math.log(2))
        assert found.named and found.reason.startswith("0.00 % became 20.00 %, between ")

    @pytest.mark.parametrize(
        ("name", "trait"),
        [("repetition", "repetitive"), ("refusal", "refuses"), ("tool_calls", "calls_tools")],
    )
    def test_more_and_fewer_are_both_named(self, name: str, trait: str) -> None:
        more = pairs(300, lambda n: {trait: n % 4 == 0})
        assert drift(verdict(more, QUICK), name).estimate == 0.25
        assert drift(verdict(more, QUICK), name).named and drift(verdict(mirrored(more), QUICK), name).named

    def test_json_is_counted_where_it_was_asked_for(self) -> None:
        found = pairs(300, lambda n: {"valid_json": n % 10 > 0 if n % 2 else None}, valid_json=True)
        one = drift(verdict(found, QUICK), "valid_json")
        assert (one.pairs, one.candidate) == (150, 1.0)
        assert "valid_json" not in {one.name for one in verdict(pairs(50, lambda _: {}), QUICK).quality}

    def test_another_language_moves_two_shares(self) -> None:
        found = verdict(pairs(300, lambda n: {"language": "cyrillic" if n % 2 else "latin"}), QUICK)
        latin, cyrillic = drift(found, "language:latin"), drift(found, "language:cyrillic")
        assert (latin.estimate, cyrillic.estimate) == (-0.5, 0.5) and latin.named and cyrillic.named

    def test_only_pairs_that_both_arms_answered_count(self) -> None:
        found = pairs(300, lambda _: {})
        found[:40] = [replace(pair, candidate=failure()) for pair in found[:40]]
        assert drift(verdict(found, QUICK), "refusal").pairs == 260

    def test_too_few_pairs_have_no_estimate(self) -> None:
        one = drift(verdict(pairs(10, lambda _: {"refuses": True}), QUICK), "refusal")
        assert (one.estimate, one.baseline, one.reason) == (None, None, "10 pairs are too few")


class TestLengths:
    def test_the_ratio_is_the_median_over_pairs(self) -> None:
        found = drift(
            verdict(pairs(300, lambda n: {"characters": 150 if n % 3 else 20}), QUICK), "characters"
        )
        assert (found.baseline, found.candidate) == (100, 150)
        assert found.estimate == pytest.approx(1.5) and found.noise == pytest.approx(1)
        assert found.low == pytest.approx(1.5) and found.named

    def test_a_tenth_longer_is_not_worth_a_word(self) -> None:
        assert not drift(verdict(pairs(900, lambda n: {"characters": 109}), QUICK), "characters").named

    def test_shorter_is_named_too(self) -> None:
        found = drift(verdict(pairs(300, lambda n: {"characters": 60}), QUICK), "characters")
        assert found.named and found.reason.startswith("0.60 times as many")

    def test_answers_without_text_have_no_ratio(self) -> None:
        assert "characters" not in {
            one.name for one in verdict(pairs(50, lambda _: {}, characters=0), QUICK).quality
        }
        assert drift(verdict(pairs(50, lambda _: {}, characters=0), QUICK), "tokens").pairs == 50


QUIETLY = settings(max_examples=20, deadline=None)
seeds = st.integers(0, 2**32)


def drawn(seed: int) -> list[tuple[Traits, Traits]]:
    """The traits of the two arms of 20 to 120 pairs."""
    chance = np.random.default_rng(seed)

    def one() -> Traits:
        return replace(
            PLAIN,
            characters=int(chance.integers(0, 500)),
            truncated=bool(chance.random() < 0.5),
            refuses=bool(chance.random() < 0.1),
            valid_json=(None, True, False)[chance.integers(3)],
            language=(None, "latin", "cjk")[chance.integers(3)],
        )

    return [(one(), one()) for _ in range(chance.integers(20, 120))]


def of(both: list[tuple[Traits, Traits]]) -> list[Pair]:
    return [
        replace(pair, baseline=answer(traits=old), candidate=answer(traits=new))
        for pair, (old, new) in zip(same(len(both)), both, strict=True)
    ]


class TestLaws:
    @QUIETLY
    @given(seeds)
    def test_a_copy_of_the_baseline_never_moves(self, seed: int) -> None:
        made = of([(old, old) for old, _ in drawn(seed)])
        assert not any(one.named for one in verdict(made, QUICK).quality)

    @QUIETLY
    @given(seeds)
    @example(669931)  # a length exactly at the tolerated ratio
    def test_swapping_the_arms_mirrors_everything(self, seed: int) -> None:
        made = of(drawn(seed))
        here, there = verdict(made, QUICK).quality, verdict(mirrored(made), QUICK).quality
        for one, other in zip(here, there, strict=True):
            assert (one.name, one.named) == (other.name, other.named)
            assert one.evidence == pytest.approx(other.evidence)
            if one.estimate is None or other.estimate is None:
                assert one.pairs == other.pairs < 20
            elif one.unit == "share":
                assert (one.estimate, one.low, one.high) == pytest.approx(
                    (-other.estimate, -other.high, -other.low)
                )
            elif one.low and one.high:
                assert (one.low, one.high) == pytest.approx((1 / other.high, 1 / other.low))

    @pytest.mark.parametrize("seed", range(5))
    def test_two_backends_alike_do_not_move(self, seed: int) -> None:
        chance = np.random.default_rng(seed)

        def any_answer() -> Any:
            lot = chance.random(4)
            traits = replace(
                PLAIN,
                characters=int(20 + 400 * lot[0]),
                truncated=bool(lot[1] < 0.1),
                refuses=bool(lot[2] < 0.05),
                language="cjk" if lot[3] < 0.2 else "latin",
            )
            return answer(traits=traits)

        made = [replace(pair, baseline=any_answer(), candidate=any_answer()) for pair in same(1500)]
        assert not any(one.named for one in verdict(made, QUICK).quality)


def test_what_moved_is_named_in_the_report_and_the_rest_is_counted() -> None:
    (found,) = (
        one
        for one in beside(from_pairs(pairs(400, lambda n: {"truncated": n % 5 == 0})))
        if one.name == "quality"
    )
    assert found.remarkable[0].startswith("answers cut off at their token limit: 0.00 % became 20.00 %")
    assert "1 moved" in found.counts


def test_answers_are_looked_at_on_the_way_from_the_store() -> None:
    made = document([exchange(n, "Это стоит 42 евро.", "It costs 42 euros.") for n in range(300)])
    assert {one.name for one in made.quality if one.named} >= {
        "language:latin script",
        "language:cyrillic script",
    }
