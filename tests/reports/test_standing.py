"""After a ROLLBACK that somebody acknowledged: pairs from before make none any more, and still keep GO away."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from reports.columns import columns
from reports.judge import judge
from reports.judgement import Judgement, Pair, Verdict
from reports.policy import Policy
from reports.standing import judge_since
from tests.reports.made import QUICK, START, failure, run, same

RATE = 20.0


def judged(pairs: Sequence[Pair], since: float | None, policy: Policy = QUICK, **more: Any) -> Judgement:
    return judge_since(columns(pairs), policy, since=since, **{"now": START + 1e6, "final": True} | more)


def failing(pairs: Sequence[Pair], first: int, last: int, every: int = 10) -> list[Pair]:
    """One in ``every`` of these fails."""
    return [
        replace(pair, candidate=failure()) if first <= n < last and n % every == 0 else pair
        for n, pair in enumerate(pairs)
    ]


def at(place: int) -> float:
    """When the pair at this place was dispatched."""
    return START + place / RATE


@pytest.mark.parametrize("pairs", [same(400), run(400, 3, errors=0.1), []])
def test_without_an_acknowledgement_it_is_the_judgement(pairs: list[Pair]) -> None:
    assert judged(pairs, None) == judge(pairs, QUICK, now=START + 1e6, final=True)


def test_pairs_from_before_make_no_rollback_and_keep_go_away() -> None:
    pairs = failing(same(800), 0, 400)
    assert judged(pairs, None).code == "errors"
    found = judged(pairs, at(400))
    assert (found.verdict, found.code) == (Verdict.HOLD, "acknowledged")
    assert "ROLLBACK (errors) was acknowledged" in found.reason
    errors = next(rule for rule in found.rules if rule.rule == "errors")
    assert errors.verdict is Verdict.HOLD and "the pairs since then do not show it" in errors.reason
    assert errors.estimate == 0.05
    assert {one.points[-1].pairs for one in found.growth if one.rule == "errors"} == {400}
    assert found.ledger == judged(pairs, None).ledger


def test_harm_that_goes_on_is_a_rollback_again() -> None:
    pairs = failing(same(800), 0, 800)
    assert judged(pairs, at(400)).verdict is Verdict.ROLLBACK
    found = judged(pairs, at(400))
    assert (
        found.code == "errors" and "at least" in found.reason and "above the margin of 1.00 %" in found.reason
    )
    (errors,) = (rule for rule in found.rules if rule.rule == "errors")
    assert errors.reason.startswith("since the acknowledgement") and "above the margin" in errors.reason


def test_what_began_after_it_is_named_and_what_was_before_is_not() -> None:
    pairs = failing(run(1_600, 3, streamed=0.0), 0, 600, every=5)
    cut = pairs[800].at
    pairs = [
        replace(pair, differs=True) if pair.at >= cut and n % 3 == 0 else pair for n, pair in enumerate(pairs)
    ]
    found = judged(pairs, cut)
    assert (found.verdict, found.code) == (Verdict.ROLLBACK, "disagreement")
    said = {rule.rule: rule.verdict for rule in found.rules}
    assert said["errors"] is Verdict.HOLD and said["disagreement"] is Verdict.ROLLBACK


def test_a_safety_stop_can_be_acknowledged_and_can_come_again() -> None:
    pairs = failing(same(800), 100, 130, every=1)
    assert judged(pairs, None).code == "halt"
    found = judged(pairs, at(200))
    assert found.code == "acknowledged" and all(
        check.passed for check in found.checks if check.code == "halt"
    )
    again = failing(pairs, 600, 630, every=1)
    assert judged(again, at(200)).code == "halt"


def test_nothing_since_then_is_no_rollback() -> None:
    assert judged(failing(same(800), 0, 800), START + 1e5).code == "acknowledged"


def test_an_acknowledgement_does_not_make_a_go() -> None:
    pairs = failing(same(8_000), 0, 400)
    assert judged(pairs, at(400)).verdict is not Verdict.ROLLBACK
    assert judged(same(800), at(400)).verdict is Verdict.GO
