"""Rules on an answer by itself: its format, refusals, its end, its tool calls, and what it costs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reports.judgement import Traits, Verdict
from tests.reports.made import QUICK, answer, changed, failure, rule, same, verdict, with_margin

PLAIN = Traits(
    characters=40,
    repetitive=False,
    truncated=False,
    refuses=False,
    calls_tools=True,
    valid_json=True,
    language="english",
)
GOOD = answer(traits=PLAIN)
WORSE = {
    "format_breaks": {"valid_json": False},
    "refusals": {"refuses": True},
    "truncations": {"truncated": True},
    "tool_calls": {"calls_tools": False},
}


def having(**parts):
    return answer(traits=replace(PLAIN, **parts))


def alike(count=1000):
    return same(count, baseline=GOOD, candidate=GOOD, repeat=GOOD)


@pytest.mark.parametrize("name", WORSE)
def test_a_candidate_that_serves_worse_is_a_rollback_by_that_name(name):
    found = verdict(changed(alike(), lambda n: n % 10 == 0, candidate=having(**WORSE[name])), QUICK)
    assert rule(found, name).verdict is Verdict.ROLLBACK
    assert rule(found, name).estimate == pytest.approx(0.1)
    assert [one.rule for one in found.rules if one.verdict is Verdict.ROLLBACK] == [name]


@pytest.mark.parametrize("name", WORSE)
def test_a_baseline_that_serves_worse_is_no_harm(name):
    found = verdict(changed(alike(), lambda n: n % 10 == 0, baseline=having(**WORSE[name])), QUICK)
    assert rule(found, name).verdict is Verdict.GO and rule(found, name).estimate == pytest.approx(-0.1)


@pytest.mark.parametrize("name", WORSE)
def test_who_fails_has_not_shown_to_serve_well_and_errors_of_both_cancel(name):
    failing = changed(alike(), lambda n: n % 40 == 0, candidate=failure())
    found = rule(verdict(failing, QUICK), name)
    assert found.verdict is Verdict.HOLD and found.estimate == 0 and found.high > 0.025
    both = changed(failing, lambda n: n % 40 == 1, baseline=failure())
    assert rule(verdict(both, QUICK), name).high < rule(verdict(failing, QUICK), name).high


def test_without_answers_the_rules_do_not_apply():
    found = verdict(same(500), QUICK)
    for name in (*WORSE, "cost"):
        assert not rule(found, name).applies and "does not apply" in rule(found, name).reason


def test_cost_is_judged_where_both_prices_are_known():
    dear = [answer(cost_usd=0.01), answer(cost_usd=0.013)]
    policy = with_margin("cost", QUICK, required=True)
    found = rule(verdict(same(500, baseline=dear[0], candidate=dear[1], repeat=dear[0]), policy), "cost")
    assert found.verdict is Verdict.ROLLBACK and found.estimate == pytest.approx(0.3)
    cheap = rule(verdict(same(500, baseline=dear[1], candidate=dear[0], repeat=dear[1]), policy), "cost")
    assert cheap.verdict is Verdict.GO


def test_the_rhythm_of_a_stream_is_judged_where_its_tokens_were_counted():
    quick = answer(1.0, 0.2, output_tokens=41, itl_s=(0.02,) * 40)
    slow = answer(1.8, 0.2, output_tokens=41, itl_s=(0.04,) * 40)
    pairs = same(500, streamed=True, baseline=quick, candidate=slow, repeat=quick)
    found = verdict(pairs, QUICK)
    assert rule(found, "tpot_median").verdict is Verdict.ROLLBACK
    assert rule(found, "tpot_median").estimate == pytest.approx(0.02)
    assert rule(found, "itl_median").estimate == pytest.approx(0.02)
    assert not rule(found, "itl_median").required


def test_a_candidate_that_does_not_tell_its_tokens_has_shown_nothing():
    told = answer(1.0, 0.2, output_tokens=41)
    silent = answer(1.0, 0.2)
    some = changed(
        same(2000, streamed=True, baseline=told, candidate=told, repeat=told),
        lambda n: n % 4,
        candidate=silent,
    )
    for pairs in (some, changed(some, lambda n: True, candidate=silent)):
        found = verdict(pairs, QUICK)
        assert found.verdict is Verdict.HOLD and found.code == "coverage"
        assert rule(found, "tpot_median").verdict is Verdict.HOLD
        assert "their answers do not tell what it reads" in found.reason
    untold = same(2000, streamed=True, baseline=silent, candidate=told, repeat=silent)
    assert not rule(verdict(untold, QUICK), "tpot_median").applies
