"""A conversation speaks once, however many turns it has."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from reports.judgement import Verdict
from reports.sessions import design_effect, units, weights
from reports.stats import anytime, count_signs
from tests.reports.made import QUICK, changed, failure, rule, same, verdict


def test_a_unit_is_a_session_within_an_hour_and_at_most_thirty_turns():
    session = np.array([7, -1, 7, -1, 7])
    assert units(session, np.array([0.0, 1, 2, 3, 4000])).tolist() in ([2, 0, 2, 1, 3], [0, 1, 0, 2, 3])
    long = units(np.zeros(100, dtype=np.int64), np.arange(100.0))
    assert np.bincount(long).tolist() == [30, 30, 30, 10]


def test_pairs_without_a_session_are_units_of_their_own():
    assert units(np.full(4, -1), np.arange(4.0)).tolist() == [0, 1, 2, 3]
    assert weights(np.array([-1, -1])).tolist() == [1, 1]
    assert math.isnan(design_effect(np.array([], dtype=np.int64)))


def test_the_weights_of_a_unit_add_up_to_one():
    unit = np.array([0, 0, 1, 2, 2, 2])
    assert weights(unit) == pytest.approx([1 / 2, 1 / 2, 1, 1 / 3, 1 / 3, 1 / 3])
    assert design_effect(unit) == pytest.approx(2)


def test_evidence_has_mean_at_most_one_when_turns_fail_together():
    """Exactly at the margin, 20 conversations of 15 turns which fail whole: without weights the mean is astronomic."""
    margin, turns, talks = 0.1, 15, 20
    chances = [math.comb(talks, k) * margin**k * (1 - margin) ** (talks - k) for k in range(talks + 1)]
    signs = [np.repeat(np.arange(talks) < k, turns).astype(np.int8) for k in range(talks + 1)]
    weight = weights(np.repeat(np.arange(talks), turns))
    weighed = [float(anytime(*count_signs(one, weight), margin)) for one in signs]
    plain = [float(anytime(*count_signs(one), margin)) for one in signs]
    assert sum(p * math.exp(e) for p, e in zip(chances, weighed, strict=True)) <= 1 + 1e-9
    assert sum(p * math.exp(e) for p, e in zip(chances, plain, strict=True)) > 100


def test_one_long_conversation_that_fails_is_no_rollback_and_many_are():
    pairs = changed(same(2000), lambda n: 500 <= n < 519, candidate=failure())
    apart = verdict(changed(same(2000), lambda n: n % 10 == 0, candidate=failure()), QUICK)
    together = [replace(pair, session="one") if 500 <= n < 519 else pair for n, pair in enumerate(pairs)]
    assert rule(verdict(together, QUICK), "errors").verdict is not Verdict.ROLLBACK
    assert rule(apart, "errors").verdict is Verdict.ROLLBACK
    found = rule(verdict(together, QUICK), "errors")
    assert (found.pairs, found.effective_pairs) == (2000, pytest.approx(1982))
    assert found.estimate == pytest.approx(1 / 1982)
