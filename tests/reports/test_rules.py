from __future__ import annotations

from dataclasses import replace

import pytest

from replay.exchange import Outcome
from reports.judgement import Verdict
from reports.policy import LimitRule, Policy
from reports.render.words import title
from reports.rules import RULES
from tests.reports.made import (
    QUICK,
    RULE_NAMES,
    TIMEOUT,
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


def read(pairs, name, policy=QUICK):
    return rule(verdict(pairs, policy), name)


def every(count):
    return lambda n: n % count == 0


def streaming(count, ttft_s=0.05):
    one = answer(0.2, ttft_s)
    return same(count, streamed=True, baseline=one, candidate=one, repeat=one)


def test_each_rule_is_a_promise_of_the_policy():
    assert tuple(one.name for one in RULES) == RULE_NAMES
    aside = [one.name for one in RULES if not one.promise(Policy()).required]
    assert aside == ["tpot_p95", "itl_median", "itl_p95", "cost"]


def test_a_limit_that_the_baseline_itself_would_break_is_refused():
    with pytest.raises(ValueError, match=r"greater than 0\.01"):
        LimitRule(limit="1 %")


class TestErrors:
    def test_are_the_difference_of_failures(self):
        pairs = changed(same(1000), every(50), candidate=failure())
        pairs = changed(pairs, every(100), baseline=failure())
        found = read(pairs, "errors")
        assert (found.estimate, found.candidate, found.baseline) == pytest.approx((0.01, 0.02, 0.01))
        assert found.low < 0.01 < found.high

    def test_count_every_kind_of_failure(self):
        for outcome in (
            Outcome.HTTP_ERROR,
            Outcome.TIMEOUT,
            Outcome.CONNECT_ERROR,
            Outcome.PROTOCOL_ERROR,
        ):
            found = read(changed(same(100), every(10), candidate=failure(outcome)), "errors")
            assert found.candidate == pytest.approx(0.1)

    def test_print_no_rate_of_fewer_than_twenty_pairs(self):
        assert read(same(19), "errors").estimate is None
        assert read(same(20), "errors").estimate == 0

    def test_show_the_noise_floor(self):
        pairs = changed(same(1000), every(100), repeat=failure())
        assert read(pairs, "errors").noise == pytest.approx(0.01)

    def test_say_that_the_margin_cannot_be_decided_when_it_is_met_exactly(self):
        found = read(changed(same(1000), every(100), candidate=failure()), "errors")
        assert found.verdict is Verdict.HOLD
        assert "cannot be decided at this traffic" in found.reason
        assert found.forecast_pairs is None

    def test_forecast_hours_at_the_traffic_of_the_run(self):
        found = read(same(210, rate=1), "errors")
        assert found.forecast_hours == pytest.approx(found.forecast_pairs / 3600, rel=0.01)


class TestTimeouts:
    def test_have_their_own_rule(self):
        pairs = changed(same(600), every(8), candidate=TIMEOUT)
        assert read(pairs, "timeouts").verdict is Verdict.ROLLBACK
        assert read(changed(same(600), every(8), candidate=failure()), "timeouts").verdict is Verdict.GO


class TestSlowShare:
    def test_of_equal_backends_is_about_one_percent(self):
        found = read(run(5000, 1), "slow_share")
        assert found.estimate == pytest.approx(0.01, abs=0.006)
        assert found.baseline == pytest.approx(0.01, abs=0.006)
        assert found.verdict is Verdict.GO

    def test_counts_timeouts_as_slow_and_fast_failures_not(self):
        assert read(changed(same(800), every(5), candidate=TIMEOUT), "slow_share").estimate == 0.2
        fast = read(changed(same(800), every(5), candidate=failure()), "slow_share")
        assert (fast.estimate, fast.verdict) == (0, Verdict.HOLD)
        assert fast.evidence_rollback < 0

    def test_follows_a_load_that_slows_both_arms(self):
        pairs = [
            replace(p, baseline=answer(0.2 + n / 2000), candidate=answer(0.2 + n / 2000))
            for n, p in enumerate(same(4000))
        ]
        assert read(pairs, "slow_share").verdict is not Verdict.ROLLBACK

    def test_waits_for_its_yardstick(self):
        found = read(same(100), "slow_share")
        assert (found.verdict, found.pairs) == (Verdict.HOLD, 0)
        assert "first 100 answers" in found.reason
        assert read(same(101), "slow_share").pairs == 1

    def test_leaves_out_what_the_baseline_failed(self):
        pairs = changed(same(800), every(2), baseline=failure(), candidate=TIMEOUT)
        assert read(pairs, "slow_share").estimate == 0


class TestMedian:
    def test_is_of_paired_differences(self):
        pairs = [
            replace(p, baseline=answer(0.1 + n % 7), candidate=answer(0.13 + n % 7))
            for n, p in enumerate(same(300))
        ]
        found = read(pairs, "latency_median")
        assert (found.estimate, found.low, found.high) == pytest.approx((0.03, 0.03, 0.03))
        assert found.verdict is Verdict.GO

    @pytest.mark.parametrize(("added", "expected"), [(0.049, Verdict.GO), (0.051, Verdict.ROLLBACK)])
    def test_is_held_against_the_margin(self, added, expected):
        pairs = [replace(p, candidate=answer(0.2 + added)) for p in same(300)]
        assert read(pairs, "latency_median").verdict is expected

    def test_exactly_at_the_margin_is_no_evidence(self):
        pairs = [replace(p, baseline=answer(0.25), candidate=answer(0.5)) for p in same(300)]
        policy = with_margin("latency_median", QUICK, margin=0.25)
        assert read(pairs, "latency_median", policy).verdict is Verdict.HOLD

    def test_may_be_relative_to_the_baseline(self):
        pairs = [replace(p, baseline=answer(2.0), candidate=answer(2.15)) for p in same(300)]
        assert read(pairs, "latency_median").verdict is Verdict.ROLLBACK
        relative = with_margin("latency_median", QUICK, relative=0.1)
        found = read(pairs, "latency_median", relative)
        assert (found.verdict, found.margin) == (Verdict.GO, pytest.approx(0.2))
        assert found.estimate == pytest.approx(0.15)

    def test_counts_a_failed_request_as_worse_and_none_where_both_failed(self):
        half = read(changed(same(400), every(2), candidate=failure()), "latency_median")
        assert half.high is None
        assert half.verdict is Verdict.HOLD
        both = read(changed(same(400), every(2), candidate=failure(), baseline=failure()), "latency_median")
        assert (both.pairs, both.verdict) == (200, Verdict.GO)


class TestP95:
    def test_finds_a_tail_that_is_later(self):
        pairs = [replace(p, candidate=answer(p.candidate.e2e_s * 1.6)) for p in run(4000, 1, streamed=0)]
        found = read(pairs, "latency_p95")
        assert found.verdict is Verdict.ROLLBACK
        assert found.low > found.margin
        assert found.estimate == pytest.approx(0.11, abs=0.03)

    def test_leaves_an_error_incident_to_the_errors(self):
        pairs = changed(run(1500, 2, streamed=0), every(4), candidate=failure())
        assert read(pairs, "latency_p95").evidence_rollback < 2
        assert read(pairs, "errors").verdict is Verdict.ROLLBACK

    def test_of_constant_latencies_is_decided(self):
        assert read(same(700), "latency_p95").verdict is Verdict.GO
        slower = [replace(p, candidate=answer(0.3)) for p in same(700)]
        assert read(slower, "latency_p95").verdict is Verdict.ROLLBACK

    def test_takes_the_larger_of_both_margins(self):
        slow = [replace(p, baseline=answer(4.0), candidate=answer(4.3)) for p in same(700)]
        assert read(slow, "latency_p95").margin == pytest.approx(0.4)
        assert read(slow, "latency_p95").verdict is Verdict.GO

    def test_may_not_be_known_from_few_pairs(self):
        found = read(same(110), "latency_p95")
        assert (found.verdict, found.high) == (Verdict.HOLD, None)


class TestTtft:
    def test_does_not_apply_when_nothing_was_streamed(self):
        found = verdict(same(700))
        for name in ("ttft_median", "ttft_p95"):
            assert rule(found, name).required is False
            assert "does not apply" in rule(found, name).reason
        assert found.verdict is Verdict.GO

    def test_is_read_from_streamed_pairs_only(self):
        pairs = streaming(900)
        mixed = changed(pairs, every(3), streamed=False, candidate=answer(), baseline=answer())
        found = read(mixed, "ttft_median")
        assert (found.pairs, found.missing, found.verdict) == (600, 0, Verdict.GO)

    def test_that_is_missing_is_a_hold(self):
        found = verdict([replace(p, candidate=answer(0.2)) for p in streaming(900)])
        assert (found.verdict, found.code) == (Verdict.HOLD, "coverage")
        assert rule(found, "ttft_median").missing == 900

    def test_is_weighed_like_any_latency(self):
        late = [replace(p, candidate=answer(0.2, 0.15)) for p in streaming(900)]
        assert read(late, "ttft_median").verdict is Verdict.ROLLBACK
        assert read(late, "ttft_p95").verdict is Verdict.ROLLBACK
        assert read(late, "latency_median").verdict is Verdict.GO


class TestDisagreement:
    def test_is_above_the_noise_floor(self):
        found = read(run(3000, 1, wrong=0.05, noise=0.1, repeats=1), "disagreement")
        assert found.estimate == pytest.approx(0.05, abs=0.03)
        assert found.noise == found.baseline == pytest.approx(0.1, abs=0.03)
        assert found.candidate == pytest.approx(0.15, abs=0.03)

    def test_of_a_noisy_baseline_with_itself_is_none(self):
        """One raw against no noise difference in 100 is flagged elsewhere; identical backends in 34 % of runs."""
        for seed in range(4):
            found = read(run(1500, seed, noise=0.3, repeats=1), "disagreement")
            assert found.verdict is not Verdict.ROLLBACK

    def test_grows_from_noise_that_is_high_already(self):
        """From 50 % noise to 74 % different is not flagged elsewhere. Here it is said, and decides nothing."""
        found = read(run(1500, 1, noise=0.5, wrong=0.24, repeats=1), "disagreement")
        assert found.verdict is Verdict.HOLD
        assert found.reason.startswith(
            "too noisy to gate on anything: the baseline differs from its own repeat in 5"
        )
        assert "the candidate differs in 7" in found.reason

    @pytest.mark.parametrize("differs", [False, True])
    def test_without_any_repeat_is_a_hold_whatever_differs(self, differs):
        pairs = same(2000, repeat=None, repeat_differs=None, differs=differs)
        found = verdict(pairs)
        assert (found.verdict, found.code) == (Verdict.HOLD, "no_repeats")
        assert (
            rule(found, "disagreement").reason
            == "no baseline repeats among the pairs that count: the noise floor is unknown"
        )

    def test_reads_only_pairs_with_a_repeat_that_was_sent(self):
        unsent = failure(Outcome.NOT_SENT, None)
        pairs = changed(same(1000), every(2), repeat=unsent, repeat_differs=None)
        assert read(pairs, "disagreement").pairs == 500

    def test_counts_a_failure_where_the_baseline_answered(self):
        pairs = changed(same(200), every(10), candidate=failure(), differs=None)
        assert read(pairs, "disagreement").candidate == pytest.approx(0.1)
        both = changed(pairs, every(10), baseline=failure())
        assert (read(both, "disagreement").candidate, read(both, "disagreement").pairs) == (0, 180)

    def test_treats_a_failed_repeat_as_it_treats_a_failed_candidate(self):
        pairs = changed(same(200), every(10), repeat=failure(), repeat_differs=None)
        assert read(pairs, "disagreement").noise == pytest.approx(0.1)

    def test_leaves_out_what_cannot_be_compared(self):
        pairs = changed(same(1000), every(5), not_comparable="redacted copy", differs=True)
        assert (read(pairs, "disagreement").pairs, read(pairs, "disagreement").candidate) == (800, 0)
        assert read(pairs, "errors").pairs == 1000


class TestSelfCheck:
    def test_a_rule_that_the_baseline_breaks_against_itself_says_nothing(self):
        pairs = same(700, candidate=answer(0.4), repeat=answer(0.4))
        found = verdict(pairs, only("errors", "latency_median"))
        assert (found.verdict, found.code) == (Verdict.HOLD, "self_check")
        assert "own repeat breaks this rule" in rule(found, "latency_median").reason

    def test_the_noise_of_latency_is_shown(self):
        pairs = same(700, repeat=answer(0.21))
        assert read(pairs, "latency_median").noise == pytest.approx(0.01)


def test_each_rule_has_a_title_that_is_no_name_of_code():
    titles = [title(name) for name in RULE_NAMES]
    assert len(set(titles)) == len(titles)
    assert not any("_" in one or one[0].islower() for one in titles)
