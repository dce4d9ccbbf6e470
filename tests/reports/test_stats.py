from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reports.intervals import (
    exceedance_bound,
    median_interval,
    quantile_interval,
    quantile_ranks,
    share_interval,
)
from reports.stats import (
    count_signs,
    counts_by_block,
    grid_of,
    log_evidence_above,
    log_evidences_over_time,
    pairs_until_below,
)

COUNTS = st.tuples(st.integers(0, 400), st.integers(0, 2000), st.integers(0, 400))
MARGINS = st.floats(-0.3, 0.3)
ALPHA = 0.05


def log_evidence_below(worse, same, better, margin):
    """The same test with the arms swapped."""
    return log_evidence_above(better, same, worse, -margin)


def over_time(signs, at, margin, *, trim=0, most=math.inf, block_s=300.0, period_s=3600.0):
    grid = grid_of(np.array(at, dtype=float), block_s=block_s, period_s=period_s)
    counts = grid.counts(np.array(signs, dtype=np.int8))
    return float(log_evidences_over_time(counts[None], grid.period, margin, trim=trim, most=most)[0])


class TestSignedCounts:
    def test_no_pairs_are_no_evidence(self):
        assert log_evidence_above(0, 0, 0, 0.01) == pytest.approx(0)
        assert log_evidence_below(0, 0, 0, 0.01) == pytest.approx(0)

    @given(COUNTS, MARGINS)
    def test_swapping_the_arms_mirrors_the_evidence(self, counts, margin):
        worse, same, better = counts
        assert log_evidence_above(worse, same, better, margin) == log_evidence_below(
            better, same, worse, -margin
        )

    @given(COUNTS, MARGINS)
    def test_one_more_worse_pair_is_never_evidence_of_less_harm(self, counts, margin):
        worse, same, better = counts
        assert log_evidence_above(worse + 1, same, better, margin) > log_evidence_above(
            worse, same, better, margin
        )
        assert log_evidence_below(worse + 1, same, better, margin) < log_evidence_below(
            worse, same, better, margin
        )

    @pytest.mark.parametrize("margin", [0.0, 0.01, 0.03, 0.05, -0.02])
    def test_a_pair_at_the_margin_multiplies_evidence_by_one_on_average(self, margin):
        """The law behind Ville's inequality, for the first pair."""
        up = (0.2 + margin) / 2 + 0.05
        chances = (up, 1 - up - (up - margin), up - margin)
        parts = [(1, 0, 0), (0, 1, 0), (0, 0, 1)]
        mean = sum(
            p * math.exp(log_evidence_above(*part, margin)) for p, part in zip(chances, parts, strict=True)
        )
        assert mean == pytest.approx(1)

    def test_evidence_rarely_ever_reaches_twenty_at_the_margin(self):
        """Looked at after every 20 pairs, 4,000 pairs long: at most 5 % plus noise in 300 runs may ever cross."""
        chance, crossed = np.random.default_rng(1), {"go": 0, "rollback": 0}
        for _ in range(300):
            dice = chance.random(4000)
            worse, better = np.cumsum(dice < 0.025), np.cumsum(dice > 0.985)
            looks = range(19, 4000, 40)
            totals = [(worse[n], n + 1 - worse[n] - better[n], better[n]) for n in looks]
            crossed["go"] += any(log_evidence_below(*total, 0.01) >= math.log(20) for total in totals)
            crossed["rollback"] += any(log_evidence_above(*total, 0.01) >= math.log(20) for total in totals)
        assert crossed["go"] <= 24
        assert crossed["rollback"] <= 24

    def test_without_any_failure_a_one_point_margin_is_shown_after_about_420_pairs(self):
        needed = math.log(20)
        assert log_evidence_below(0, 400, 0, 0.01) < needed <= log_evidence_below(0, 430, 0, 0.01)


