from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import pytest

from replay.exchange import Outcome
from reports.advice import LATENCY_RULES
from reports.judge import judge
from reports.judgement import Verdict
from reports.policy import Policy
from tests.reports.made import (
    QUICK,
    REHEARSAL,
    TIMEOUT,
    WITHHELD,
    answer,
    changed,
    check,
    failure,
    only,
    run,
    same,
    verdict,
)

NOT_SENT = failure(Outcome.NOT_SENT, None)
DROPPED = failure(Outcome.MIRROR_DROPPED, None)
UNSERVED = failure(Outcome.UNSERVED)
CLIENT_LEFT = failure(Outcome.CLIENT_CANCELLED, 0.1)


def hold(pairs, code, policy=REHEARSAL, **more):
    """The reason of a HOLD with that code."""
    found = verdict(pairs, policy, **more)
    assert (found.verdict, found.code) == (Verdict.HOLD, code), found.reason
    assert not check(found, code)
    return found.reason


def some(count):
    return lambda n: n % count == 0


class TestData:
    def test_a_mirror_that_sent_nothing_though_requests_passed(self):
        reason = hold([], "mirror_sent_nothing", counters={"passed": 200, "not_eligible": 200})
        assert "200 requests passed and no copy reached the candidate" in reason

    def test_requests_that_were_mirrored_and_not_recorded(self):
        reason = hold(
            same(900), "not_recorded", counters={"passed": 1_000, "mirrored": 1_000, "not_sampled": 0}
        )
        assert reason.startswith("100 of 1,000 mirrored requests were not recorded")

    def test_a_gateway_whose_counters_are_gone(self):
        hold(same(900), "not_counted", counters={"mirror_ppm": 100_000})

    def test_a_gateway_that_nobody_used(self):
        hold([], "no_data", counters={"passed": 0})

    @pytest.mark.parametrize("candidate", [NOT_SENT, DROPPED])
    def test_a_candidate_that_was_never_asked(self, candidate):
        hold(same(500, candidate=candidate, differs=None), "mirror_sent_nothing")

    def test_a_baseline_that_was_never_recorded(self):
        hold(same(500, baseline=DROPPED, differs=None), "nothing_compared")

    @pytest.mark.parametrize("arm", ["candidate", "baseline"])
    def test_a_server_that_answered_nothing(self, arm):
        dead = failure(Outcome.CONNECT_ERROR, None)
        reason = hold(same(5, **{arm: dead}, differs=None), "no_answers", Policy())
        assert reason.startswith(f"The {arm} answered none of 5 requests: no connection")

    def test_two_servers_that_answered_nothing_each_in_its_ways(self):
        dead = failure(Outcome.CONNECT_ERROR, None)
        pairs = changed(same(40, baseline=dead, candidate=dead, differs=None), some(10), candidate=TIMEOUT)
        reason = hold(pairs, "no_answers")
        assert "candidate answered none of 40 requests: 36 no connection, 4 timed out; the baseline" in reason

    def test_a_candidate_that_answered_nothing_where_the_baseline_did_is_an_outage(self):
        found = verdict(same(40, candidate=failure(Outcome.CONNECT_ERROR, None), differs=None))
        assert (found.verdict, found.code) == (Verdict.ROLLBACK, "halt")
        assert "the candidate answered none of 40 requests: no connection" in found.reason

    def test_answers_that_may_still_come_are_waited_for(self):
        pairs = same(5, candidate=failure(Outcome.CONNECT_ERROR, None), differs=None)
        assert judge(pairs, REHEARSAL, now=pairs[-1].at).code == "not_final"

    def test_pairs_that_only_wait_for_their_timeout_are_not_said_to_have_no_answers(self):
        pairs = same(3, rate=1 / 60)
        found = judge(pairs, REHEARSAL, now=pairs[-1].at + 60, timeout_s=600)
        assert (found.verdict, found.code) == (Verdict.HOLD, "not_final")
        assert "before they count: 3 pairs, the first counts in 7 min" in found.reason
        assert "nothing_compared" not in {check.code for check in found.checks}

    def test_pairs_that_wait_beside_pairs_that_never_count(self):
        pairs = changed(same(3, rate=1 / 300), lambda n: n == 0, baseline=CLIENT_LEFT)
        found = judge(pairs, REHEARSAL, now=pairs[-1].at + 60, timeout_s=600)
        assert found.code == "not_final" and "2 pairs, the first counts in 4 min" in found.reason

    def test_a_run_that_never_left_the_warm_up(self):
        reason = hold(same(500), "warm_up", Policy())
        assert "first 15 min" in reason

    def test_few_pairs_and_a_short_span(self):
        assert "290 more needed" in hold(same(10), "too_few_pairs")
        assert "24 h required" in hold(same(5000), "minimum_span", Policy(warmup=0))

    def test_failed_pairs_do_not_lengthen_the_span(self):
        late = [replace(p, id=f"x{p.id}", at=p.at + 90_000, candidate=failure()) for p in same(3)]
        hold(same(2000) + late, "minimum_span", Policy(warmup=0))


