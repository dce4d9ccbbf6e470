from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from replay.exchange import Outcome
from reports.columns import columns
from reports.judge import judge, judge_columns
from reports.judgement import Verdict
from reports.policy import Policy
from tests.reports.made import (
    MISSING,
    QUICK,
    RANK,
    REHEARSAL,
    START,
    WITHHELD,
    answer,
    changed,
    failure,
    only,
    rule,
    run,
    same,
    verdict,
    with_margin,
)


class TestVerdict:
    def test_a_candidate_that_is_alike_goes_with_700_pairs(self):
        for seed in range(5):
            found = verdict(run(700, seed))
            assert (found.verdict, found.code) == (Verdict.GO, "go"), found.reason

    @pytest.mark.parametrize(
        ("fault", "codes"),
        [
            ({"slow": 0.15}, {"slow_share", "latency_p95", "ttft_p95"}),
            ({"wrong": 0.2}, {"disagreement"}),
            ({"errors": 0.05}, {"errors"}),
        ],
        ids=["slow tail", "wrong answers", "errors"],
    )
    def test_a_planted_fault_rolls_back_and_is_named(self, fault, codes):
        for seed in range(5):
            found = verdict(run(1000, seed, **fault))
            assert found.verdict is Verdict.ROLLBACK
            assert found.code in codes
            assert "above the margin of" in found.reason

    def test_nothing_is_a_hold(self):
        assert (verdict([]).verdict, verdict([]).code) == (Verdict.HOLD, "no_data")

    def test_five_pairs_are_a_hold_that_says_how_many_are_missing(self):
        found = verdict(run(5, 1))
        assert (found.verdict, found.code) == (Verdict.HOLD, "too_few_pairs")
        assert "295 more needed" in found.reason

    def test_five_failures_are_a_hold_and_twenty_an_outage(self):
        dead = [replace(pair, candidate=failure()) for pair in same(20)]
        assert verdict(dead[:5]).verdict is Verdict.HOLD
        assert (verdict(dead).verdict, verdict(dead).code) == (Verdict.ROLLBACK, "halt")

    @pytest.mark.parametrize("policy", [REHEARSAL, Policy()], ids=["rehearsal", "production"])
    def test_a_candidate_that_dies_rolls_back_though_the_breaker_withholds_the_rest(self, policy):
        pairs = changed(same(400), lambda n: n >= 300, candidate=WITHHELD, differs=None)
        pairs = changed(pairs, lambda n: 300 <= n < 305, candidate=failure(Outcome.CONNECT_ERROR))
        found = verdict(pairs, policy)
        assert (found.verdict, found.code) == (Verdict.ROLLBACK, "halt")
        assert "95 copies withheld" in found.reason

    def test_evidence_that_is_thin_is_a_hold_with_a_forecast(self):
        found = verdict(same(300))
        assert (found.verdict, found.code) == (Verdict.HOLD, "not_enough_evidence")
        assert "about 119 pairs more" in rule(found, "errors").reason
        assert found.reason.startswith("Errors: ")

    def test_a_whole_day_is_needed_by_default(self):
        found = verdict(same(2000), Policy(warmup=0))
        assert found.code == "minimum_span"
        assert verdict(same(2000, rate=2000 / 90_000), Policy(warmup=0)).verdict is Verdict.GO

    def test_only_required_rules_decide(self):
        pairs = run(1000, 3, wrong=0.3)
        assert verdict(pairs).code == "disagreement"
        lenient = with_margin("disagreement", REHEARSAL, required=False)
        assert verdict(pairs, lenient).verdict is Verdict.GO
        assert rule(verdict(pairs, lenient), "disagreement").verdict is Verdict.ROLLBACK

    def test_a_policy_that_requires_nothing_is_a_hold(self):
        found = verdict(run(1000, 1), only())
        assert (found.verdict, found.code) == (Verdict.HOLD, "nothing_required")

    def test_a_candidate_that_fails_on_requests_that_the_baseline_fails_too_is_alike(self):
        pairs = changed(same(1500), lambda n: n % 10 == 0, baseline=failure(), candidate=failure())
        assert verdict(pairs).verdict is Verdict.GO

    def test_the_ledger_adds_up(self):
        pairs = changed(same(40), lambda n: n % 4 == 0, candidate=MISSING)
        pairs = changed(pairs, lambda n: n % 5 == 0, candidate=WITHHELD)
        ledger = verdict(pairs).ledger
        assert ledger["dispatched"] == 40 == sum(v for k, v in ledger.items() if k != "dispatched")
        assert (ledger["breaker_open"], ledger["not_sent"], ledger["scored"]) == (8, 8, 24)

    def test_columns_give_the_same_judgement(self):
        pairs = run(500, 2)
        assert judge_columns(columns(pairs), REHEARSAL, now=2e9, final=True) == judge(
            pairs, REHEARSAL, now=2e9, final=True
        )


