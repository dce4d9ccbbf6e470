"""The drawn distributions are the empirical ones."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from reports.curves import curves
from tests.reports.builders import gathered
from tests.reports.made import answer, failure, run, same

_seconds = st.lists(st.integers(0, 50).map(lambda tick: tick / 10), min_size=1, max_size=400)


@given(_seconds)
def test_each_point_is_the_share_of_values_at_or_below_it(values: list[float]) -> None:
    pairs = [replace(same(1)[0], candidate=answer(value)) for value in values]
    curve = next(one for one in curves(gathered(pairs)) if (one.metric, one.arm) == ("e2e", "candidate"))
    for seconds, share in zip(curve.seconds, curve.share, strict=True):
        assert abs(share - sum(value <= seconds for value in values) / len(values)) < 1e-6
    assert curve.seconds[-1] == max(values) and curve.share[-1] == 1
    assert all(a < b for a, b in pairwise(curve.seconds))


def test_a_large_run_is_drawn_with_few_points_and_a_dense_tail() -> None:
    curve = next(one for one in curves(gathered(run(5_000, 1))) if one.metric == "e2e")
    assert len(curve.seconds) < 200 and sum(share > 0.99 for share in curve.share) >= 30


def test_failed_requests_have_no_latency() -> None:
    pairs = [replace(one, candidate=failure(e2e_s=99.0)) for one in same(3)]
    assert {curve.arm.value for curve in curves(gathered(pairs))} == {"baseline", "baseline_repeat"}


def test_gaps_of_all_streams_make_one_curve() -> None:
    pairs = [replace(one, candidate=answer(itl_s=(0.1, 0.2))) for one in same(2)]
    (curve,) = [one for one in curves(gathered(pairs)) if one.metric == "itl"]
    assert curve.seconds == (0.1, 0.2) and curve.share == (0.5, 1.0)