class TestCoverage:
    @pytest.mark.parametrize("lost", [NOT_SENT, DROPPED])
    def test_missing_pairs(self, lost):
        pairs = changed(same(3000), lambda n: n % 5 < 2, candidate=lost, differs=None)
        assert "could read 60.0% of its pairs, 98% required" in hold(pairs, "coverage")

    def test_is_not_made_up_by_failures(self):
        pairs = changed(same(1000), lambda n: n >= 970, candidate=NOT_SENT)
        hold(pairs, "coverage")
        failed = [replace(p, id=f"x{p.id}", candidate=failure(), baseline=failure()) for p in same(1000)]
        hold(pairs + failed, "coverage")

    def test_clients_that_left_say_nothing_about_the_candidate(self):
        pairs = changed(same(2000), some(10), baseline=CLIENT_LEFT, differs=None)
        found = verdict(pairs)
        assert found.ledger["client_left"] == 200
        assert found.verdict is Verdict.GO

    def test_an_answer_without_its_latency(self):
        hold(changed(same(3000), some(20), candidate=answer(None)), "coverage")

    def test_copies_that_the_breaker_withheld(self):
        pairs = changed(same(3000), lambda n: 1000 <= n < 1300, candidate=WITHHELD, differs=None)
        found = verdict(pairs)
        assert (found.verdict, found.code) == (Verdict.HOLD, "coverage")
        assert not check(found, "breaker_open")
        assert found.ledger["breaker_open"] == 300

    def test_answers_that_were_not_scored(self):
        assert "5.0%" in hold(changed(same(3000), some(20), differs=None), "unscored")
        hold(same(3000, differs=None, repeat_differs=None), "unscored")

    def test_repeats_that_were_not_scored(self):
        hold(same(3000, repeat_differs=None), "coverage")

    def test_unscored_answers_do_not_matter_where_disagreement_is_not_required(self):
        assert verdict(same(3000, differs=None), only("errors")).verdict is Verdict.GO

    def test_a_run_that_is_mostly_not_comparable(self):
        hold(changed(same(3000), lambda n: n % 5 < 3, not_comparable="redacted copy"), "not_comparable")

    def test_requests_that_were_never_meant_to_be_sent_do_not_count(self):
        pairs = changed(same(3000), some(5), candidate=NOT_SENT, not_comparable="not_comparable: stateful")
        found = verdict(pairs)
        assert found.ledger["not_comparable"] == 600
        assert found.verdict is Verdict.GO


class TestSampleRatio:
    def counters(self, mirrored, not_sampled, ppm=100_000):
        return {
            "passed": mirrored + not_sampled,
            "mirrored": mirrored,
            "not_sampled": not_sampled,
            "mirror_ppm": ppm,
        }

    def test_that_is_right_passes(self):
        assert check(verdict(same(700), counters=self.counters(700, 6_250)), "sample_ratio")

    def test_that_is_wrong_is_a_hold(self):
        reason = hold(same(700), "sample_ratio", counters=self.counters(700, 4_000))
        assert "14.9%" in reason and "10.0% configured" in reason

    def test_allows_for_conversations_being_mirrored_whole(self):
        one_talk = same(700, session="a")
        assert check(verdict(one_talk, counters=self.counters(700, 4_000)), "sample_ratio")

    def test_of_everything_allows_no_exception(self):
        assert check(verdict(same(700), counters=self.counters(700, 0, 10**6)), "sample_ratio")
        hold(same(700), "sample_ratio", counters=self.counters(700, 1, 10**6))

    def test_is_not_checked_without_counters(self):
        assert all(one.code != "sample_ratio" for one in verdict(same(700)).checks)


