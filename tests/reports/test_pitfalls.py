"""What other judges and libraries were seen to get wrong, by number: each has a test here or, where it is an ordinary case of
something, in the file of that. ``ELSEWHERE`` says where.

Statistics: 1 intervals without any error, 2 a test that is wrong at margins other than 0, 3 McNemar of equal
backends, 4 a p99 of few samples, 5 bootstrap of a p99, 6 an interval of constant latencies, 7 hourly looks, 8 a cold
candidate, 9 completed pairs only, 10 a closed loop hides a freeze, 11 unpaired tests of pairs.
Judges: 12 sparse errors by the minute, 13 severity that is not monotone, 14 a metric that throws, 15 nothing but
failures, 16 NaN read as 0, 17 an unknown metric, 18 a verdict that waits for a state, 19 raw against noise, 20 arms
swapped.
Output: 21 beyond what a model reads, 22 what similarity cannot see, 23 types of arguments, 24 spelling of arguments,
25 finish reasons, 26 arguments cut off, 27 negated comparators, 28 a temperature dropped, 29 order of a judge.
"""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from pydantic import ValidationError

from replay.exchange import Outcome
from reports import compare_texts
from reports.arrays import of_arrays
from reports.columns import columns
from reports.fixed import fixed
from reports.intervals import quantile_interval, share_interval
from reports.judge import judge
from reports.judgement import Verdict
from reports.policy import Policy
from reports.stats import anytime
from tests.reports.made import QUICK, START, answer, changed, failure, only, rule, same, verdict

TESTS = Path(__file__).parents[1]
ELSEWHERE = {
    3: "reports/test_stats.py::test_two_identical_backends_with_discordant_pairs_do_not_differ",
    4: "reports/test_stats.py::test_a_p99_of_few_samples_has_no_upper_end",
    6: "reports/test_rules.py::test_of_constant_latencies_is_decided",
    7: "reports/test_judge.py::test_hourly_looks_at_two_equal_backends_never_roll_back",
    8: "reports/test_judge.py::test_a_cold_candidate_is_left_out",
    9: "reports/test_judge.py::test_a_slow_candidate_does_not_look_fast_while_its_answers_are_pending",
    10: "migrate/test_replay.py::test_an_open_loop_shows_a_freeze_that_a_closed_one_hides",
    12: "reports/test_judge.py::test_a_few_errors_among_few_requests_are_weighed_by_requests_not_by_minutes",
    13: "reports/test_judge.py::test_total_failure_in_some_minutes_is_never_milder_than_in_fewer",
    15: "reports/test_judge.py::test_a_run_in_which_everything_failed_on_both_sides_is_no_success",
    20: "reports/test_document.py::test_baseline_and_candidate_are_never_swapped",
    21: "reports/test_compare_similarity.py::test_an_ending_beyond_what_a_model_reads_still_counts",
    23: "reports/test_compare_tools.py::test_types_are_kept_apart",
    24: "reports/test_compare_tools.py::test_spelling_of_the_arguments_does_not_matter",
    25: "reports/test_compare_transport.py::test_stop_is_tool_calls_where_the_call_was_forced",
    26: "reports/test_compare_tools.py::test_arguments_cut_at_the_limit_say_so",
    28: "reports/test_whole.py::test_who_draws_by_chance_and_who_does_not",
    29: "migrate/test_opinions.py::test_a_pair_is_asked_about_in_both_orders_at_temperature_0",
}


def test_every_number_has_a_test() -> None:
    here = {
        int(number) for number in re.findall(r"def test_(\d\d)_", Path(__file__).read_text(encoding="utf-8"))
    }
    assert sorted([*here, *ELSEWHERE]) == list(range(1, 30))
    for place in ELSEWHERE.values():
        path, name = place.split("::")
        assert re.search(rf"def {name}\(", (TESTS / path).read_text(encoding="utf-8")), place


