"""What could not be read: among large requests, and against GO."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from reports.judgement import Verdict
from reports.policy import Policy
from tests.reports.made import MISSING, REHEARSAL, answer, changed, check, only, same, verdict, with_margin


def message(found, code):
    return next(one.message for one in found.checks if one.code == code)


def long_ones(count=4000):
    """A tenth of the answers is long."""
    return [
        replace(p, baseline=answer(output_tokens=900 if n % 10 == 0 else 50 + n % 40))
        for n, p in enumerate(same(count))
    ]


class TestSizes:
    def test_pairs_that_are_missing_among_long_answers(self):
        pairs = changed(long_ones(), lambda n: n % 100 == 0, candidate=MISSING, differs=None)
        found = verdict(pairs)
        assert check(found, "coverage") and found.code == "size_coverage"
        assert found.reason.startswith(
            "40 of 400 pairs with an answer among the longest tenth are missing (10.0%)"
        )

    def test_pairs_that_are_missing_among_all(self):
        pairs = changed(long_ones(), lambda n: n % 101 == 0, candidate=MISSING, differs=None)
        assert check(verdict(pairs), "size_coverage")

    def test_pairs_that_are_missing_among_long_prompts(self):
        pairs = [
            replace(p, labels={"prompt_length": "long" if n % 20 == 0 else "short"})
            for n, p in enumerate(same(4000))
        ]
        lost = changed(pairs, lambda n: n % 100 == 0, candidate=MISSING, differs=None)
        assert "a prompt of long are missing (20.0%)" in verdict(lost).reason

    def test_long_answers_that_were_not_scored(self):
        pairs = changed(long_ones(), lambda n: n % 100 == 0, differs=None)
        assert "not scored" in message(verdict(pairs), "size_coverage")
        assert check(verdict(pairs, only("errors", policy=REHEARSAL)), "size_coverage")


class TestSensitivity:
    def test_go_says_how_far_it_is_from_failing(self):
        pairs = changed(same(4000), lambda n: n % 400 == 0, candidate=MISSING, differs=None)
        found = verdict(pairs)
        assert found.verdict is Verdict.GO
        assert "GO would fail with " in message(found, "sensitivity") and "10 pairs are missing" in message(
            found, "sensitivity"
        )

    def test_missing_pairs_that_could_turn_it_are_a_hold(self):
        policy = with_margin("errors", only("errors", policy=REHEARSAL), margin=0.01)
        pairs = changed(same(1500), lambda n: n % 60 == 0, candidate=MISSING, differs=None)
        found = verdict(pairs, policy.model_copy(update={"minimum_coverage": 0.9}))
        assert (found.verdict, found.code) == (Verdict.HOLD, "sensitivity")
        assert "of the 25 missing pairs were failures of the candidate" in found.reason

    def test_the_point_is_exact(self):
        policy = only("errors", policy=REHEARSAL).model_copy(update={"minimum_coverage": 0.5})
        found = verdict(changed(same(1500), lambda n: n % 60 == 0, candidate=MISSING), policy)
        point = int(message(found, "sensitivity").split("if ")[1].split(" of")[0])
        for more, still in ((point - 1, True), (point, False)):
            kept = [p for n, p in enumerate(same(1500)) if n % 60 or n < 60 * more]
            pairs = changed(kept, lambda n: True)
            pairs = [replace(p, candidate=MISSING) if int(p.id) % 60 == 0 else p for p in pairs]
            assert (verdict(pairs, policy).verdict is Verdict.GO) is still

    def test_says_nothing_where_nothing_is_missing(self):
        assert all(one.code != "sensitivity" for one in verdict(same(2000)).checks)


class TestLoad:
    COUNTERS: ClassVar = {"passed": 20_000, "mirrored": 2_000, "not_sampled": 18_000, "mirror_ppm": 100_000}

    def test_go_says_what_the_candidate_carried(self):
        found = verdict(same(2000), counters=self.COUNTERS)
        assert found.verdict is Verdict.GO
        assert "at most 20 a second (busiest minute); the baseline carried about 200" in message(
            found, "load"
        )

    def test_says_nothing_where_it_carried_everything(self):
        assert all(one.code != "load" for one in verdict(same(2000)).checks)

    def test_mirroring_that_was_stopped_is_said(self):
        found = verdict(same(2000), counters=self.COUNTERS | {"paused": 70})
        assert "stopped for 70 requests" in message(found, "paused")

    def test_the_policy_cannot_silence_a_check(self):
        names = {one.code for one in verdict(same(2000)).checks}
        loose = Policy(minimum_span=0, minimum_pairs=1, warmup=0, minimum_coverage=0, trim_blocks=0)
        assert {one.code for one in verdict(same(2000), loose).checks} >= names - {"rehearsal", "silence"}
