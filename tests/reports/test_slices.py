"""Slices: what kind of request it is, the rules within each kind, and which of them a report may name."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reports.advisory import Looked, Slice
from reports.columns import MOST_VALUES, OTHER
from reports.intervals import share_interval
from reports.judgement import Judgement, Pair
from reports.multiplicity import e_bh
from reports.render.beside import beside
from reports.render.html import render_html
from reports.render.markdown import render_markdown
from reports.render.terminal import render_terminal
from reports.slicing import labels
from reports.stats import log_evidence_above, log_evidences_over_time
from tests.reports.builders import document, exchange, from_pairs
from tests.reports.made import QUICK, answer, changed, failure, run, same, verdict

RUSSIAN = "Когда открывается гавань?"


def row(judgement: Judgement, value: str, rule: str = "errors") -> Slice:
    return next(one for one in judgement.slices.rows if (one.value, one.rule) == (value, rule))


def spoken(count: int, *languages: str) -> list[Pair]:
    """Equal pairs, the languages in turn."""
    return [
        replace(pair, labels={"route": "/v1/chat/completions", "language": languages[n % len(languages)]})
        for n, pair in enumerate(same(count))
    ]


def shuffled(pairs: Sequence[Pair], seed: int) -> list[Pair]:
    order = np.random.default_rng(seed).permutation(len(pairs))
    return [pairs[at] for at in order]


class TestLabels:
    @pytest.mark.parametrize(
        ("body", "expected"),
        [
            ({"messages": [{"role": "user", "content": "When is high tide?"}]}, {"turn": "1", "language": "latin script"}),
            ({"messages": [{"role": "user", "content": [{"type": "text", "text": RUSSIAN}]}]}, {"language": "cyrillic script"}),
            ({"prompt": ["港は何時に開きますか"]}, {"language": "japanese script", "turn": "1"}),
            ({"input": "港口几点开门"}, {"language": "cjk script", "prompt_length": "below 500 characters"}),
            ({"input": [{"role": "user", "content": "a" * 500}]}, {"prompt_length": "500 to 2,000 characters"}),
            ({"messages": [{"role": "user", "content": "12?"}]}, {"language": None}),
            ({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}] * 3}, {"turn": "3 to 5"}),
            ({"prompt": "Wann ist die Brücke offen und was kostet es?"}, {"language": "German"}),
            ({"prompt": "When is the bridge open, and what is it for?"}, {"language": "English"}),
            ({"messages": []}, {"turn": None, "prompt_length": None, "language": None}),
            ({"temperature": 0}, {"temperature": "0"}),
            ({"temperature": 0.2}, {"temperature": "up to 0.5"}),
            ({"temperature": 1.2}, {"temperature": "above 1"}),
            ({"temperature": "hot"}, {"temperature": "not set"}),
            ({"tools": [{}], "stream": True, "model": "m"}, {"tools": "offered", "streamed": "yes", "model": "m"}),
            ({"tools": [], "stream": "yes", "model": 7}, {"tools": "none", "streamed": "no", "model": None}),
        ],
    )  # fmt: skip
    def test_say_what_kind_of_request_it_is(self, body: Any, expected: dict[str, str | None]) -> None:
        found = labels("/v1/chat/completions?x=1", body)
        assert {name: found.get(name) for name in expected} == expected
        assert found["route"] == "/v1/chat/completions"

    @pytest.mark.parametrize("body", [None, [], "text", 7])
    def test_of_a_body_that_is_gone_or_no_object_are_the_route_alone(self, body: Any) -> None:
        assert labels("/v1/x", body) == {"route": "/v1/x"}

    @given(
        st.recursive(
            st.none() | st.booleans() | st.floats() | st.text(),
            lambda inner: st.lists(inner) | st.dictionaries(
                st.sampled_from(["messages", "prompt", "input", "role", "content", "text", "model", "temperature"]), inner
            ),
        )
    )  # fmt: skip
    @settings(max_examples=50, deadline=None)
    def test_of_anything_never_raise(self, body: Any) -> None:
        assert all(isinstance(value, str) for value in labels("/v1/x", body).values())


class TestSlice:
    def test_figures_are_those_of_its_pairs(self) -> None:
        pairs = changed(spoken(300, "a", "a", "b"), lambda n: n % 3 == 2 and n < 90, candidate=failure())
        found = row(verdict(pairs, QUICK), "b")
        assert (found.pairs, found.read, found.share) == (100, 100, pytest.approx(1 / 3))
        assert (found.estimate, found.elsewhere) == (pytest.approx(0.3), 0)
        assert (found.low, found.high) == pytest.approx(share_interval(30, 70, 0, QUICK.alpha))
        # All within the first period, nothing trimmed: half the weight is on this start.
        assert found.evidence == pytest.approx(math.log(0.5) + log_evidence_above(30, 70, 0, 0.01))
        assert found.named and found.reason.startswith("30.00 % more errors, at least ")
        assert "elsewhere 0.00 %; 100 pairs, 33.3% of the traffic" in found.reason

    def test_the_one_that_broke_leads_and_a_sound_one_is_not_named(self) -> None:
        pairs = changed(spoken(600, "a", "b", "c"), lambda n: n % 3 == 1, differs=True, differs_by=("text",))
        found = verdict(pairs, QUICK).slices
        assert [(one.value, one.rule) for one in found.broke] == [("b", "disagreement")]
        assert found.rows[0] == found.broke[0] and found.rows[0].estimate == 1

    def test_a_slow_one_is_named_by_its_slow_share(self) -> None:
        pairs = changed(spoken(900, "a", "b", "c"), lambda n: n % 3 == 1, candidate=answer(2.0))
        assert ("b", "slow_share") in {(one.value, one.rule) for one in verdict(pairs, QUICK).slices.broke}

    def test_of_all_pairs_is_the_run_itself_and_not_tested(self) -> None:
        assert row(verdict(spoken(100, "a", "b"), QUICK), "/v1/chat/completions").looked is Looked.WHOLE_RUN

    def test_that_is_too_thin_is_counted(self) -> None:
        found = verdict(spoken(360, *"aaaaaaaab"), QUICK)
        assert row(found, "b").looked is Looked.TOO_THIN and row(found, "b").evidence is None
        assert found.slices.too_thin == 3 and found.slices.tested == 3
        assert "3 too thin" in beside(from_pairs(spoken(360, *"aaaaaaaab")))[0].counts

    def test_rare_values_are_looked_at_together(self) -> None:
        names = [f"m{n:02}" for n in range(30)]
        pairs = [
            replace(pair, labels={"model": names[n % 30 if n % 2 else n % 16 // 2]})
            for n, pair in enumerate(same(960))
        ]
        found = verdict(pairs, QUICK).slices.rows
        values = {one.value for one in found}
        assert len(values) == MOST_VALUES + 1 and OTHER in values
        assert sum(one.pairs for one in found if one.rule == "errors") == 960

    def test_pairs_without_a_label_are_in_no_slice_of_it(self) -> None:
        pairs = [replace(pair, labels={}) if n % 2 else pair for n, pair in enumerate(spoken(200, "a"))]
        assert row(verdict(pairs, QUICK), "a").share == 0.5

    def test_other_labels_that_a_caller_gives_are_dimensions_too(self) -> None:
        pairs = [replace(pair, labels={"tenant": "xy"[n % 2]}) for n, pair in enumerate(same(200))]
        assert verdict(pairs, QUICK).slices.dimensions == ("tenant",)

    def test_whose_baseline_differs_from_itself_too_often_is_read_by_coarser_labels(self) -> None:
        noisy = [
            replace(pair, differs=n % 2 == 0, differs_by=("text",), repeat_differs=True, repeat_differs_by=("text",))
            if pair.labels["language"] == "b" and n % 4 < 3 else pair
            for n, pair in enumerate(spoken(400, "a", "b"))
        ]  # fmt: skip
        found = row(verdict(noisy, QUICK), "b", "disagreement")
        assert found.looked is Looked.TESTED and found.estimate == 0

    def test_whose_baseline_fails_its_own_repeats_is_too_noisy(self) -> None:
        pairs = changed(spoken(400, "a", "b"), lambda n: n % 4 == 1, repeat=failure())
        found = verdict(pairs, QUICK)
        assert row(found, "b", "disagreement").looked is Looked.TOO_NOISY
        assert found.slices.too_noisy == 1

    def test_nothing_is_named_without_labels(self) -> None:
        assert verdict(run(500, 1, errors=0.3), QUICK).slices.rows == ()


class TestLaws:
    @settings(max_examples=20, deadline=None)
    @given(st.integers(0, 2**32))
    def test_a_copy_of_the_baseline_breaks_nowhere(self, seed: int) -> None:
        chance = np.random.default_rng(seed)
        arms = (answer(), answer(3.0), failure())
        pairs = [
            replace(
                pair, labels=label, differs=odd, repeat_differs=odd, baseline=arm, candidate=arm, repeat=arm
            )
            for pair in same(250)
            for label in [{"language": "abc"[chance.integers(3)], "model": "xyz"[chance.integers(3)]}]
            for odd, arm in [(bool(chance.random() < 0.3), arms[chance.integers(3)])]
        ]
        assert verdict(pairs, QUICK).slices.broke == ()

    @pytest.mark.parametrize("seed", range(4))
    def test_two_backends_alike_break_nowhere(self, seed: int) -> None:
        chance = np.random.default_rng(seed)
        pairs = [
            replace(pair, labels={"model": f"m{chance.integers(5)}", "turn": str(chance.integers(3))})
            for pair in run(2000, seed, errors=0.02, base_errors=0.02, noise=0.05)
        ]
        assert verdict(pairs, QUICK).slices.broke == ()

    @pytest.mark.parametrize("seed", range(3))
    def test_order_does_not_matter(self, seed: int) -> None:
        pairs = [
            replace(pair, labels={"model": f"m{n % 11}"})
            for n, pair in enumerate(run(600, seed, errors=0.1, noise=0.1))
        ]
        one, other = verdict(pairs, QUICK), verdict(shuffled(pairs, seed), QUICK)
        assert (one.slices, one.quality, one.labels) == (other.slices, other.quality, other.labels)

    @pytest.mark.parametrize("seed", range(3))
    def test_swapping_the_arms_mirrors_the_errors(self, seed: int) -> None:
        pairs = [
            replace(pair, labels={"model": f"m{n % 3}"})
            for n, pair in enumerate(run(600, seed, errors=0.1, base_errors=0.02))
        ]
        swapped = [replace(pair, baseline=pair.candidate, candidate=pair.baseline) for pair in pairs]
        one, other = verdict(pairs, QUICK), verdict(swapped, QUICK)
        for value in ("m0", "m1", "m2"):
            there, here = row(one, value), row(other, value)
            assert (there.estimate, there.low, there.high) == pytest.approx(
                (-here.estimate, -here.high, -here.low)
            )


class TestManyLooks:
    def test_as_many_are_named_as_pay_for_it_together(self) -> None:
        """Of 4 at 5 %: the best needs 80, two need 40 each, three need 27 each, four 20."""
        evidence = np.log([30.0, 100, 1, 45])
        assert e_bh(evidence, 0.05).tolist() == [True, True, False, True]
        assert e_bh(np.log([39.0, 39, 1, 1]), 0.05).tolist() == [False] * 4
        assert e_bh(np.empty(0), 0.05).size == 0

    @pytest.mark.parametrize("broken", [0, 6])
    def test_false_names_stay_rare_though_one_looks_again_and_again(self, broken: int) -> None:
        """24 slices, the sound ones with harm exactly at the margin; one stops when something is named. With none broken
        any name is false: in at most 5 of 100 runs. Else of the names at most 5 in 100."""
        chance, runs, slices, looks = np.random.default_rng(broken), 200, 24, 12
        worse = np.where(np.arange(slices) < broken, 0.16, 0.05)
        false: list[float] = []
        for _ in range(runs):
            dice = chance.random((slices, looks, 50))
            counts = np.stack([(dice < worse[:, None, None]).sum(2), (dice > 0.98).sum(2)], axis=2)
            counts = np.stack([counts[..., 0], 50 - counts.sum(2), counts[..., 1]], axis=2)
            named = np.zeros(slices, dtype=bool)
            for look in range(1, looks + 1):
                seen = counts[:, :look]
                named = e_bh(log_evidences_over_time(seen, np.arange(look), 0.03, trim=0), 0.05)
                if named.any():
                    break
            false.append(named[broken:].sum() / max(1, named.sum()))
        assert np.mean(false) <= 0.05
        assert broken == 0 or np.mean([one < 1 for one in false]) > 0.95


def test_a_broken_route_is_named_first_by_every_renderer() -> None:
    def on(route: str, number: int, says: str) -> Any:
        one = exchange(number, "It costs 42 euros.", says)
        return replace(one, request=replace(one.request, path=route))

    made = document(
        [on("/v1/chat/completions", n, "It costs 42 euros.") for n in range(300)]
        + [on("/v1/messages", n, "It costs 24 euros.") for n in range(300, 360)]
    )
    assert [(one.dimension, one.value) for one in made.slices.broke] == [("route", "/v1/messages")]
    words = "100.00 % more different answers than the noise floor"
    for text in (render_terminal(made, width=160), render_markdown(made), render_html(made)):
        assert words in text.replace("\u00a0", " ") and "/v1/messages" in text


def test_the_name_of_a_slice_cannot_act() -> None:
    hostile = "<script>\x1b[2Jx\u202e|`@all"
    pairs = [
        replace(
            pair,
            labels={"model": hostile if n % 4 else "m"},
            candidate=failure() if n % 4 else pair.candidate,
        )
        for n, pair in enumerate(same(400))
    ]
    made = from_pairs(pairs)
    assert made.slices.broke[0].value == hostile
    terminal, markdown, html = render_terminal(made), render_markdown(made), render_html(made)
    assert not any(char in terminal + markdown + html for char in "\x1b\u202e")
    assert "<script>" not in markdown and "@all" not in markdown
    assert html.count("<script>") == 1  # our own