class TestTime:
    def test_pairs_that_may_still_be_in_flight_do_not_count(self):
        """Counting only what is complete leaves out exactly the slow answers."""
        pairs = same(1000)
        live = judge(pairs, REHEARSAL, now=START + 60, timeout_s=600)
        assert (live.verdict, live.code) == (Verdict.HOLD, "not_final")
        assert judge(pairs, REHEARSAL, now=START + 700, timeout_s=600).verdict is Verdict.GO

    def test_a_slow_candidate_does_not_look_fast_while_its_answers_are_pending(self):
        """The slow half is unsent as yet; the watermark keeps the quick half from speaking for all."""
        quick = [replace(pair, candidate=answer(0.01)) for pair in same(1000)]
        pending = changed(quick, lambda n: n % 2 == 0, candidate=MISSING)
        live = judge(pending, QUICK, now=START + 40, timeout_s=600)
        assert rule(live, "latency_median").pairs == 0

    def test_an_outage_does_not_wait_for_the_watermark(self):
        dead = [replace(pair, candidate=failure()) for pair in same(30)]
        assert judge(dead, Policy(), now=START + 5).code == "halt"

    def test_a_cold_candidate_is_left_out(self):
        cold = changed(same(3000, rate=2), lambda n: n < 1200, candidate=answer(3.0))
        assert verdict(cold, REHEARSAL.model_copy(update={"warmup": 600})).verdict is Verdict.GO
        assert verdict(cold).verdict is Verdict.ROLLBACK

    def test_a_candidate_that_starts_late_warms_up_late(self):
        pairs = changed(same(2000), lambda n: n < 500, candidate=MISSING)
        found = verdict(pairs, REHEARSAL.model_copy(update={"warmup": 10}))
        assert (found.ledger["not_sent"], found.ledger["warm_up"]) == (500, 200)

    def test_one_incident_of_five_minutes_in_a_day_does_not_roll_back(self):
        chance = np.random.default_rng(1)
        pairs = [
            replace(p, candidate=failure())
            if 40_000 <= p.at - START < 40_300 and chance.random() < 0.3
            else p
            for p in same(4320, rate=0.05)
        ]
        assert verdict(pairs, Policy()).verdict is not Verdict.ROLLBACK

    def test_hourly_looks_at_two_equal_backends_never_roll_back(self):
        """Hourly z-tests do in 46 % of such runs."""
        for seed in range(2):
            pairs = run(4000, seed, rate=0.035, errors=0.01, base_errors=0.01, noise=0.05)
            for hours in range(4, 34, 4):
                look = judge(pairs, Policy(), now=START + hours * 3600)
                assert look.verdict is not Verdict.ROLLBACK, look.reason


class TestFailedRequests:
    """What the rules of other tools make of failures: nothing of this may pass."""

    def test_a_few_errors_among_few_requests_are_weighed_by_requests_not_by_minutes(self):
        """Canary errors [0, 1, 2, 1, 0, 0] a minute against none pass elsewhere as "no data"."""
        pairs = changed(same(60, rate=1 / 6), lambda n: n in (12, 21, 25, 33), candidate=failure())
        found = verdict(pairs, only("errors"))
        assert found.verdict is Verdict.HOLD
        assert rule(found, "errors").estimate == pytest.approx(4 / 60)

    def test_total_failure_in_some_minutes_is_never_milder_than_in_fewer(self):
        """A rank test calls 40 % of minutes in outage fine, 48 % bad and 55 % fine again."""
        worst = RANK[Verdict.GO]
        for share in range(0, 101, 4):
            pairs = changed(same(1000), lambda n, share=share: n // 10 % 25 < share / 4, candidate=failure())
            rank = RANK[verdict(pairs).verdict]
            assert rank <= worst
            worst = rank
        assert worst == RANK[Verdict.ROLLBACK]

    def test_a_run_in_which_everything_failed_on_both_sides_is_no_success(self):
        pairs = [replace(pair, baseline=failure(), candidate=failure()) for pair in same(2000)]
        assert verdict(pairs).verdict is Verdict.HOLD

    @pytest.mark.parametrize("broken", [float("nan"), float("inf"), -1.0])
    @pytest.mark.parametrize("arm", ["baseline", "candidate", "repeat"])
    def test_a_number_that_is_none_is_refused(self, broken, arm):
        """Elsewhere NaN is read as 0, which is below every limit."""
        for field in ("e2e_s", "ttft_s"):
            pairs = same(30)
            pairs[7] = replace(pairs[7], **{arm: replace(answer(), **{field: broken})})
            with pytest.raises(ValueError, match="000007"):
                verdict(pairs)

    def test_a_time_that_is_none_is_refused(self):
        with pytest.raises(ValueError, match="at is nan"):
            verdict([replace(same(1)[0], at=float("nan"))])

    def test_the_arm_that_is_worse_is_the_one_that_is_named(self):
        worse = run(1000, 5, errors=0.08)
        better = [replace(pair, baseline=pair.candidate, candidate=pair.baseline) for pair in worse]
        assert rule(verdict(worse), "errors").candidate > 0.05 > rule(verdict(worse), "errors").baseline
        assert verdict(worse).verdict is Verdict.ROLLBACK
        assert rule(verdict(better), "errors").verdict is Verdict.GO