class TestHalt:
    @pytest.mark.parametrize("failed", [failure(), TIMEOUT, failure(Outcome.CONNECT_ERROR)])
    def test_twenty_failures_in_a_row(self, failed):
        assert (
            verdict(changed(same(600), lambda n: 100 <= n < 120, candidate=failed), Policy()).code == "halt"
        )
        assert (
            verdict(changed(same(600), lambda n: 100 <= n < 119, candidate=failed), Policy()).code != "halt"
        )

    def test_counts_during_the_warm_up(self):
        assert verdict(same(30, candidate=failure()), Policy()).code == "halt"

    def test_looks_past_what_the_breaker_withheld(self):
        pairs = same(400, candidate=WITHHELD)
        assert verdict(changed(pairs, some(19), candidate=failure()), Policy()).code == "halt"

    def test_a_breaker_that_closed_again_is_an_incident(self):
        pairs = changed(same(600), lambda n: 100 <= n < 105, candidate=failure())
        pairs = changed(pairs, lambda n: 105 <= n < 200, candidate=WITHHELD)
        assert verdict(pairs, Policy()).code != "halt"

    def test_needs_a_failure_not_only_copies_that_were_withheld(self):
        assert verdict(changed(same(600), lambda n: n > 300, candidate=WITHHELD)).code != "halt"

    def test_half_of_the_requests_of_five_minutes(self):
        pairs = changed(same(600, rate=0.2), lambda n: 300 <= n < 420 and n % 2 == 0, candidate=failure())
        assert verdict(pairs, Policy()).code == "halt"
        assert verdict(pairs, Policy(warmup=3600)).code != "halt"

    def test_is_not_the_candidates_fault_when_the_baseline_failed_too(self):
        pairs = changed(same(600), lambda n: 100 <= n < 200, candidate=failure(), baseline=failure())
        assert verdict(pairs, Policy()).code != "halt"


class TestCaveats:
    def test_a_rehearsal_says_so(self):
        assert any("rehearsal" in one.message for one in verdict(same(700)).checks)
        assert all(one.code != "rehearsal" for one in verdict(same(700), Policy()).checks)

    def test_retried_answers_count_and_are_shown(self):
        pairs = changed(same(700), some(7), candidate=answer(attempts=2))
        found = verdict(pairs)
        assert found.verdict is Verdict.GO
        assert next(c.message for c in found.checks if c.code == "retried").startswith(
            "100 candidate answers"
        )

    def test_every_check_of_a_clean_run_passes(self):
        assert [one.code for one in verdict(run(700, 3)).checks if not one.passed] == []

    def test_a_check_that_fails_does_not_silence_harm(self):
        pairs = changed(same(100), some(4), candidate=failure())
        assert verdict(pairs, QUICK.model_copy(update={"minimum_pairs": 1000})).verdict is Verdict.ROLLBACK


