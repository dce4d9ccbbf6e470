"""Forecasts: against published sizes, against the judge itself, and the laws that any forecast keeps."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from replay.exchange import Outcome
from reports.arrays import of_arrays
from reports.columns import columns
from reports.history import history
from reports.judgement import Verdict
from reports.odds import Span
from reports.plan import EFFECTS, SOON_S, Forecast, Plan, plan
from reports.policy import Policy
from reports.render.plan import Asked, remedy, render_json, render_terminal
from reports.rules import RULES
from reports.traffic import Traffic, measured, pairs_like
from tests.reports.made import run

BARE = Policy(warmup=0, minimum_span=0, minimum_pairs=1, trim_blocks=0)
"""Evidence alone."""
A_SECOND = Traffic(pairs_per_hour=3600, timeout_s=0, repeats=1.0, error_rate=0.0)
"""A pair a second, so that seconds are pairs."""
TYPICAL = Traffic(pairs_per_hour=30 * 60)
COMPANY = ("timeouts", "slow_share", "latency_median")
"""Three rules beside one, because ROLLBACK pays for each."""


def requiring(policy: Policy, *names: str) -> Policy:
    rules = {rule.name: rule.promise(policy) for rule in RULES}
    return policy.model_copy(
        update={name: one.model_copy(update={"required": name in names}) for name, one in rules.items()}
    )


@cache
def default() -> Plan:
    return plan(Policy(), TYPICAL)


def of(found: Plan, rule: str) -> Forecast:
    return next(one for one in found.rules if one.rule == rule)


def close(span: Span, median: float, most: float) -> bool:
    return span.half_s == pytest.approx(median, rel=0.35) and span.most_s == pytest.approx(most, rel=0.35)


class TestPublishedSizes:
    """Pairs until half, and four in five, of the simulated runs had decided, of the same tests with somewhat other bets."""

    @pytest.mark.parametrize(
        ("rate", "median", "most"), [(0.005, 1050, 1650), (0.01, 1650, 2750), (0.025, 3750, 6200)]
    )
    def test_go_on_errors_without_harm(self, rate, median, most):
        found = plan(requiring(BARE, "errors"), replace(A_SECOND, error_rate=rate))
        assert close(of(found, "errors").go, median, most)

    def test_rollback_on_errors(self):
        found = plan(requiring(BARE, "errors", *COMPANY), replace(A_SECOND, error_rate=0.002))
        sizes = ((7075, 10_675), (1950, 3225), (750, 1075), (325, 450))
        assert EFFECTS == (1.5, 2, 3, 5)
        assert all(close(one, *size) for one, size in zip(of(found, "errors").rollback, sizes, strict=True))

    def test_rollback_on_the_median(self):
        """The arms' latencies are as alike as makes 52.7 % of the pairs worse at 75 ms."""
        policy = requiring(BARE.model_copy(update={"alpha": 0.01}), "latency_median")
        found = of(plan(policy, replace(A_SECOND, alike=0.62)), "latency_median").rollback
        assert close(found[0], 3775, 5750) and close(found[1], 950, 1525)

    @pytest.mark.parametrize(
        ("noise", "go", "rollback"),
        [
            (0.0204, (450, 700), (1100, 1850)),
            (0.0877, (1350, 2275), (2725, 4350)),
            (0.2, (2725, 4525), (4400, 6800)),
        ],
    )
    def test_disagreement_by_its_noise(self, noise, go, rollback):
        policy = requiring(BARE, "disagreement", "errors", "timeouts", "slow_share")
        found = of(plan(policy, replace(A_SECOND, noise=noise)), "disagreement")
        assert close(found.go, *go) and close(found.rollback[1], *rollback)


class TestAgainstTheJudge:
    """Runs drawn pair by pair and judged every twenty minutes."""

    POLICY = requiring(
        Policy(warmup=900, minimum_span=3600, minimum_pairs=100), "errors", "slow_share", "latency_median"
    )
    TRAFFIC = replace(TYPICAL, timeout_s=60.0)

    def decided(self, verdict: Verdict, errors: float) -> float:
        """The median of the hours until the judge said so."""
        hours = [self.hours(verdict, errors, seed) for seed in range(7)]
        return float(np.median(hours))

    def hours(self, verdict: Verdict, errors: float, seed: int) -> float:
        chance, count = np.random.default_rng(seed), 30 * 60 * 12
        at = np.cumsum(chance.exponential(2.0, count))
        bad, ok = (list(Outcome).index(one) for one in (Outcome.HTTP_ERROR, Outcome.OK))

        def arm(rate: float) -> dict[str, np.ndarray]:
            outcome = np.where(chance.random(count) < rate, bad, ok)
            return {"outcome": outcome, "e2e_s": 0.8 * np.exp(0.6 * chance.normal(size=count))}

        table = of_arrays(at, baseline=arm(0.005), candidate=arm(0.005 + errors))
        looks = [1200.0 * look for look in range(1, 36)]
        found = history(table, self.POLICY, looks=looks, timeout_s=60.0)
        return next(look.at for look in found if look.verdict is verdict) / 3600

    def test_rollback(self):
        forecast = of(plan(self.POLICY, self.TRAFFIC), "errors").rollback[2].half_s
        assert forecast / 3600 == pytest.approx(self.decided(Verdict.ROLLBACK, 0.03), rel=0.35)

    def test_go(self):
        forecast = plan(self.POLICY, self.TRAFFIC).go.half_s
        assert forecast / 3600 == pytest.approx(self.decided(Verdict.GO, 0.0), rel=0.35)


