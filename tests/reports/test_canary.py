"""What a canary's requests prove: outputs on pairs, service between two groups that chance made."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from replay.exchange import Outcome
from reports.arrays import of_arrays
from reports.canary import APART_S, judge_canary, matched, paired
from reports.columns import Columns
from reports.judgement import Judgement, Verdict
from reports.policy import Policy

OK, ERROR, NOT_SENT = (list(Outcome).index(one) for one in (Outcome.OK, Outcome.HTTP_ERROR, Outcome.NOT_SENT))
POLICY = Policy.model_validate({"minimum_span": "1h", "minimum_pairs": 500, "warmup": "0s"})
HOURS = 4.0
MANY: dict[str, Any] = {"requests": 40_000, "share": 0.5}


def canary(
    seed: int,
    *,
    requests: int = 6_000,
    share: float = 0.3,
    errors: float = 0.0,
    slower: float = 0.0,
    differs: float = 0.0,
    turns: int = 1,
) -> Columns:
    """Traffic of four hours: of every conversation of ``turns`` requests a side is drawn; the candidate's are copied back.

    Both sides fail 1 % and take about 800 ms; the candidate fails ``errors`` more, takes ``slower`` seconds longer, and differs
    in ``differs`` of the pairs more than the 5 % in which the baseline differs from itself.
    """
    chance = np.random.default_rng(seed)
    session = np.repeat(np.arange(requests // turns), turns)
    at = np.sort(chance.uniform(0, HOURS * 3600, requests // turns))[session] + np.tile(
        np.arange(turns) * 20.0, requests // turns
    )
    new = (chance.random(requests // turns) < share)[session]
    size = session.size

    def arm(asked: np.ndarray[Any, Any], worse: float, later: float) -> dict[str, Any]:
        outcome = np.where(chance.random(size) < 0.01 + worse, ERROR, OK)
        taken = chance.lognormal(np.log(0.8), 0.4, size) + later
        outcome = np.where(asked, outcome, NOT_SENT)
        return {"outcome": outcome, "e2e_s": np.where(outcome == OK, taken, np.nan)}

    everybody = np.ones(size, dtype=bool)
    old, candidate = arm(everybody, 0.0, 0.0), arm(new, errors, slower)
    repeat = arm(new, 0.0, 0.0)
    both = (old["outcome"] == OK) & (candidate["outcome"] == OK)
    again = new & (repeat["outcome"] == OK) & (old["outcome"] == OK)
    return of_arrays(
        at=at,
        baseline=old,
        candidate=candidate,
        repeat=repeat,
        session=session,
        differs=np.where(both, chance.random(size) < 0.05 + differs, -1).astype(np.int8),
        repeat_differs=np.where(again, chance.random(size) < 0.05, -1).astype(np.int8),
        labels={"side": ["candidate" if one else "baseline" for one in new.tolist()]},
    )


def judged(table: Columns, policy: Policy = POLICY) -> Judgement:
    return judge_canary(table, policy, now=HOURS * 3600 + 1_000, final=True)


def test_alike_sides_are_never_rolled_back() -> None:
    assert all(judged(canary(seed)).verdict is not Verdict.ROLLBACK for seed in range(25))


def test_alike_sides_reach_go_with_enough_requests() -> None:
    verdicts = [judged(canary(seed, **MANY)).verdict for seed in range(8)]
    assert verdicts.count(Verdict.GO) >= 6 and Verdict.ROLLBACK not in verdicts


def test_alike_sides_of_long_conversations_are_never_rolled_back() -> None:
    assert all(judged(canary(seed, turns=6)).verdict is not Verdict.ROLLBACK for seed in range(15))


@pytest.mark.parametrize(
    ("harm", "rule"),
    [
        ({"errors": 0.08}, "errors"),
        ({"slower": 0.4}, "latency_median"),
        ({"differs": 0.15}, "disagreement"),
    ],
)
def test_harm_on_one_side_is_found_by_its_rule(harm: dict[str, float], rule: str) -> None:
    found = judged(canary(1, requests=12_000, share=0.5, **harm))
    assert found.verdict is Verdict.ROLLBACK
    assert next(one for one in found.rules if one.rule == rule).verdict is Verdict.ROLLBACK


def test_each_conversation_is_matched_once_with_one_that_began_nearby() -> None:
    table = canary(3, turns=4)
    rows = matched(table)
    assert 0 < len(rows) <= len(paired(table))
    assert (rows.candidate.outcome != NOT_SENT).all() and (rows.baseline.outcome != NOT_SENT).all()
    assert (rows.differs == -1).all() and not rows.repeated.any()
    counts = np.unique(rows.session, return_counts=True)[1]
    assert counts.max() <= 4


def test_groups_that_were_not_there_at_once_prove_nothing() -> None:
    one, other = canary(5, share=0.0), canary(6, share=1.0)
    assert not len(matched(one)) and not len(matched(other))
    assert judged(one).verdict is Verdict.HOLD


def test_at_a_share_of_all_every_rule_rests_on_pairs() -> None:
    found = judged(canary(7, share=1.0, errors=0.1, requests=8_000))
    assert found.verdict is Verdict.ROLLBACK and "concurrent" not in found.method


def test_a_few_late_requests_of_the_baseline_hide_no_errors_at_a_share_of_all() -> None:
    table = canary(7, share=0.995, errors=0.1, requests=8_000)
    found = judge_canary(table, POLICY, now=HOURS * 3600 + 1_000, final=True, everybody=True)
    assert next(one for one in found.rules if one.rule == "errors").verdict is Verdict.ROLLBACK


def test_requests_that_were_lost_on_their_way_into_the_store_are_no_go() -> None:
    table = canary(8, **MANY)
    assert judged(table).verdict is Verdict.GO
    lost = judge_canary(table, POLICY, now=HOURS * 3600 + 1_000, final=True, mirrored=len(table) * 2)
    assert (lost.verdict, lost.code) == (Verdict.HOLD, "not_recorded")


def test_matched_conversations_are_not_far_apart() -> None:
    table = canary(9, requests=300)
    rows = matched(table)
    assert len(rows) > 50 and APART_S == 300


def test_a_policy_that_asks_nothing_of_outputs_is_judged_on_service_alone() -> None:
    outputs = ("disagreement", "format_breaks", "refusals", "truncations", "tool_calls")
    spared = {name: getattr(POLICY, name).model_copy(update={"required": False}) for name in outputs}
    found = judged(canary(8, **MANY), POLICY.model_copy(update=spared))
    assert found.verdict is Verdict.GO, found.reason


def test_requests_far_apart_are_not_matched_however_long_their_conversations_last() -> None:
    table = canary(10, requests=4_000, turns=40)
    rows = matched(table)
    began = dict(zip(table.at.tolist(), range(len(table)), strict=True))
    assert len(rows) and all(at in began for at in rows.at.tolist())
    assert (np.diff(rows.at) >= 0).all()
