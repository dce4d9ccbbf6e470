"""HOLD says what is missing: each kind of sentence, and that its numbers are true."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from reports.advice import LONGEST_H, advice, duration
from reports.judgement import Pair, RuleResult, Verdict
from reports.policy import Policy
from tests.reports.made import QUICK, answer, changed, failure, only, rule, same, verdict, with_margin

DAYS_APART = 1 / 3600
"""A pair an hour."""


def read(pairs: list[Pair], name: str = "errors", policy: Policy = QUICK, **more: object) -> RuleResult:
    """The rule in a run that goes on."""
    return rule(verdict(pairs, only(name, policy=policy), **{"final": False, **more}), name)


def number(text: str, before: str) -> float:
    return float(re.findall(rf"{before} ([\d.,]+)", text)[0].replace(",", ""))


class TestMoreOfTheSame:
    def test_is_said_in_pairs_and_in_time(self):
        found = read(same(300, rate=1.0))
        assert found.reason == (
            "between -1.39 % and 1.39 %, the margin is 1.00 %; about 119 more pairs, about 2 min at this traffic, for GO "
            "if they come as so far"
        )

    def test_of_a_run_that_ended_is_what_a_new_one_needs(self):
        found = read(same(300, rate=1.0), final=True)
        assert found.reason.endswith(
            "a new run needs about 119 pairs more than this one, about 2 min at this traffic, for GO if they come alike"
        )
        assert found.forecast_pairs == read(same(300, rate=1.0)).forecast_pairs

    def test_of_harm_in_a_run_that_ended_too(self):
        pairs = changed(same(300, rate=1.0), lambda n: n % 50 == 0, candidate=failure())
        assert "a new run needs about" in read(pairs, final=True).reason

    def test_is_enough(self):
        assert read(same(300 + 119)).verdict is Verdict.GO

    def test_counts_the_pairs_that_the_rule_reads(self):
        """One pair in ten has a repeat, and only those tell of disagreement."""
        pairs = changed(same(600, rate=1.0), lambda n: n % 10 != 0, repeat=None, repeat_differs=None)
        found = read(pairs, "disagreement")
        assert found.forecast_hours == pytest.approx(found.forecast_pairs * 10 / 3600, rel=0.02)

    def test_may_be_for_rollback(self):
        pairs = changed(same(300, rate=1.0), lambda n: n % 50 == 0, candidate=failure())
        found = read(pairs)
        assert found.verdict is Verdict.HOLD and found.forecast_pairs is None
        assert "for ROLLBACK if they come as so far" in found.reason
        more = 300 + int(number(found.reason, "about"))
        longer = changed(same(more, rate=1.0), lambda n: n % 50 == 0, candidate=failure())
        assert read(longer).verdict is Verdict.ROLLBACK


class TestNotWithoutTheWorstBlocks:
    POLICY = only(
        "errors",
        policy=Policy(warmup=0, minimum_span=3600.0, minimum_pairs=1, trim_blocks=3),
    )

    def pairs(self, count: int) -> list[Pair]:
        return changed(same(count, rate=0.5), lambda n: n % 12 == 0, candidate=failure())

    def test_says_how_long_until_it_is_proven(self):
        found = read(self.pairs(120), policy=self.POLICY)
        assert "above the margin of 1.00 %, but not yet proven without the worst 3 blocks" in found.reason
        more = int(number(found.reason, "about"))
        assert read(self.pairs(120 + more + more // 5), policy=self.POLICY).verdict is Verdict.ROLLBACK


class TestTooLittleTraffic:
    THIN = same(60, rate=DAYS_APART)
    """Two and a half days; without a failure the margin of 1 % takes 419 pairs."""

    def test_says_how_long_it_would_take(self):
        found = read(self.THIN)
        assert found.forecast_hours > LONGEST_H
        assert "cannot be decided at this traffic (it takes about 359 more pairs, 15 days)" in found.reason

    def test_names_a_margin_that_can_be_decided(self):
        wider = number(read(self.THIN).reason, "widen it to") / 100
        assert 0.01 < wider < 0.012
        again = read(self.THIN, policy=with_margin("errors", QUICK, margin=wider))
        assert again.forecast_hours <= LONGEST_H and "about" in again.reason

    def test_names_the_share_that_decides_it_in_two_days(self):
        found = read(self.THIN, counters={"mirror_ppm": 10_000, "passed": 6_000, "mirrored": 60})
        assert f"mirror {found.forecast_hours / 48:.2g} % to have it in 48 h" in found.reason

    def test_says_when_all_of_the_traffic_takes_longer(self):
        counters = {"mirror_ppm": 500_000, "passed": 120, "mirrored": 60}
        assert "mirror everything, which takes 7 days" in read(self.THIN, counters=counters).reason

    def test_asks_for_more_pairs_where_nothing_is_mirrored(self):
        assert "record 7.5 times as many pairs an hour" in read(self.THIN).reason

    def test_of_disagreement_more_repeats_do_too(self):
        pairs = same(30, rate=DAYS_APART / 10)
        counters = {"mirror_ppm": 900_000, "passed": 33, "mirrored": 30}
        assert "mirror or repeat everything" in read(pairs, "disagreement", counters=counters).reason

    def test_of_a_latency_names_the_margin_that_can_be_shown_now(self):
        slower = [
            replace(pair, candidate=answer(0.2 + 0.001 * (37 * n % 100)))
            for n, pair in enumerate(same(200, rate=DAYS_APART / 4))
        ]
        found = read(slower, "latency_median")
        assert found.verdict is Verdict.HOLD
        wider = number(found.reason, "widen it to") / 1000
        assert (
            read(slower, "latency_median", with_margin("latency_median", QUICK, margin=wider)).verdict
            is Verdict.GO
        )


class TestHarmAtItsMargin:
    def test_is_decided_by_no_traffic(self):
        found = read(changed(same(1000), lambda n: n % 100 == 0, candidate=failure()))
        assert (
            "the margin of 1.00 % cannot be decided at this traffic (the harm is about as large)"
            in found.reason
        )
        wider = number(found.reason, "widen it to") / 100
        again = read(
            changed(same(1000), lambda n: n % 100 == 0, candidate=failure()),
            policy=with_margin("errors", QUICK, margin=wider),
        )
        assert again.verdict is Verdict.GO or again.forecast_hours <= LONGEST_H


class TestAdvice:
    def test_says_how_long_to_wait(self):
        said = advice(Verdict.HOLD, "not_enough_evidence", kind="shadow", ended=False, hours=6.0)
        assert "let the run go on, for about 6 h at this traffic" in said

    def test_does_not_ask_to_wait_in_vain(self):
        said = advice(Verdict.HOLD, "not_enough_evidence", kind="shadow", ended=False, hours=LONGEST_H + 1)
        assert "let the run go on" not in said and "mirror more" in said

    @pytest.mark.parametrize(
        ("hours", "text"),
        [(0.001, "1 min"), (0.5, "30 min"), (1.9, "114 min"), (6.04, "6 h"), (47, "47 h"), (72, "3 days")],
    )
    def test_durations(self, hours, text):
        assert duration(hours) == text


class TestWhereBlocksAreCapped:
    """The more a block would have added, the more of it is cut: a forecast may not rest on the difference."""

    DAY = only("errors", "latency_median", policy=Policy(warmup=0, minimum_pairs=1))

    @pytest.mark.parametrize("rate", [0.5, 10.0, 20.0])
    @pytest.mark.parametrize("harm", [{"candidate": failure()}, {"candidate": answer(5.0)}])
    def test_grave_harm_in_the_first_minutes_is_a_hold_that_says_when(self, rate, harm):
        pairs = changed(
            same(int(480 * rate), rate=rate), lambda n: n % 5 < 3 if "e2e" in harm else n % 5 == 0, **harm
        )
        found = verdict(pairs, self.DAY)
        assert found.verdict in (Verdict.HOLD, Verdict.ROLLBACK) and found.reason

    def test_what_it_says_is_about_how_long_it_takes(self):
        def failing(count):
            return changed(same(count, rate=0.5), lambda n: n % 12 == 0, candidate=failure())

        found = read(failing(150), policy=self.DAY)
        more = int(number(found.reason, "about"))
        assert "for ROLLBACK" in found.reason and 150 < more < 1_500
        assert read(failing(150 + more + more // 3), policy=self.DAY).verdict is Verdict.ROLLBACK
        assert read(failing(150 + more // 2), policy=self.DAY).verdict is Verdict.HOLD
