from __future__ import annotations

import numpy as np
import pytest

from replay.exchange import Arm
from reports.metrics import distributions, quantiles
from tests.reports.builders import gathered
from tests.reports.made import answer, changed, failure, run, same

VALUES = np.random.default_rng(7).exponential(size=2000)


def test_values_are_the_nearest_ranks():
    p50, p95, p99 = quantiles([float(n) for n in range(1, 1001)])
    assert (p50.value, p95.value, p99.value) == (500, 950, 990)


def test_each_has_an_interval_around_it():
    for found in quantiles(VALUES):
        assert found.low < found.value < found.high


@pytest.mark.parametrize(("count", "known"), [(0, 0), (19, 0), (20, 2), (99, 2), (100, 3)])
def test_a_tail_is_not_named_from_few_samples(count, known):
    found = quantiles(VALUES[:count])
    assert [one.value is not None for one in found] == [True] * known + [False] * (3 - known)


def test_a_p99_of_a_few_hundred_has_no_upper_end():
    assert quantiles(VALUES[:300], [0.99])[0].high is None
    assert quantiles(VALUES[:300], [0.99])[0].low is not None


def test_constant_latencies_are_no_nan():
    (found,) = quantiles([0.25] * 200, [0.5])
    assert (found.low, found.value, found.high) == (0.25, 0.25, 0.25)


@pytest.mark.parametrize("broken", [float("nan"), float("inf"), -0.1])
def test_a_number_that_is_none_is_refused(broken):
    with pytest.raises(ValueError, match="NaN"):
        quantiles([0.1] * 50 + [broken])


def test_values_of_one_request_do_not_count_as_many_requests():
    (alone,), (clustered,) = quantiles(VALUES, [0.5]), quantiles(VALUES, [0.5], units=100)
    assert clustered.value == alone.value
    assert clustered.high - clustered.low > 2 * (alone.high - alone.low)


class TestDistributions:
    def test_are_there_for_every_metric_and_arm(self):
        found = distributions(gathered(run(300, 1)))
        assert [(one.metric, one.arm) for one in found] == [
            (metric, arm) for metric in ("ttft", "itl", "e2e") for arm in Arm
        ]

    def test_leave_out_what_did_not_happen(self):
        pairs = changed(same(100), lambda n: n < 10, candidate=failure())
        e2e = {one.arm: one for one in distributions(gathered(pairs)) if one.metric == "e2e"}
        assert (e2e[Arm.BASELINE].requests, e2e[Arm.CANDIDATE].requests) == (100, 90)
        ttft = next(one for one in distributions(gathered(pairs)) if one.metric == "ttft")
        assert (ttft.requests, ttft.quantiles[0].value) == (0, None)

    def test_count_gaps_and_the_requests_they_come_from(self):
        pairs = same(50, candidate=answer(itl_s=(0.01, 0.02, 0.03)))
        itl = next(o for o in distributions(gathered(pairs)) if (o.metric, o.arm) == ("itl", Arm.CANDIDATE))
        assert (itl.requests, itl.samples, itl.quantiles[0].value) == (50, 150, 0.02)


def test_every_number_of_requests_and_values_has_an_interval_within_the_values():
    """Also where size / units * units is more than size in floating point."""
    values = np.arange(40_000, dtype=float)
    for units in range(500, 1_000):
        for size in range(35 * units, 35 * units + 20, 3):
            (one,) = quantiles(values[:size], [0.99], units=units)
            assert one.low <= one.value <= (size if one.high is None else one.high)