@pytest.mark.parametrize("test", [anytime, fixed])
@pytest.mark.parametrize("counts", [(0, 1000, 0), (10, 990, 0), (0, 990, 10), (0, 0, 0), (0, 1, 0)])
def test_01_intervals_without_any_error_are_finite_and_not_empty(test, counts) -> None:
    low, high = share_interval(*counts, 0.05, test)
    assert -1 <= low < high <= 1
    if sum(counts) == 1000:
        assert high - low < 0.06


@pytest.mark.parametrize("margin", [0.01, 0.05, 0.2])
def test_02_the_exact_test_keeps_its_level_at_a_margin(margin) -> None:
    """The chance of every outcome of 30 pairs whose harm is at the margin, for many shares of discordant pairs."""
    size, alpha = 30, 0.05
    worse, better = (one.ravel() for one in np.mgrid[0 : size + 1, 0 : size + 1])
    worse, better = worse[worse + better <= size], better[worse + better <= size]
    ways = np.array(
        [
            math.lgamma(size + 1) - sum(math.lgamma(n + 1) for n in (w, b, size - w - b))
            for w, b in zip(worse.tolist(), better.tolist(), strict=True)
        ]
    )
    for other in (0.001, 0.02, 0.1, 0.3):
        p, q = other + margin, other
        log = (
            ways + worse * math.log(p) + better * math.log(q) + (size - worse - better) * math.log(1 - p - q)
        )
        for signs in (
            (worse, size - worse - better, better, margin),
            (better, size - worse - better, worse, -margin),
        ):
            shown = fixed(*signs, alpha) >= math.log(1 / alpha)
            assert np.exp(log)[shown].sum() <= alpha


def test_05_a_p99_of_a_hundred_samples_is_covered_or_left_open() -> None:
    chance, truth = np.random.default_rng(5), math.exp(0.6 * 2.3263)
    drawn = np.sort(np.exp(0.6 * chance.normal(size=(400, 100))), axis=1)
    ends = [quantile_interval(row, 0.99, 0.05) for row in drawn]
    assert np.mean([low <= truth <= high for low, high in ends]) >= 0.95
    assert all(math.isinf(high) for _, high in ends)


def test_11_pairs_are_compared_as_pairs() -> None:
    """Requests differ by a factor of 30 in what they take; the candidate adds 100 ms to each."""
    seconds = np.exp(np.random.default_rng(11).normal(size=200))
    pairs = [
        replace(p, baseline=answer(float(s)), candidate=answer(float(s) + 0.1), repeat=answer(float(s)))
        for p, s in zip(same(200), seconds, strict=True)
    ]
    assert rule(verdict(pairs, only("latency_median")), "latency_median").verdict is Verdict.ROLLBACK


@pytest.mark.parametrize("field", ["e2e_s", "ttft_s", "cached", "cost_usd", "output_tokens"])
@pytest.mark.parametrize("arm", ["baseline", "candidate", "repeat"])
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, -1.0])
def test_14_what_cannot_be_measured_raises_and_is_never_left_out(field, arm, value) -> None:
    pairs = changed(same(400), lambda n: n == 7, **{arm: answer(**{field: value})})
    with pytest.raises(ValueError, match=r"must be finite and not negative"):
        judge(pairs, QUICK, now=START + 10**6)


@pytest.mark.parametrize("value", [math.nan, math.inf, -1.0])
def test_14_a_gap_between_tokens_that_is_none_raises_too(value) -> None:
    with pytest.raises(ValueError, match=r"itl_s"):
        columns(changed(same(10), lambda n: n == 7, candidate=answer(itl_s=(0.1, value, 0.1))))


@pytest.mark.parametrize("value", [math.nan, math.inf, -1.0])
def test_16_no_entry_takes_a_number_that_is_none(value) -> None:
    arm = {"outcome": np.zeros(3, np.int8), "e2e_s": np.array([0.1, 0.2, 0.3])}
    with pytest.raises(ValueError, match=r"at is"):
        of_arrays(np.array([1.0, value, 3.0]), baseline=arm, candidate=arm)
    with pytest.raises(ValueError, match=r"at is"):
        columns(changed(same(3), lambda n: n == 1, at=value))
    if not math.isnan(value):  # in arrays NaN says that it did not happen, and such a pair is missing
        broken = arm | {"e2e_s": np.array([0.1, value, 0.3])}
        with pytest.raises(ValueError, match=r"candidate\.e2e_s"):
            of_arrays(np.arange(3.0), baseline=arm, candidate=broken)


