"""A run is one run: its clock, its silences, its versions, its baseline."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from replay.exchange import Outcome
from reports.arrays import of_arrays
from reports.columns import columns
from reports.judge import judge_columns
from reports.judgement import Verdict
from reports.pairing import pair_up
from reports.policy import Policy
from reports.versions import last_change
from tests.reports.builders import exchange
from tests.reports.made import REHEARSAL, START, answer, changed, check, failure, run, same, verdict

DAY = 86_400.0
OK, ERROR = (list(Outcome).index(one) for one in (Outcome.OK, Outcome.HTTP_ERROR))


def message(found, code):
    return next(one.message for one in found.checks if one.code == code)


class TestClock:
    def test_pairs_from_the_future_are_no_evidence_and_a_hold(self):
        pairs = same(2000)
        late = [replace(one, id=f"x{one.id}", at=one.at + 10**8) for one in pairs[:3]]
        found = verdict(pairs + late)
        assert (found.verdict, found.code, found.ledger["in_future"]) == (Verdict.HOLD, "clock", 3)
        assert found.reason.startswith("3 pairs were dispatched after the moment of judging")

    def test_a_clock_that_jumped_ahead_makes_no_day_of_ten_minutes(self):
        pairs = same(12_000)
        jumped = pairs[:6_000] + [replace(one, at=one.at + DAY) for one in pairs[6_000:]]
        found = verdict(jumped, Policy(warmup=0))
        assert (found.verdict, found.code) == (Verdict.HOLD, "minimum_span")
        assert found.reason.startswith("The pairs span 10 min, 24 h required")
        (said,) = (one for one in found.checks if one.code == "silence")
        assert said.passed and "no answer came for 24 h at a time, 24 h in all" in said.message

    def test_a_night_without_requests_is_none(self):
        pairs = same(3_000, rate=0.05)
        quiet = [replace(one, at=one.at + (8 * 3600 if n > 1_500 else 0)) for n, one in enumerate(pairs)]
        found = verdict(quiet, Policy(warmup=0))
        assert found.code not in ("silence", "minimum_span")
        assert not [one for one in found.checks if one.code == "silence"]

    def test_office_hours_make_a_day_after_three(self):
        pairs = same(9 * 360, rate=0.1)
        days = [
            [replace(one, id=f"{day}-{one.id}", at=one.at + day * DAY) for one in pairs] for day in range(3)
        ]
        two_days = [*days[0], *days[1]]
        two, three = verdict(two_days, Policy(warmup=0)), verdict([*two_days, *days[2]], Policy(warmup=0))
        assert (two.verdict, two.code) == (Verdict.HOLD, "minimum_span")
        assert three.verdict is Verdict.GO


class TestVersion:
    def serving(self, version, **more):
        return answer(version=version, **more)

    def test_a_safety_stop_of_another_version_is_over(self):
        pairs = changed(same(3000), lambda n: 200 <= n < 230, candidate=failure(), differs=None)
        pairs = changed(pairs, lambda n: n < 200, candidate=self.serving("m 1"))
        assert verdict(pairs[:1000]).code == "halt"
        pairs = changed(pairs, lambda n: 230 <= n < 400, candidate=self.serving("m 1"))
        assert verdict(changed(pairs, lambda n: n >= 400, candidate=self.serving("m 2"))).code != "halt"

    def test_evidence_begins_anew_with_the_candidates_new_version(self):
        pairs = changed(same(3000), lambda n: n < 1000, candidate=failure(), differs=None)
        pairs = changed(pairs, lambda n: 900 <= n < 1000, candidate=self.serving("m 1"))
        pairs = changed(pairs, lambda n: n >= 1000, candidate=self.serving("m 2"))
        found = verdict(pairs[890:])
        assert found.verdict is Verdict.GO
        assert found.ledger["other_version"] == 110
        assert "the candidate changed from m 1 to m 2 at 2023-11-14 22:14 UTC" in message(
            found, "version_changed"
        )

    def test_a_new_version_has_to_bring_its_own_evidence(self):
        pairs = changed(same(3000), lambda n: n < 2900, candidate=self.serving("m 1"))
        pairs = changed(pairs, lambda n: n >= 2900, candidate=self.serving("m 2"))
        found = verdict(pairs)
        assert (found.verdict, found.code) == (Verdict.HOLD, "version_changed")
        assert "2,900 pairs before do not count, 100 since then" in found.reason

    def test_a_change_of_the_baseline_is_one_too(self):
        pairs = changed(same(3000), lambda n: n < 2900, baseline=self.serving("a"))
        pairs = changed(pairs, lambda n: n >= 2900, baseline=self.serving("b"))
        assert verdict(pairs).reason.startswith("The baseline changed from a to b")

    def test_a_warm_up_follows(self):
        pairs = changed(same(3000), lambda n: n < 1000, candidate=self.serving("m 1"))
        pairs = changed(pairs, lambda n: n >= 1000, candidate=self.serving("m 2"))
        found = verdict(pairs, REHEARSAL.model_copy(update={"warmup": 30}))
        assert (found.ledger["other_version"], found.ledger["warm_up"]) == (1000, 600)

    def test_a_roll_out_ends_with_the_last_answer_of_the_old_version(self):
        old, new = self.serving("m 1"), self.serving("m 2")
        pairs = same(3000)
        pairs = changed(pairs, lambda n: n < 1000 or (n < 1200 and n % 2 == 0), candidate=old)
        pairs = changed(pairs, lambda n: n >= 1200 or (n >= 1000 and n % 2 == 1), candidate=new)
        assert verdict(pairs).ledger["other_version"] == 1199

    @pytest.mark.parametrize("seed", range(5))
    def test_deployments_that_a_relay_draws_from_are_no_change(self, seed):
        drawn = np.random.default_rng(seed).choice(6, 3000, p=[0.5, 0.3, 0.15, 0.04, 0.008, 0.002])
        pairs = [replace(p, candidate=self.serving(f"fp{n}")) for p, n in zip(same(3000), drawn, strict=True)]
        assert last_change(columns(pairs)) is None

    def test_a_long_conversation_with_one_deployment_is_no_change(self):
        pairs = changed(same(3000), lambda n: True, candidate=self.serving("m 1"))
        pairs = changed(pairs, lambda n: n >= 2970, candidate=self.serving("m 2"), session="a")
        assert last_change(columns(pairs)) is None

    def test_is_what_the_answer_states(self):
        one = exchange(1)
        again = replace(one.candidate, answer=replace(one.candidate.answer, fingerprint="vllm-0.32-tp1"))
        assert pair_up(replace(one, candidate=again)).candidate.version == "m vllm-0.32-tp1"
        assert pair_up(replace(one, candidate=replace(one.candidate, answer=None))).candidate.version is None

    def test_another_model_that_is_asked_for_is_no_change(self):
        pairs = changed(same(3000), lambda n: n < 1500, candidate=self.serving("a"), labels={"model": "a"})
        pairs = changed(pairs, lambda n: n >= 1500, candidate=self.serving("b"), labels={"model": "b"})
        assert last_change(columns(pairs)) is None


def two_days(seed, *, level, errors=0.0, hours=48.0, cycle=0.0):
    """Two arms alike at 6 pairs a minute; ``level`` and ``errors`` are of the later half, ``cycle`` of each day."""
    chance, size = np.random.default_rng(seed), int(hours * 360)
    at = np.sort(chance.uniform(0, hours * 3600, size))
    late = at > hours * 1800
    usual = np.where(late, level, 1.0) * np.exp(cycle * np.sin(2 * np.pi * (at / DAY + chance.random())))
    shared = np.exp(0.6 * chance.normal(size=size))
    lost = chance.random(size) < np.where(late, errors, 0.0)

    def arm():
        seconds = 0.8 * usual * shared * np.exp(0.2 * chance.normal(size=size))
        return {
            "outcome": np.where(lost, ERROR, OK).astype(np.int8),
            "e2e_s": np.where(lost, np.nan, seconds),
        }

    same_answers = np.zeros(size, np.int8)
    table = of_arrays(
        START + at,
        baseline=arm(),
        candidate=arm(),
        repeat=arm(),
        differs=same_answers,
        repeat_differs=same_answers,
    )
    return judge_columns(table, Policy(), now=START + 10**6, final=True)


class TestDrift:
    def test_a_baseline_that_became_slower_is_another(self):
        found = two_days(1, level=2.5)
        assert (found.verdict, found.code) == (Verdict.HOLD, "baseline_drift")
        assert found.reason.startswith("The baseline took more than 2 times as long")

    def test_a_baseline_that_became_faster_is_another(self):
        assert not check(two_days(1, level=0.4), "baseline_drift")

    def test_a_baseline_that_began_to_fail_is_another(self):
        assert "failed more often" in message(two_days(1, level=1.0, errors=0.1), "baseline_drift")

    @pytest.mark.parametrize("hours", [24.5, 30, 36, 48, 60, 72])
    def test_a_daily_cycle_is_no_drift(self, hours):
        cycles = [two_days(seed, level=1.0, hours=hours, cycle=0.5) for seed in range(5)]
        assert all(check(found, "baseline_drift") for found in cycles)

    def test_what_moves_both_arms_a_little_is_no_drift(self):
        assert check(two_days(1, level=1.3), "baseline_drift")

    def test_short_runs_have_to_show_more(self):
        assert check(two_days(1, level=2.5, hours=6), "baseline_drift")
        assert not check(two_days(1, level=4.0, hours=6), "baseline_drift")

    def test_ordinary_runs_have_none(self):
        assert all(check(verdict(run(700, seed)), "baseline_drift") for seed in range(20))
