from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from replay.exchange import Outcome
from reports.judgement import Pair, Verdict
from reports.stats import anytime, count_signs, counts_by_block
from tests.reports.made import (
    MISSING,
    QUICK,
    RANK,
    START,
    TIMEOUT,
    WITHHELD,
    answer,
    changed,
    failure,
    only,
    rule,
    run,
    same,
    verdict,
)

latencies = st.floats(0.01, 5.0, allow_nan=False)
arms = st.one_of(
    st.builds(answer, latencies, st.none()),
    st.builds(answer, latencies, st.floats(0.001, 0.01)),
    st.sampled_from([failure(), failure(Outcome.CONNECT_ERROR), TIMEOUT, MISSING, WITHHELD]),
    st.just(failure(Outcome.CLIENT_CANCELLED, 0.1)),
)
labels = st.sampled_from([None, True, False])


@st.composite
def pair_lists(draw, min_size=0, max_size=30):
    drawn = draw(
        st.lists(
            st.tuples(arms, arms, st.none() | arms, labels, labels, st.booleans(), st.integers(0, 600)),
            min_size=min_size,
            max_size=max_size,
        )
    )
    times = draw(st.sampled_from([1, 20, 40]))
    return [
        Pair(
            id=f"{n}",
            at=START + at,
            baseline=base,
            candidate=candidate,
            repeat=repeat,
            differs=differs,
            repeat_differs=repeat_differs,
            streamed=streamed,
        )
        for n, (base, candidate, repeat, differs, repeat_differs, streamed, at) in enumerate(drawn * times)
    ]


laws = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])


