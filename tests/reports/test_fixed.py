"""One exact look at the end of a sample whose size was known before."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom

from reports.fixed import fixed
from reports.judge import judge
from reports.judgement import Verdict
from reports.policy import Policy
from reports.stats import anytime
from tests.reports.made import QUICK, START, changed, failure, run, same

ONCE = QUICK.model_copy(update={"analysis": "fixed"})


def p(worse, same, better, margin, alpha=0.05):
    return math.exp(-float(fixed(worse, same, better, margin, alpha)))


def test_without_a_margin_it_is_the_sign_test():
    assert p(15, 100, 5, 0.0) == pytest.approx(binom.sf(14, 20, 0.5))
    assert p(0, 100, 0, 0.0) == 1


def test_without_any_harm_it_is_the_binomial_test():
    assert p(0, 299, 0, -0.01) == pytest.approx(0.99**299)


@pytest.mark.parametrize("margin", [0.02, 0.1, -0.02, -0.1])
@pytest.mark.parametrize("other", [0.01, 0.1])
def test_at_the_margin_it_errs_at_most_as_often_as_it_says(margin, other):
    """Over every outcome of 60 pairs: exact, no simulation."""
    count = 60
    better = other + max(0.0, -margin)
    worse = better + margin
    a, b = np.meshgrid(np.arange(count + 1), np.arange(count + 1), indexing="ij")
    kept = a + b <= count
    a, b = a[kept], b[kept]
    chance = binom.pmf(b, count, better) * binom.pmf(a, count - b, worse / (1 - better))
    assert chance.sum() == pytest.approx(1)
    for alpha in (0.05, 0.005):
        rejected = fixed(a, count - a - b, b, margin, alpha) >= math.log(1 / alpha)
        assert chance[rejected].sum() <= alpha


def test_it_needs_fewer_pairs_than_evidence_for_every_look():
    def first(test):
        return next(n for n in range(50, 900) if float(test(0, n, 0, -0.01, 0.05)) >= math.log(20))

    assert first(fixed) == 299 < first(anytime)


def test_more_harm_is_more_evidence_of_harm():
    found = fixed(np.arange(0, 40), 400 - np.arange(0, 40), 3, 0.01, 0.05)
    assert (np.diff(found) >= 0).all()


def test_it_speaks_when_the_run_has_ended_and_not_before():
    pairs = changed(same(600), lambda n: n % 10 == 0, candidate=failure())
    before = judge(pairs, ONCE, now=START + 1e6, final=False)
    assert before.verdict is Verdict.HOLD
    assert "speaks once, when the run has ended" in before.rules[0].reason
    after = judge(pairs, ONCE, now=START + 1e6, final=True)
    assert (after.verdict, after.code) == (Verdict.ROLLBACK, "errors") and "fixed sample" in after.method
    assert judge(run(700, 2), ONCE, now=START + 1e6, final=True).verdict is Verdict.GO


def test_an_unknown_analysis_is_refused():
    with pytest.raises(ValueError, match="anytime"):
        Policy(analysis="both")