class TestShareInterval:
    def test_of_nothing_is_everything(self):
        assert share_interval(0, 0, 0, ALPHA) == (-1.0, 1.0)

    def test_is_never_zero_wide_without_any_error(self):
        """Where a score interval raises and a Wald interval has no width."""
        low, high = share_interval(0, 1000, 0, ALPHA)
        assert low < 0 < high
        assert high == pytest.approx(0.0042, abs=5e-4)

    def test_two_identical_backends_with_discordant_pairs_do_not_differ(self):
        """An asymptotic McNemar test returns p = 0 for [[10, 0], [0, 10]]."""
        low, high = share_interval(0, 20, 0, ALPHA)
        assert low < 0 < high
        low, high = share_interval(10, 0, 10, ALPHA)
        assert low < 0 < high

    @given(COUNTS)
    def test_swapping_the_arms_mirrors_it(self, counts):
        low, high = share_interval(*counts, ALPHA)
        mirrored = share_interval(*reversed(counts), ALPHA)
        assert (-high, -low) == pytest.approx(mirrored, abs=1e-9)

    @given(COUNTS)
    def test_holds_the_estimate_and_agrees_with_the_evidence(self, counts):
        worse, same, better = counts
        low, high = share_interval(*counts, ALPHA)
        total = sum(counts)
        if total:
            assert low <= (worse - better) / total <= high
        if high < 0.999:
            assert log_evidence_below(worse, same, better, high + 1e-6) >= math.log(20)
            assert log_evidence_below(worse, same, better, high - 1e-6) < math.log(20)

    def test_more_pairs_narrow_it(self):
        widths = [
            high - low
            for n in (50, 500, 5000)
            for low, high in [share_interval(n // 50, n - n // 25, n // 50, ALPHA)]
        ]
        assert all(later < earlier for earlier, later in pairwise(widths))


class TestGrid:
    @settings(max_examples=60, deadline=None)
    @given(
        st.lists(st.tuples(st.integers(0, 90), st.integers(1, 40), st.sampled_from([-1, 0, 1])), min_size=1),
        st.sampled_from([1.0, 0.25]),
    )
    def test_blocks_are_the_stretches_of_equal_time_and_hold_their_signs(self, drawn, weight):
        """Bursts, silences, and times on the border of a block and of a period, which are ten and twenty-five seconds."""
        at = np.sort(np.repeat([float(at) for at, _, _ in drawn], [times for _, times, _ in drawn]))
        signs = np.resize(np.array([sign for *_, sign in drawn], dtype=np.int8), at.size)
        elapsed = at - at[0]
        period, within = elapsed // 25, elapsed % 25 // 10
        expected, place = np.unique(period * 10 + within, return_inverse=True)
        grid = grid_of(at, block_s=10.0, period_s=25.0)
        assert grid.block.tolist() == place.tolist()
        assert grid.period.tolist() == (expected // 10).tolist()
        weights = np.full(at.size, weight)
        counts = [[weight * (place == one)[signs == sign].sum() for sign in (1, 0, -1)] for one in set(place)]
        assert grid.counts(signs, weights).tolist() == counts
        assert counts_by_block(signs, grid.block, len(grid.period), weights).tolist() == counts

    def test_of_nothing_has_no_blocks(self):
        grid = grid_of(np.empty(0), block_s=1.0, period_s=2.0)
        assert grid.counts(np.empty(0, dtype=np.int8)).shape == (0, 3)


class TestEvidenceOverTime:
    def test_of_nothing_is_nothing(self):
        assert over_time([], [], 0.01) == 0

    def test_is_at_least_half_of_the_plain_evidence(self):
        signs, at = [1] * 30 + [0] * 300, range(330)
        plain = log_evidence_above(30, 300, 0, 0.01)
        assert over_time(signs, at, 0.01) == pytest.approx(plain - math.log(2))

    def test_sees_late_harm_that_a_good_day_would_drown(self):
        """24 good hours, then five points of errors for three hours, at 30 pairs a minute."""
        chance = np.random.default_rng(2)
        at = np.arange(27 * 1800) * 2.0
        signs = (chance.random(at.size) < np.where(at < 86_400, 0.001, 0.05)).astype(np.int8)
        needed = math.log(8 / ALPHA)
        assert log_evidence_above(*count_signs(signs), 0.01) < needed
        assert over_time(signs, at, 0.01, trim=3) >= needed

    def test_one_incident_of_a_quarter_hour_is_not_a_trend(self):
        at = np.arange(4 * 1800) * 2.0
        signs = ((at >= 3600) & (at < 4500)).astype(np.int8)
        assert over_time(signs, at, 0.01, trim=0) > math.log(160)
        assert over_time(signs, at, 0.01, trim=3) < 0

    @settings(max_examples=50)
    @given(st.lists(st.sampled_from([-1, 0, 0, 0, 1]), min_size=1, max_size=80), st.data())
    def test_trimming_only_takes_away_and_harm_only_adds(self, signs, data):
        at = [60.0 * n for n in range(len(signs))]
        place = data.draw(st.integers(0, len(signs) - 1))
        harmed = [1 if n == place else sign for n, sign in enumerate(signs)]
        trimmed = over_time(signs, at, 0.01, trim=3)
        assert trimmed <= over_time(signs, at, 0.01, trim=0) + 1e-9
        assert over_time(harmed, at, 0.01, trim=3) >= trimmed - 1e-9

    def test_order_within_a_block_does_not_matter(self):
        signs, at = [1, 0, 0, 1, -1, 0, 0, 1, 0, 0], list(range(10))
        assert over_time(signs, at, 0.01) == pytest.approx(over_time(signs[::-1], at, 0.01))


class TestForecast:
    def test_is_zero_once_there_is_enough(self):
        assert pairs_until_below(0, 1000, 0, 0.01, ALPHA) == 0

    def test_says_how_many_are_missing(self):
        more = pairs_until_below(0, 200, 0, 0.01, ALPHA)
        assert 200 + more == pytest.approx(419, abs=5)

    def test_says_nothing_where_harm_is_at_the_margin_or_nothing_was_seen(self):
        assert pairs_until_below(20, 980, 10, 0.01, ALPHA) is None
        assert pairs_until_below(0, 0, 0, 0.01, ALPHA) is None


class TestMedianInterval:
    def test_of_few_values_is_unbounded(self):
        assert median_interval(np.array([1.0, 2.0]), ALPHA) == (-math.inf, math.inf)

    def test_of_equal_values_is_that_value_not_nan(self):
        """A BCa bootstrap of constant latencies is NaN, and NaN passes every comparison."""
        assert median_interval(np.full(200, 0.25), ALPHA) == (0.25, 0.25)

    def test_holds_the_median_through_all_looks(self):
        chance, missed = np.random.default_rng(3), 0
        for _ in range(200):
            values = chance.normal(size=1000)
            bounds = [median_interval(values[:n], ALPHA) for n in range(50, 1001, 50)]
            missed += any(not low <= 0 <= high for low, high in bounds)
        assert missed <= 24

    def test_infinite_values_count_as_the_largest(self):
        values = np.array([1.0] * 90 + [math.inf] * 10)
        assert median_interval(values, ALPHA) == (1.0, 1.0)


class TestExceedanceBound:
    def test_brackets_the_shift_between_two_tails(self):
        chance = np.random.default_rng(4)
        base, candidate = chance.exponential(1, 6000), chance.exponential(1, 6000) + 0.5
        threshold = 3.0
        low, high = (
            exceedance_bound(candidate - threshold, base > threshold, ALPHA, upper=upper)
            for upper in (False, True)
        )
        assert low < 0.5 < high
        assert high - low < 1.0

    def test_is_unbounded_without_exceedances(self):
        none = np.zeros(100, dtype=bool)
        assert exceedance_bound(np.full(100, -1.0), none, ALPHA, upper=True) == math.inf
        assert exceedance_bound(np.array([]), none[:0], ALPHA, upper=False) == -math.inf


class TestQuantiles:
    def test_a_p99_of_few_samples_has_no_upper_end(self):
        """A known recipe returns the largest sample below about 900, and misses 98.9 % of the time."""
        ordered = np.sort(np.random.default_rng(5).exponential(size=400))
        low, high = quantile_interval(ordered, 0.99, ALPHA)
        assert math.isfinite(low)
        assert high == math.inf

    def test_first_bounds_a_p99_at_about_570_samples(self):
        assert quantile_ranks(540, 0.99, ALPHA)[1] == 540
        assert quantile_ranks(600, 0.99, ALPHA)[1] < 600

    def test_no_samples(self):
        assert quantile_interval(np.array([]), 0.5, ALPHA) == (-math.inf, math.inf)

    def test_holds_the_quantile_through_all_looks(self):
        chance, missed, true = np.random.default_rng(6), 0, -math.log(0.05)
        for _ in range(150):
            values = chance.exponential(size=1500)
            bounds = [quantile_interval(np.sort(values[:n]), 0.95, ALPHA) for n in range(100, 1501, 100)]
            missed += any(not low <= true <= high for low, high in bounds)
        assert missed <= 18


class TestCappedBlocks:
    AT = np.arange(20) * 30.0
    """Two blocks of ten signs."""

    def test_one_block_is_no_proof_and_many_are(self):
        block = [1] * 10
        alone = over_time(block, self.AT[:10], 0.01, most=1.0)
        assert alone <= 1.0 < over_time(block, self.AT[:10], 0.01)
        many = over_time(block * 12, np.arange(120) * 30.0, 0.01, most=1.0)
        assert many >= math.log(260)

    def test_the_mean_is_at_most_the_weight_of_its_starts_at_the_margin(self):
        """Over every outcome of both blocks: exact, no simulation. One start is there yet, with half of the weight."""
        margin, ten = 0.1, range(11)
        chance = [math.comb(10, k) * margin**k * (1 - margin) ** (10 - k) for k in ten]
        signs = [[1] * k + [0] * (10 - k) for k in ten]
        total = sum(
            chance[a] * chance[b] * math.exp(over_time(signs[a] + signs[b], self.AT, margin, most=1.0))
            for a in ten
            for b in ten
        )
        assert 0.45 < total <= 0.5 + 1e-9

    @given(st.lists(st.sampled_from([-1, 0, 1]), min_size=1, max_size=60), st.floats(0.1, 5.0))
    def test_a_lower_cap_is_never_more_evidence(self, signs, most):
        at = np.arange(len(signs)) * 60.0
        assert over_time(signs, at, 0.01, most=most) <= over_time(signs, at, 0.01, most=2 * most) + 1e-9
