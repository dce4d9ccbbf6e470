"""The noise floor label by label, and what decides where the baseline does not agree with itself."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from reports.advice import advice
from reports.advisory import Label
from reports.intervals import share_interval
from reports.judgement import Judgement, Pair, Verdict
from reports.labels import ALIKE, FINEST, LABELS, bits, fallback, names, quiet_level, ranks
from reports.render.terminal import render_terminal
from reports.stats import log_evidence_above
from tests.reports.builders import document, exchange, from_pairs
from tests.reports.made import QUICK, answer, failure, only, rule, run, same, verdict

ONE = only("disagreement")


def label(judgement: Judgement, name: str) -> Label:
    return next(one for one in judgement.labels if one.label == name)


def differing(count: int, candidate: dict[str, float], repeat: dict[str, float]) -> list[Pair]:
    """Pairs of which these shares differ by these labels, spread evenly; each label of an arm on pairs of its own."""

    def by(place: float, shares: dict[str, float]) -> tuple[str, ...]:
        for name, share in shares.items():
            if place < share:
                return (name,)
            place -= share
        return ()

    pairs = []
    for n, pair in enumerate(same(count)):
        # Two sequences that know nothing of each other.
        first, second = by(n * 0.6180339887 % 1, candidate), by(n * 0.4142135623 % 1, repeat)
        pairs.append(
            replace(
                pair,
                differs=bool(first),
                differs_by=first,
                repeat_differs=bool(second),
                repeat_differs_by=second,
            )
        )
    return pairs


class TestWords:
    def test_bits_are_labels_and_unknown_ones_are_as_fine_as_any(self) -> None:
        assert names(bits(["text", "tools"])) == ("tools", "text")
        assert names(bits(["a rule of tomorrow"])) == (LABELS[FINEST],)
        assert bits([]) == 0 and names(0) == ()

    def test_a_rank_is_the_coarsest_label(self) -> None:
        found = ranks(
            np.array([0, bits(["text"]), bits(["similarity", "finish", "text"]), 1 << FINEST], np.int32)
        )
        assert found.tolist() == [ALIKE, LABELS.index("text"), LABELS.index("finish"), FINEST]

    @pytest.mark.parametrize(
        ("repeats", "level"),
        [
            ({"alike": 100}, FINEST),
            ({"alike": 70, "text": 30}, FINEST),
            ({"alike": 69, "text": 31}, LABELS.index("text") - 1),
            ({"alike": 60, "text": 20, "similarity": 20}, LABELS.index("similarity") - 1),
            ({"alike": 50, "tools": 10, "text": 40}, LABELS.index("text") - 1),
            ({"alike": 60, "transport": 40}, LABELS.index("transport") - 1),
            ({"alike": 60, LABELS[0]: 40}, -1),
            ({}, FINEST),
        ],
    )
    def test_the_quiet_level_is_the_finest_with_30_percent_of_noise_at_most(
        self, repeats: dict[str, int], level: int
    ) -> None:
        counts = np.zeros(ALIKE + 1, np.int64)
        for name, count in repeats.items():
            counts[ALIKE if name == "alike" else LABELS.index(name)] = count
        assert quiet_level(counts) == level

    def test_what_stands_for_a_level_was_seen_or_always_applies(self) -> None:
        level = LABELS.index("structured")
        assert fallback(level, bits(["tools", "text"])) == "tools"
        assert fallback(level, bits(["text"])) == "refusal"
        assert fallback(LABELS.index("transport"), 0) == "transport"


class TestFloor:
    def test_shares_excess_and_interval_are_those_of_the_pairs_with_a_repeat(self) -> None:
        pairs = [
            replace(
                pair,
                differs=n % 4 == 0,
                differs_by=("tools",) if n % 4 == 0 else (),
                repeat_differs=n % 10 == 1,
                repeat_differs_by=("tools",) if n % 10 == 1 else (),
            )
            for n, pair in enumerate(same(400))
        ]  # in every 20: five of the candidate, two of the repeat, none on the same pair
        pairs += [replace(pair, id=f"b{pair.id}", repeat=None, repeat_differs=None) for pair in same(400)]
        found = label(verdict(pairs, ONE), "tools")
        assert (found.pairs, found.repeats) == (800, 400)
        assert (found.differs, found.candidate, found.noise) == (pytest.approx(0.125), 0.25, 0.1)
        assert found.excess == pytest.approx(0.15)
        assert (found.low, found.high) == pytest.approx(share_interval(100, 260, 40, 0.05))
        assert found.evidence == pytest.approx(math.log(0.5) + log_evidence_above(100, 260, 40, 0.03))
        assert found.named and not found.too_noisy and "above the noise floor of 10.00 %" in found.reason

    def test_labels_come_coarsest_first_and_only_those_that_were_seen(self) -> None:
        found = verdict(differing(200, {"text": 0.1, "finish": 0.1}, {"similarity": 0.1}), ONE)
        assert [one.label for one in found.labels] == ["finish", "text", "similarity"]

    def test_a_candidate_that_fails_where_the_baseline_answers_differs_by_transport(self) -> None:
        pairs = [
            replace(pair, candidate=failure(), differs=None) if n < 30 else pair
            for n, pair in enumerate(same(100))
        ]
        assert label(verdict(pairs, ONE), "transport").candidate == 0.3

    def test_a_label_without_repeats_has_no_floor(self) -> None:
        pairs = [
            replace(pair, repeat=None, repeat_differs=None) for pair in differing(100, {"text": 0.2}, {})
        ]
        found = label(verdict(pairs, ONE), "text")
        assert found.differs == pytest.approx(0.2, abs=0.02)
        assert (found.noise, found.excess, found.low, found.evidence) == (None, None, None, None)
        assert found.reason == "no baseline repeats among the pairs that count: the noise floor is unknown"

    def test_the_baseline_against_itself_names_no_label(self) -> None:
        for noise in (0.1, 0.25):
            found = verdict(
                differing(1500, {"text": noise, "tools": 0.04}, {"text": noise, "tools": 0.04}), ONE
            )
            assert not any(one.named or one.too_noisy for one in found.labels)

    def test_swapping_candidate_and_repeat_mirrors_the_excess(self) -> None:
        pairs = differing(500, {"text": 0.2}, {"text": 0.05})
        swapped = [
            replace(
                pair,
                differs=pair.repeat_differs,
                differs_by=pair.repeat_differs_by,
                repeat_differs=pair.differs,
                repeat_differs_by=pair.differs_by,
            )
            for pair in pairs
        ]
        one, other = label(verdict(pairs, ONE), "text"), label(verdict(swapped, ONE), "text")
        assert (one.excess, one.low, one.high) == pytest.approx((-other.excess, -other.high, -other.low))


NOISE = {"text": 0.45, "tools": 0.02}


class TestTooNoisy:
    """By the words the baseline differs from itself in 45 %, by its tool calls in 2 %."""

    def judged(self, candidate: dict[str, float], count: int = 1500) -> Judgement:
        return verdict(differing(count, candidate, NOISE), ONE)

    def test_a_label_says_so_and_names_what_stands_in_for_it(self) -> None:
        found = label(self.judged(NOISE), "text")
        assert found.too_noisy and found.fallback == "tools"
        assert found.reason.startswith(
            "too noisy to gate on this label: the baseline differs from its own repeat in 45."
        )
        assert not label(self.judged(NOISE), "tools").too_noisy

    def test_a_candidate_that_is_as_noisy_goes_by_the_coarser_labels(self) -> None:
        found = rule(self.judged(NOISE), "disagreement")
        assert found.verdict is Verdict.GO
        assert found.noise == pytest.approx(0.02, abs=0.005)
        assert "too noisy to gate on text (the baseline differs from its own repeat in 4" in found.reason
        assert found.reason.endswith("falling back to tools and coarser labels")

    def test_harm_by_a_coarser_label_rolls_back(self) -> None:
        found = rule(self.judged({"text": 0.45, "tools": 0.15}), "disagreement")
        assert found.verdict is Verdict.ROLLBACK and "falling back to tools" in found.reason

    def test_more_difference_by_the_noisy_label_neither_rolls_back_nor_goes(self) -> None:
        found = rule(self.judged({"text": 0.75, "tools": 0.02}), "disagreement")
        assert found.verdict is Verdict.HOLD
        assert found.reason.startswith("below the margin by the labels that are read, but 3")

    def test_where_nothing_is_quiet_nothing_is_said_but_how_it_stands(self) -> None:
        pairs = [replace(pair, repeat=failure()) if n % 2 else pair for n, pair in enumerate(same(1000))]
        judged = verdict(pairs, ONE)
        found = rule(judged, "disagreement")
        assert found.verdict is Verdict.HOLD and found.required
        assert judged.code == "too_noisy" and "temperature 0" in advice(
            judged.verdict, judged.code, kind="shadow", ended=False
        )
        assert found.reason.startswith(
            "too noisy to gate on anything: the baseline differs from its own repeat in 50.0%"
        )

    def test_noise_of_which_nobody_says_the_label_is_not_hidden_by_falling_back(self) -> None:
        found = rule(verdict(run(1500, 1, noise=0.5, repeats=1), ONE), "disagreement")
        assert found.verdict is Verdict.HOLD

    def test_a_handful_of_repeats_is_not_called_noisy(self) -> None:
        pairs = differing(10, {"text": 0.5}, {"text": 0.5})
        assert not any(one.too_noisy for one in verdict(pairs, ONE).labels)

    def test_is_shown(self) -> None:
        text = " ".join(render_terminal(from_pairs(differing(400, NOISE, NOISE), ONE)).split())
        assert "text: too noisy to gate on this label" in text and "1 too noisy to gate on" in text


def test_the_labels_of_a_pair_are_the_comparators_that_block() -> None:
    made = document([exchange(n, "It costs 42 euros.", "It costs 24 euros.") for n in range(30)], QUICK)
    assert [(one.label, one.differs, one.noise) for one in made.labels] == [("text", 1.0, 0.0)]


class TestChance:
    def notes(self, pairs: Sequence[Pair]) -> str:
        return " ".join(from_pairs(pairs).notes)

    def sampled(self, *temperatures: str) -> list[Pair]:
        return [
            replace(
                pair,
                labels={"temperature": temperatures[n % len(temperatures)]},
                repeat=None,
                repeat_differs=None,
            )
            for n, pair in enumerate(same(40))
        ]

    def test_answers_drawn_by_chance_without_a_repeat_are_said_to_be(self) -> None:
        note = self.notes(self.sampled("0", "up to 1", "not set", "0"))
        assert "10 of 40 requests asked for a temperature above 0 and 10 left it to the server" in note

    def test_likeliest_answers_and_repeats_need_no_word(self) -> None:
        assert "drawn by chance" not in self.notes(self.sampled("0"))
        assert "drawn by chance" not in self.notes(
            [replace(one, repeat=answer()) for one in self.sampled("above 1")]
        )