class TestReplay:
    LATE: ClassVar = {"replay_lag_p99_us": 40_000, "replay_lag_limit_us": 10_000, "replay_cpu_permille": 970}

    def test_a_client_that_was_late(self):
        reason = hold(same(2000), "client_lag", counters=self.LATE)
        assert "left up to 40.0 ms after their moment" in reason and "97 % of a core" in reason

    def test_a_client_that_looked_late_at_the_clock(self):
        hold(
            same(2000),
            "client_lag",
            counters=self.LATE | {"replay_lag_p99_us": 1, "replay_loop_lag_p99_us": 11_000},
        )

    def test_latencies_of_a_late_client_do_not_roll_back_and_errors_do(self):
        slow = same(2000, candidate=answer(2.0))
        assert verdict(slow).code == "slow_share" or verdict(slow).verdict is Verdict.ROLLBACK
        found = verdict(slow, counters=self.LATE)
        assert (found.verdict, found.code) == (Verdict.HOLD, "client_lag")
        assert all(
            "not judged" in rule.reason
            for rule in found.rules
            if rule.rule in LATENCY_RULES and rule.required
        )
        broken = changed(same(2000), some(3), candidate=failure(), differs=None)
        assert verdict(broken, counters=self.LATE).verdict is Verdict.ROLLBACK

    def test_a_client_that_was_on_time(self):
        found = verdict(same(2000), counters=self.LATE | {"replay_lag_p99_us": 900})
        assert found.verdict is Verdict.GO and check(found, "client_lag")

    def test_a_candidate_whose_cache_was_warmer(self):
        pairs = same(2000, baseline=answer(cached=0.1), candidate=answer(cached=0.9))
        reason = hold(pairs, "cache_asymmetry")
        assert "10% at the baseline and 90% at the candidate" in reason and "--nonce" in reason

    def test_a_candidate_whose_cache_was_colder_proved_itself_with_the_harder_task(self):
        pairs = same(2000, baseline=answer(cached=0.9), candidate=answer(cached=0.1))
        assert verdict(pairs).verdict is Verdict.GO

    def test_caches_that_only_one_server_speaks_of(self):
        found = verdict(same(2000, candidate=answer(cached=0.9)))
        assert found.verdict is Verdict.GO and all(one.code != "cache_asymmetry" for one in found.checks)

    def test_a_gap_is_said(self):
        found = verdict(same(2000), counters={"replay_resumed": 2, "replay_gap_s": 720})
        said = next(one.message for one in found.checks if one.code == "resumed")
        assert "resumed 2 times, with 12 min in between" in said

    def test_what_was_replayed_quickly_spans_the_time_of_its_capture(self):
        day = Policy(minimum_span=86_400, minimum_pairs=300, warmup=0)
        assert verdict(same(2000), day, counters={"captured_span_s": 90_000}).verdict is Verdict.GO
        assert "captured over 1 h" in hold(
            same(2000), "minimum_span", day, counters={"captured_span_s": 3_600}
        )


class TestUnserved:
    def test_more_than_errors_may_grow(self):
        pairs = changed(same(2_000), some(50), candidate=UNSERVED, differs=None)
        reason = hold(pairs, "unserved")
        assert reason.startswith(
            "40 of 2,000 requests ask for what the candidate says it does not serve (2.0%), 1.0% may"
        )

    def test_a_candidate_that_refuses_everything_is_an_outage_whatever_it_says(self):
        for start in (0, 300):
            pairs = changed(same(500), lambda n, start=start: n >= start, candidate=UNSERVED, differs=None)
            found = verdict(pairs)
            assert (found.verdict, found.code) == (Verdict.ROLLBACK, "halt")

    def test_a_majority_of_them_does_not_hide_harm_in_the_rest(self):
        pairs = changed(run(4_000, 1, errors=0.1), lambda n: n % 20 < 11, candidate=UNSERVED, differs=None)
        found = verdict(pairs, QUICK)
        assert (found.verdict, found.code) == (Verdict.ROLLBACK, "errors"), found.reason

    def test_a_few_are_said_and_count_against_go(self):
        found = verdict(changed(same(20_000), some(2_000), candidate=UNSERVED, differs=None))
        assert found.verdict is Verdict.GO and check(found, "unserved")
        assert found.ledger["unserved"] == 10
        errors = next(rule for rule in found.rules if rule.rule == "errors")
        assert errors.estimate == 0

    def test_they_never_make_a_rollback_and_each_takes_from_go(self):
        few, many = (
            verdict(changed(same(3_000), some(every), candidate=UNSERVED, differs=None))
            for every in (300, 110)
        )
        assert few.verdict is Verdict.GO and many.verdict is Verdict.HOLD

    def test_what_the_baseline_does_not_offer_says_nothing_of_either(self):
        found = verdict(changed(same(2_000), some(50), baseline=UNSERVED, differs=None))
        assert found.ledger["not_comparable"] == 40 and found.ledger["scored"] == 1_960

    def test_most_of_the_traffic_that_only_the_candidate_offers_is_no_go(self):
        hold(changed(same(20_000), lambda n: n % 10, baseline=UNSERVED, differs=None), "not_comparable")