class TestLaws:
    @laws
    @given(pair_lists(), st.booleans())
    def test_a_backend_judged_against_its_own_copy_never_rolls_back(self, pairs, rehearsal):
        copies = [replace(p, candidate=p.baseline, differs=False) for p in pairs]
        policy = QUICK.model_copy(update={"rehearsal": rehearsal})
        assert verdict(copies, policy).verdict is not Verdict.ROLLBACK

    def test_not_even_when_every_answer_is_slower_than_all_before(self):
        slowing = [replace(p, baseline=answer(0.2 + n / 2000)) for n, p in enumerate(same(2000))]
        copies = [replace(p, candidate=p.baseline, repeat=p.baseline) for p in slowing]
        assert verdict(copies).verdict is not Verdict.ROLLBACK

    @laws
    @given(pair_lists())
    def test_swapping_the_arms_mirrors_the_interval_of_errors(self, pairs):
        known = [p for p in pairs if not (p.baseline.outcome.missing or p.candidate.outcome.missing)]
        swapped = [replace(p, baseline=p.candidate, candidate=p.baseline) for p in known]
        one, other = (rule(verdict(each, QUICK), "errors") for each in (known, swapped))
        assert (one.low, one.high) == pytest.approx((-other.high, -other.low), abs=1e-9)

    @laws
    @given(pair_lists(), st.randoms(use_true_random=False))
    def test_the_order_in_which_pairs_are_given_does_not_matter(self, pairs, chance: random.Random):
        shuffled = list(pairs)
        chance.shuffle(shuffled)
        assert verdict(shuffled, QUICK) == verdict(pairs, QUICK)

    @laws
    @given(pair_lists(min_size=1), st.data())
    def test_a_failure_of_the_candidate_never_makes_a_go(self, pairs, data):
        place = data.draw(st.integers(0, len(pairs) - 1))
        failed = data.draw(st.sampled_from([failure(), TIMEOUT, failure(Outcome.CONNECT_ERROR)]))
        worse = changed(pairs, lambda n: n == place, candidate=failed)
        assert verdict(pairs, QUICK).verdict is Verdict.GO or verdict(worse, QUICK).verdict is not Verdict.GO

    @pytest.mark.parametrize("failed", [failure(), TIMEOUT], ids=["fast failure", "timeout"])
    @pytest.mark.parametrize("planted", [{}, {"errors": 0.02}, {"wrong": 0.06}, {"slow": 0.03}])
    def test_failures_one_after_another_only_ever_move_away_from_go(self, planted, failed):
        pairs = run(800, 11, **planted)
        rank = RANK[verdict(pairs).verdict]
        for count in range(0, 161, 20):
            worse = changed(pairs, lambda n, c=count: n % 5 == 0 and n // 5 < c, candidate=failed)
            assert RANK[verdict(worse).verdict] <= rank
            rank = RANK[verdict(worse).verdict]
        assert rank == RANK[Verdict.ROLLBACK]

    def test_pairs_that_failed_do_not_make_up_for_pairs_that_are_few(self):
        pairs = same(299) + [
            replace(pair, id=f"x{pair.id}", at=pair.at + 100, candidate=failure()) for pair in same(50)
        ]
        assert verdict(pairs[:310]).code == "too_few_pairs"

    @laws
    @given(pair_lists(min_size=1), st.data())
    def test_a_missing_pair_never_makes_a_go(self, pairs, data):
        place = data.draw(st.integers(0, len(pairs) - 1))
        lost = data.draw(
            st.sampled_from(
                [MISSING, WITHHELD, failure(Outcome.MIRROR_DROPPED, None), failure(Outcome.CLIENT_CANCELLED)]
            )
        )
        fewer = changed(pairs, lambda n: n == place, candidate=lost, differs=None)
        more = [*pairs, replace(pairs[place], id="more", at=START + 10**4, candidate=lost, differs=None)]
        go = verdict(pairs, QUICK).verdict is Verdict.GO
        assert go or verdict(fewer, QUICK).verdict is not Verdict.GO
        assert go or verdict(more, QUICK).verdict is not Verdict.GO

    def test_go_does_not_survive_many_missing_pairs(self):
        pairs = same(2000)
        verdicts = [
            verdict(changed(pairs, lambda n, c=count: n % 20 == 0 and n // 20 < c, candidate=MISSING)).verdict
            for count in range(0, 100, 5)
        ]
        assert verdicts[0] is Verdict.GO
        assert verdicts[-1] is Verdict.HOLD
        assert verdicts == sorted(verdicts, key=lambda one: -RANK[one])

    def test_a_missing_pair_is_counted_against_the_candidate(self):
        found = verdict(changed(same(700), lambda n: n in (100, 200, 300, 400), candidate=MISSING))
        assert found.verdict is Verdict.HOLD
        assert "not with the 4 missing pairs counted as harm" in rule(found, "errors").reason

    @laws
    @given(
        st.lists(st.tuples(st.sampled_from([-1, 0, 1]), st.floats(0.05, 1.0), st.integers(0, 5)), min_size=1)
    )
    def test_merging_blocks_equals_one_pass(self, drawn):
        signs, weight, block = (np.array(one) for one in zip(*drawn, strict=True))
        signs, block = signs.astype(np.int8), np.sort(block)
        block = np.cumsum(np.diff(block, prepend=block[0]) > 0)
        parts = counts_by_block(signs, block, int(block[-1]) + 1, weight)
        whole = count_signs(signs, weight)
        assert tuple(parts.sum(axis=0)) == pytest.approx(whole)
        assert float(anytime(*parts.sum(axis=0), 0.01)) == pytest.approx(float(anytime(*whole, 0.01)))

    @pytest.mark.parametrize("planted", [{}, {"errors": 0.02}, {"wrong": 0.06}, {"slow": 0.03}])
    def test_swapping_the_arms_mirrors_every_interval_of_a_share(self, planted):
        pairs = [replace(p, repeat=None) for p in run(800, 3, **planted)]
        swapped = [replace(p, baseline=p.candidate, candidate=p.baseline) for p in pairs]
        one, other = verdict(pairs, QUICK), verdict(swapped, QUICK)
        # Where requests failed, a median's two ends are of different pairs: failures count towards GO alone.
        for name in ("errors", "timeouts") if planted.get("errors") else ("latency_median", "ttft_median"):
            old, new = rule(one, name), rule(other, name)
            ends = [None if end is None else -end for end in (new.high, new.low)]
            assert [old.low, old.high] == pytest.approx(ends, abs=1e-6), name

    @laws
    @given(pair_lists(min_size=1))
    def test_the_places_of_pairs_add_up(self, pairs):
        ledger = dict(verdict(pairs, QUICK).ledger)
        assert ledger.pop("dispatched") == len(pairs) == sum(ledger.values())


class TestCalibration:
    @pytest.mark.parametrize(
        ("name", "fault"),
        [
            ("errors", {"errors": 0.012, "base_errors": 0.002}),
            ("disagreement", {"wrong": 0.03, "noise": 0.02, "repeats": 1.0}),
        ],
    )
    def test_harm_exactly_at_the_margin_rarely_goes(self, name, fault):
        """5 in 100 are allowed: 5 or more of 20 runs would have a chance below 1 %."""
        went = sum(
            rule(verdict(run(1500, seed, streamed=0, **fault), only(name)), name).verdict is Verdict.GO
            for seed in range(20)
        )
        assert went <= 4

    def test_a_clean_candidate_with_the_errors_of_the_baseline_does_not_roll_back(self):
        for seed in range(8):
            found = verdict(run(1500, seed, errors=0.02, base_errors=0.02, noise=0.05))
            assert found.verdict is not Verdict.ROLLBACK, found.reason
