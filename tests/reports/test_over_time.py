"""A run as it went: pieces of time, histograms, and evidence that grows."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from replay.exchange import Arm
from reports.curves import histograms
from reports.judge import judge
from reports.judgement import Verdict
from reports.policy import Policy
from reports.render.over_time import evidence, measures, since
from reports.timeline import Timeline, timeline
from tests.reports.builders import alike, document, from_pairs, gathered, wrong
from tests.reports.made import REHEARSAL, START, answer, failure, rule, run, same


def values(line: Timeline | None, measure: str, arm: Arm) -> list[float | None]:
    assert line is not None
    return next(list(one.values) for one in line.series if one.measure == measure and one.arm is arm)


def test_every_pair_is_in_one_piece() -> None:
    for count, rate in ((2, 0.001), (500, 20.0), (3_000, 0.01), (400, 0.0001)):
        line = timeline(gathered(same(count, rate=rate)).columns)
        assert line is not None
        assert sum(line.pairs) == count and len(line.pairs) <= 60


def test_nothing_is_said_of_a_moment_or_of_no_pairs() -> None:
    assert timeline(gathered([]).columns) is None
    assert timeline(gathered(same(5)).columns) is None
    assert measures(from_pairs([])) == evidence(from_pairs([])) == []


def test_an_outage_is_seen_where_it_was() -> None:
    pairs = same(2_000)
    broken = [pair if n < 1_000 else replace(pair, candidate=failure()) for n, pair in enumerate(pairs)]
    line = timeline(gathered(broken).columns)
    errors = values(line, "errors", Arm.CANDIDATE)
    assert errors[0] == 0 and errors[-1] == 1
    assert set(values(line, "errors", Arm.BASELINE)) == {0.0}
    assert values(line, "p95", Arm.CANDIDATE)[-1] is None


def test_a_histogram_holds_every_value_and_is_not_stretched_by_an_outlier() -> None:
    pairs = [*run(2_000, 3), *same(1, start=START + 200, candidate=answer(1_000.0))]
    for one in histograms(gathered(pairs)):
        assert all(math.isclose(sum(share), 1, abs_tol=1e-4) for share in one.share.values())
        assert one.borders[-1] < 10 and list(one.borders) == sorted(one.borders)


@pytest.mark.parametrize("policy", [REHEARSAL, Policy(minimum_span=60)], ids=["rehearsal", "policy"])
def test_evidence_grows_to_that_of_the_verdict(policy: Policy) -> None:
    pairs = run(3_000, 5, rate=1.0, errors=0.004, slow=0.02, wrong=0.02, noise=0.01)
    found = judge(pairs, policy, now=START + 10**7, final=True)
    assert len(found.growth) > 5
    for one in found.growth:
        result, last = rule(found, one.rule), one.points[-1]
        assert len(one.points) > 10
        assert np.isclose(last.go or math.inf, result.evidence_go)
        assert np.isclose(last.rollback or math.inf, result.evidence_rollback)


def test_a_verdict_says_since_when() -> None:
    bad, good = document(wrong()), document(alike())
    assert bad.verdict is Verdict.ROLLBACK and good.verdict is Verdict.GO
    for made in (bad, good):
        at = since(made)
        assert at is not None and made.growth[0].points[0].at <= at <= made.growth[0].points[-1].at
    assert since(from_pairs(same(3))) is None


def test_every_drawing_has_words_and_stays_inside() -> None:
    made = document(wrong())
    for panel in (*measures(made), *evidence(made)):
        assert panel.title and panel.words and panel.lines
        assert "nan" not in "".join(path for _, path in panel.lines)
