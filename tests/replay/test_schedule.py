"""When requests are due: every schedule as a property of its moments."""

from __future__ import annotations

import math
from itertools import islice, pairwise
from statistics import mean, pstdev

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replay import schedule
from replay.histogram import Histogram

RATES = st.floats(0.01, 1e4)


@given(st.lists(st.floats(0, 1e9), max_size=50), st.floats(0.01, 100))
def test_as_recorded_keeps_every_gap_and_never_goes_back(times: list[float], speed: float) -> None:
    due = list(schedule.recorded(times, speed=speed))
    assert len(due) == len(times) and all(a <= b for a, b in pairwise(due))
    if times == sorted(times):
        for at, moment in zip(times, due, strict=True):
            assert moment == pytest.approx((at - times[0]) / speed, abs=1e-6)


def test_a_clock_that_was_set_back_does_not_stall_what_follows() -> None:
    assert list(schedule.recorded([10.0, 11.0, 5.0, 12.0])) == [0.0, 1.0, 1.0, 2.0]


@pytest.mark.parametrize("burstiness", [0.5, 1.0, 2.0])
def test_gaps_have_the_mean_and_the_spread_that_were_asked_for(burstiness: float) -> None:
    due = list(islice(schedule.steady(20, burstiness=burstiness, seed=7), 40_001))
    gaps = [later - earlier for earlier, later in pairwise(due)]
    assert mean(gaps) == pytest.approx(1 / 20, rel=0.05)
    assert pstdev(gaps) / mean(gaps) == pytest.approx(burstiness, rel=0.05)


def test_no_burstiness_is_a_constant_rate_without_drift() -> None:
    assert next(islice(schedule.steady(200, burstiness=0), 1_000_000, None)) == 5_000.0


def test_a_seed_makes_a_schedule_again_and_another_another() -> None:
    one, same, other = (list(islice(schedule.steady(5, seed=seed), 20)) for seed in (1, 1, 2))
    assert one == same != other


@settings(deadline=None)
@given(RATES, RATES, st.floats(0.1, 1e3))
def test_a_ramp_sends_what_its_area_holds(start: float, end: float, seconds: float) -> None:
    due = list(islice(schedule.ramp(start, end, seconds), 500))
    assert all(a <= b + 1e-9 for a, b in pairwise(due))
    for n, at in enumerate(due):
        within = min(at, seconds)
        sent = start * within + (end - start) / seconds * within**2 / 2 + end * (at - within)
        assert sent == pytest.approx(n, rel=1e-6, abs=1e-6)


def test_a_sweep_keeps_each_rate_for_its_time_and_ends() -> None:
    due = list(schedule.sweep([10, 100, 20], 30, burstiness=0))
    counts = [sum(start <= at < start + 30 for at in due) for start in (0, 30, 60)]
    assert counts == [300, 3000, 600] and due == sorted(due) and len(due) == 3900


@pytest.mark.parametrize("rate", [0.0, -1.0, math.nan])
def test_a_rate_that_is_none_is_refused(rate: float) -> None:
    for make in (lambda: schedule.steady(rate), lambda: next(schedule.ramp(rate, 1, 1))):
        with pytest.raises(ValueError, match="rate has to be above 0"):
            make()


@given(st.lists(st.floats(1e-6, 1e4), min_size=1, max_size=200), st.floats(0.01, 1))
def test_a_histogram_is_right_within_a_hundredth(values: list[float], share: float) -> None:
    seen = Histogram()
    for value in values:
        seen.add(value)
    exact = sorted(values)[max(1, math.ceil(share * len(values))) - 1]
    assert seen.quantile(share) == pytest.approx(exact, rel=0.0101) and seen.count == len(values)


def test_a_histogram_of_nothing_has_no_quantile() -> None:
    assert Histogram().quantile(0.5) is None
