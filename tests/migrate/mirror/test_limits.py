"""Budgets of the candidate and the guard of the baseline, with the clock as an argument."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from migrate.config import Limits
from migrate.mirror.limits import Budget, RepeatGuard


def test_copies_in_flight() -> None:
    budget = Budget(Limits(in_flight=2))
    budget.in_flight = 2
    assert budget.refusal(0.0) == "in_flight_limit"
    budget.in_flight = 1
    assert budget.refusal(0.0) is None


@given(st.lists(st.floats(0, 30), min_size=1, max_size=60), st.integers(1, 5))
def test_no_minute_ever_sees_more_requests_than_allowed(gaps: list[float], limit: int) -> None:
    budget = Budget(Limits(requests_per_minute=limit))
    now, sent = 1_000.0, []
    for gap in gaps:
        now += gap
        if budget.refusal(now) is None:
            budget.sent(now)
            sent.append(now)
    for start in sent:
        assert sum(start <= at < start + 60 for at in sent) <= limit


def test_tokens_of_a_day_come_back_at_midnight_utc() -> None:
    budget = Budget(Limits.model_validate({"tokens_per_day": "1k"}))
    noon, midnight = 86_400 * 10 + 43_200.0, 86_400 * 11.0
    budget.spend(900, 99, noon)
    assert budget.refusal(noon) is None
    budget.spend(0, 1, noon)
    assert budget.refusal(midnight - 1) == "token_budget"
    assert budget.refusal(midnight) is None


def test_no_limits_refuse_nothing() -> None:
    budget = Budget(Limits())
    for now in range(1_000):
        budget.sent(float(now))
        budget.spend(10**9, 10**9, float(now))
    assert budget.refusal(999.0) is None


def test_an_overloaded_baseline_stops_repeats_at_once_and_for_longer_when_it_recurs() -> None:
    guard = RepeatGuard(pause=60)
    assert not guard.paused(0.0)
    guard.saw(status=503, head_s=0.1, now=100.0)
    assert guard.paused(159.9) and not guard.paused(160.0) and "503" in (guard.reason or "")
    guard.saw(status=429, head_s=0.1, now=161.0)
    assert guard.paused(161.0 + 119.9) and not guard.paused(161.0 + 120.0)
    guard.saw(status=429, head_s=0.1, now=10_000.0)
    assert guard.paused(10_059.9) and not guard.paused(10_060.0)


def test_a_baseline_that_slows_down_stops_repeats() -> None:
    guard = RepeatGuard()
    for _ in range(50):
        guard.saw(status=200, head_s=0.2, now=0.0)
    for _ in range(49):
        guard.saw(status=200, head_s=0.5, now=1.0)
    assert not guard.paused(1.0)
    guard.saw(status=200, head_s=0.5, now=1.0)
    assert guard.paused(1.0) and "slowed" in (guard.reason or "")


def test_noise_of_a_few_milliseconds_is_no_slowing() -> None:
    guard = RepeatGuard()
    for head_s in [0.002] * 50 + [0.02] * 500:
        guard.saw(status=200, head_s=head_s, now=0.0)
    assert not guard.paused(0.0)