def test_16_an_answer_without_its_number_counts_against_go() -> None:
    found = rule(
        verdict(changed(same(3000), lambda n: n % 40 == 0, candidate=answer(None))), "latency_median"
    )
    assert (found.missing, found.verdict) == (75, Verdict.HOLD)


@pytest.mark.parametrize(
    "wrong", [{"latency_p42": {"margin": 0.1}}, {"errors": {"margni": 0.1}}, {"alpah": 0.1}]
)
def test_17_a_promise_of_an_unknown_name_is_refused(wrong) -> None:
    with pytest.raises(ValidationError, match=r"Extra inputs are not permitted"):
        Policy.model_validate(wrong)


@pytest.mark.parametrize("final", [True, False])
@pytest.mark.parametrize("counters", [{}, {"passed": 9_000, "paused": 500}, {"mirror_ppm": 10_000}])
def test_18_harm_is_told_whatever_state_the_run_is_in(final, counters) -> None:
    pairs = changed(same(1000), lambda n: n % 10 == 0, candidate=failure(), differs=None)
    found = judge(pairs, QUICK, now=START + 10**6, final=final, counters=counters)
    assert (found.verdict, found.code) == (Verdict.ROLLBACK, "errors")


def noisy(size, first, again, seed):
    """Pairs of which a share differs, and a share of the baseline's repeats."""
    dice = np.random.default_rng(seed).random((2, size))
    return [
        replace(p, differs=bool(a < first), repeat_differs=bool(b < again))
        for p, a, b in zip(same(size), *dice, strict=True)
    ]


def test_19_differences_are_weighed_against_noise() -> None:
    disagreement = only("disagreement")
    one = changed(same(100), lambda n: n == 50, differs=True)
    assert verdict(one, disagreement).verdict is not Verdict.ROLLBACK
    alike = [verdict(noisy(1000, 0.001, 0.001, seed), disagreement).verdict for seed in range(20)]
    assert Verdict.ROLLBACK not in alike
    assert verdict(noisy(1000, 0.74, 0.5, 1), disagreement).verdict is not Verdict.GO
    many = rule(verdict(noisy(1000, 0.44, 0.2, 1), disagreement), "disagreement")
    assert many.verdict is Verdict.ROLLBACK


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("This toy is safe for children.", "This toy is not safe for children."),
        ("Alice paid Bob.", "Bob paid Alice."),
        ('{"refund": 10}', '{"refund": 10000}'),
        ("Return true if `x > 0`.", "Return true if `x >= 0`."),
        ("会议明天开始。", "会议明天取消。"),
    ],
)
def test_22_what_similarity_cannot_see_does_not_pass_as_equal(old, new) -> None:
    """Without a model nothing but rules can decide: what they do not, is not scored, and never equal."""
    found = compare_texts(old, new)
    assert found.severity.value == "BLOCK" or not found.scored


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("The fee is 10.", "The fee is 11."),
        ("Yes.", "No."),
        ("It is open on 3 May 2026.", "It is open on 4 May 2026."),
        ("See https://example.com/a.", "See https://example.com/b."),
        ('{"a": [1, 2]}', '{"a": [2, 1]}'),
        ("The answer is B.", "The answer is C."),
        ("It rains.", "It does not rain."),
        ("```python\nx = 1\n```", "```python\nx = 2\n```"),
    ],
)
def test_27_a_comparator_says_different_of_what_differs_and_equal_of_what_is_equal(old, new) -> None:
    assert compare_texts(old, new).severity.value == "BLOCK"
    assert compare_texts(new, old).severity.value == "BLOCK"
    for one in (old, new):
        found = compare_texts(one, one)
        assert (found.severity.value, found.scored) == ("EQUAL", True)


def test_27_outcomes_are_told_apart() -> None:
    assert [one for one in Outcome if not one.failed and not one.missing] == [Outcome.OK]
