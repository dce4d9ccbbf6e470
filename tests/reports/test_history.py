"""What was said at earlier looks: nothing is seen before it came, and a ROLLBACK stays."""

from __future__ import annotations

import pytest

from reports.columns import columns
from reports.history import first_rollback, history
from reports.judge import take_in
from reports.judgement import Verdict
from reports.policy import Policy
from reports.standing import judge_since
from tests.reports.made import QUICK, START, answer, changed, failure, same

LONG = Policy(minimum_span=0, minimum_pairs=1, warmup=0, rehearsal=True)
HOURS = 6


def six_hours(worst: int = 2):
    """A pair in ten seconds; in hour ``worst`` one in eight fails, then never again."""
    pairs = same(HOURS * 360, rate=0.1)
    return changed(pairs, lambda n: worst * 360 <= n < worst * 360 + 360 and n % 8 == 0, candidate=failure())


def test_each_look_sees_what_had_come_by_then():
    pairs = six_hours()
    looks = [START + 3600 * hour for hour in range(1, HOURS + 1)]
    found = history(columns(pairs), LONG, looks=looks, timeout_s=0)
    assert [look.at for look in found] == looks
    assert [look.verdict for look in found[:2]] == [Verdict.HOLD, Verdict.GO]
    assert [(look.verdict, look.code) for look in found[2:]] == [(Verdict.ROLLBACK, "errors")] * 4


def test_an_answer_that_is_still_on_its_way_is_not_known_yet():
    slow = [*same(1), *changed(same(40, start=START + 1), lambda n: True, candidate=answer(300.0))]
    (before, after) = history(columns(slow), QUICK, looks=[START + 100, START + 400], timeout_s=0)
    assert before.code != after.code == "latency_median"


def test_a_rollback_stays_when_good_hours_have_thinned_its_evidence():
    pairs = [*six_hours(worst=0), *same(40_000, rate=0.1, start=START + HOURS * 3600)]
    found = judge_since(columns(pairs), LONG, since=None, now=START + 1e7, final=True)
    first = first_rollback(take_in(columns(pairs), LONG, now=START + 1e7, final=True))
    assert first is not None and (first.code, first.verdict) == ("errors", Verdict.ROLLBACK)
    assert first.at <= START + 2 * 3600
    assert found.verdict is Verdict.ROLLBACK and "until somebody acknowledges it" in found.reason


@pytest.mark.parametrize("pairs", [[], same(3), same(2000, rate=0.1)])
def test_what_was_never_broken_has_no_first_rollback(pairs):
    assert first_rollback(take_in(columns(pairs), LONG, now=START + 1e7, final=True)) is None


def test_one_analysis_at_the_end_has_no_earlier_looks():
    once = LONG.model_copy(update={"analysis": "fixed"})
    assert first_rollback(take_in(columns(six_hours()), once, now=START + 1e7, final=True)) is None