class TestLaws:
    def test_equal_arguments_give_an_equal_plan(self):
        policy = requiring(Policy(), "errors", "latency_p95")
        assert plan(policy, TYPICAL, seed=3) == plan(policy, TYPICAL, seed=3)

    def test_more_traffic_and_more_harm_take_no_longer(self):
        slow, fast = (
            plan(requiring(Policy(), "errors"), replace(TYPICAL, pairs_per_hour=n)) for n in (600, 6000)
        )
        for one, other in zip((slow.go, *slow.rollback), (fast.go, *fast.rollback), strict=True):
            assert other.half_s <= one.half_s * 1.05
        halves = [one.half_s for one in slow.rollback]
        assert halves == sorted(halves, reverse=True)

    def test_half_of_the_runs_come_before_four_in_five(self):
        for one in default().rules:
            for span in (one.go, *one.rollback):
                assert span.half_s <= (span.most_s or span.half_s)

    def test_only_what_is_required_is_forecast(self):
        assert [one.rule for one in plan(requiring(Policy(), "errors"), TYPICAL).rules] == ["errors"]

    def test_conversations_count_as_one(self):
        one, four = (
            of(
                plan(requiring(BARE, "errors"), replace(TYPICAL, turns=turns, timeout_s=0)), "errors"
            ).go.half_s
            for turns in (1.0, 4.0)
        )
        assert four == pytest.approx(4 * one, rel=0.2)

    def test_one_analysis_at_the_end_needs_fewer_pairs(self):
        policy = requiring(BARE, "errors")
        fixed = plan(policy.model_copy(update={"analysis": "fixed"}), replace(A_SECOND, error_rate=0.005))
        assert fixed.go.half_s < plan(policy, replace(A_SECOND, error_rate=0.005)).go.half_s

    def test_harm_at_a_margin_of_nothing_is_never_found(self):
        policy = requiring(Policy(errors={"margin": 0}), "errors")
        found = of(plan(policy, TYPICAL), "errors")
        assert all(span.half_s is None for span in (found.go, *found.rollback))
        assert found.wider > 0


class TestTheWhole:
    def test_go_waits_for_the_span_the_warm_up_and_the_timeout(self):
        found = default()
        assert found.go.half_s == pytest.approx(86_400 + 900 + 600, rel=0.05)

    def test_go_waits_for_the_least_number_of_pairs(self):
        policy = requiring(Policy(minimum_span=0, minimum_pairs=50_000), "timeouts")
        assert plan(policy, TYPICAL).go.half_s > 50_000 / 30 * 60

    def test_rollback_is_that_of_the_rule_that_takes_longest(self):
        found = default()
        assert found.rollback[1].half_s == max(one.rollback[1].half_s for one in found.rules)

    def test_nothing_required_is_never_go(self):
        found = plan(requiring(Policy()), TYPICAL)
        assert found.rules == () and found.go.half_s is None


class TestWhatWouldHelp:
    POLICY = requiring(Policy(), "errors", "disagreement")
    THIN = replace(TYPICAL, pairs_per_hour=0.2 * 60)

    def said(self, rule: str, mirrored: float | None = 0.01, **more: float) -> str:
        found = plan(self.POLICY, replace(self.THIN, **more))
        return remedy(of(found, rule), found, mirrored) or ""

    def test_nothing_where_it_can_be_decided(self):
        found = plan(self.POLICY, TYPICAL)
        assert all(remedy(one, found, 0.1) is None for one in found.rules)

    def test_a_margin_that_can_be_decided_within_14_days(self):
        found = of(plan(self.POLICY, self.THIN), "disagreement")
        wider = self.POLICY.disagreement.model_copy(update={"margin": found.wider})
        again = plan(self.POLICY.model_copy(update={"disagreement": wider}), self.THIN)
        assert found.go.most_s is None and of(again, "disagreement").go.most_s is not None

    def test_the_traffic_that_decides_within_48_hours(self):
        found = of(plan(self.POLICY, self.THIN), "disagreement")
        more = replace(self.THIN, pairs_per_hour=self.THIN.pairs_per_hour * found.faster)
        assert of(plan(self.POLICY, more), "disagreement").go.most_s <= 1.2 * SOON_S

    def test_more_of_the_requests(self):
        assert "widen the margin to" in self.said("errors", pairs_per_hour=2.0, error_rate=0.009)
        assert "mirror" in self.said("errors", pairs_per_hour=2.0) and "(shadow.percent)" in self.said(
            "errors", pairs_per_hour=2.0
        )

    def test_more_repeats_first_where_they_suffice(self):
        assert "(shadow.repeat_baseline)" in self.said("disagreement", pairs_per_hour=60.0, repeats=0.05)

    def test_more_traffic_where_all_of_it_is_too_little(self):
        assert "mirror everything of" in self.said("errors", mirrored=1.0, pairs_per_hour=2.0)

    def test_pairs_a_minute_where_the_share_is_not_known(self):
        assert "pairs a minute" in self.said("errors", mirrored=None, pairs_per_hour=2.0)

    def test_without_repeats_the_rule_says_why(self):
        assert (
            self.said("disagreement", repeats=0.0)
            == "no baseline repeats among the pairs that count: the noise floor is unknown"
        )

    def test_a_baseline_that_disagrees_with_itself_cannot_be_gated_on(self):
        assert "too noisy" in self.said("disagreement", noise=0.5)

    def test_errors_above_the_margin_of_other_rules_leave_only_a_wider_one(self):
        """A candidate that failed counts as harm towards GO of the rules on answers: no traffic helps against it."""
        policy = requiring(Policy(), "refusals")
        found = plan(policy, replace(TYPICAL, error_rate=0.02))
        said = remedy(of(found, "refusals"), found, 0.1)
        assert said is None or ("widen" in said and "mirror" not in said)


class TestMeasured:
    def test_a_run_tells_what_its_traffic_was_like(self):
        pairs = run(4000, 5, base_errors=0.02, spread=0.5, streamed=1.0)
        found = measured(columns([replace(pair, session=f"s{n // 4}") for n, pair in enumerate(pairs)]))
        assert found["error_rate"] == pytest.approx(0.02, abs=0.01)
        assert found["latency_s"] == pytest.approx(0.12, rel=0.05)
        assert found["ttft_s"] == pytest.approx(0.036, rel=0.05)
        assert found["spread"] == pytest.approx(0.5, rel=0.1)
        assert found["alike"] == pytest.approx(0.81, abs=0.05)
        assert found["turns"] == pytest.approx(4, rel=0.05)
        assert found["repeats"] == pytest.approx(0.4, abs=0.05)

    def test_a_few_pairs_tell_nothing(self):
        assert set(measured(columns(run(50, 5)))) <= {"repeats"}
        assert measured(columns([])) == {}

    def test_pairs_like_the_traffic_are(self):
        traffic = replace(TYPICAL, error_rate=0.02, noise=0.1, alike=0.5)
        table = pairs_like(traffic, {"errors": 0.03, "disagreement": 0.05}, seed=1)
        found = measured(table)
        assert (found["error_rate"], found["latency_s"]) == pytest.approx((0.02, 0.8), rel=0.02)
        assert (found["spread"], found["alike"]) == pytest.approx((0.6, 0.5), rel=0.03)
        assert table.candidate.failed.mean() == pytest.approx(0.05, rel=0.02)
        assert (table.differs > 0).mean() == pytest.approx(0.15, rel=0.02)


class TestShown:
    FOUND = plan(requiring(Policy(), "errors", "disagreement"), replace(TYPICAL, pairs_per_hour=30.0))
    ASKED = Asked(policy=Policy(), sources={"error_rate": "given"}, mirrored=0.1, notes=("A note.",))

    def test_a_screen_has_a_row_a_rule_and_what_it_rests_on(self):
        text = render_terminal(self.FOUND, self.ASKED, width=80)
        assert max(map(len, text.splitlines())) <= 80
        assert all(
            word in text for word in ("errors", "disagreement", "VERDICT", "A note.", "given: errors of")
        )
        assert ">336" in text and "cannot be decided within 14 days" in text

    def test_programs_read_hours_and_null(self):
        data = render_json(self.FOUND, self.ASKED)
        errors, disagreement = data["rules"]
        assert errors["go"]["half_hours"] > 0 and errors["rollback"][0]["margins"] == 1.5
        assert disagreement["go"]["most_hours"] is None and "widen" in disagreement["advice"]
        assert (
            data["traffic"]["from"]["error_rate"] == "given" and data["traffic"]["from"]["noise"] == "assumed"
        )
