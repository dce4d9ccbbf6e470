"""Why a rule says what it says: its evidence as it grew, and what carries it."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from replay.exchange import Outcome
from reports.columns import columns
from reports.explain import NAMES, Explanation, explain
from reports.judge import judge
from reports.judgement import Pair, Verdict
from reports.policy import Policy
from reports.render.explained import odds, render_json, render_terminal
from reports.render.json import indented
from reports.rules import RULES
from reports.standing import judge_since
from tests.reports.hostile import HOSTILE
from tests.reports.made import MISSING, QUICK, START, answer, failure, run, same

DAY = Policy(minimum_pairs=1, warmup=0, trim_blocks=3)
"""Trims three blocks of five minutes."""


def why(pairs: Sequence[Pair], name: str, policy: Policy = QUICK, **more: Any) -> Explanation:
    asked: dict[str, Any] = {"now": START + 1e6, "final": True} | more
    return explain(pairs, policy, name, judge(pairs, policy, **asked), **asked)


def failing(pairs: Sequence[Pair], *places: int) -> list[Pair]:
    return [replace(pair, candidate=failure()) if n in places else pair for n, pair in enumerate(pairs)]


@pytest.mark.parametrize("name", NAMES)
def test_every_rule_is_explained_and_the_last_look_is_the_verdicts_evidence(name: str) -> None:
    found = why(run(600, 5, errors=0.05, slow=0.05, wrong=0.1), name)
    assert found.result.rule == name and found.title
    if found.growth:
        last = found.growth[-1]
        assert (last.go, last.rollback) == (found.result.evidence_go, found.result.evidence_rollback)
        assert last.pairs == found.result.pairs
        times = [one.at for one in found.growth]
        assert times == sorted(times) and len(set(times)) == 60
    else:
        assert found.result.estimate is None and not found.worse and not found.sessions


def test_evidence_is_seen_to_grow_towards_the_verdict() -> None:
    found = why(run(2_000, 3, errors=0.05), "errors")
    assert found.result.verdict is Verdict.ROLLBACK
    reached = [one.at for one in found.growth if (one.rollback or 0.0) >= found.needed_rollback]
    assert found.growth[0].at < reached[0] < found.growth[-1].at
    assert math.isclose(found.needed_go, math.log(20)) and found.needed_rollback > found.needed_go


def test_the_blocks_that_rollback_has_to_do_without_are_the_worst_ones() -> None:
    # Two hours of one pair in ten seconds; an incident of 19 failures in one block and 3 in another.
    pairs = failing(same(720, rate=0.1), *range(600, 619), *range(700, 703))
    found = why(pairs, "errors", DAY)
    first, second = found.blocks
    assert (first.worse, first.same, first.better) == (19, 11, 0)
    assert second.worse == 3 and first.adds > second.adds > 0
    assert first.kept == second.kept == 0
    assert first.first_at <= START + 6_000 <= first.last_at <= first.first_at + 300
    assert found.result.evidence_rollback is not None and found.whole is not None
    assert found.whole > found.needed_rollback > found.result.evidence_rollback
    text = render_terminal(found, "r1", width=100)
    assert "19 worse, 11 the same, 0 better" in text and "left out" in text
    assert "One incident is not a trend" in text


def test_blocks_that_are_cut_are_told_from_those_that_count_in_full() -> None:
    # Eight hours; three incidents of 15 failures each, and single failures elsewhere.
    incidents = [place for start in (600, 1_200, 2_400) for place in range(start, start + 15)]
    found = why(failing(same(2_880, rate=0.1), *incidents, 100, 1_800), "errors", Policy(warmup=0.0))
    assert found.shortened == len(found.blocks) == 3
    assert all(one.worse == 15 and one.adds > one.kept == 1.5 for one in found.blocks)
    assert [one.first_at for one in found.blocks] == sorted(one.first_at for one in found.blocks)
    text = render_terminal(found, "r1", width=140)
    assert text.count("counted as 4 to 1") == 3


def test_many_blocks_are_counted_and_the_worst_shown() -> None:
    found = why(failing(same(2_880, rate=0.1), *range(0, 2_880, 3)), "errors", Policy(warmup=0.0))
    assert found.shortened > 50 and len(found.blocks) == 5
    assert f"and {found.shortened - 5} more" in render_terminal(found, "r1", width=100)


def test_a_rehearsal_counts_every_block_in_full() -> None:
    found = why(run(600, 1, errors=0.1), "errors")
    assert found.blocks == () and found.shortened == 0 and found.whole == found.result.evidence_rollback


def test_the_pairs_that_weigh_most_are_named_in_both_directions() -> None:
    pairs = same(400)
    pairs[7] = replace(pairs[7], candidate=answer(3.0))
    pairs[9] = replace(pairs[9], candidate=answer(9.0))
    pairs[11] = replace(pairs[11], candidate=failure(Outcome.TIMEOUT, 60.0))
    pairs[13] = replace(pairs[13], baseline=failure(Outcome.TIMEOUT, 60.0))
    found = why(pairs, "latency_median")
    assert [one.id for one in found.worse] == ["000011", "000009", "000007"]
    assert [(one.baseline_s, one.candidate_s) for one in found.worse] == [(0.2, None), (0.2, 9.0), (0.2, 3.0)]
    assert found.better[0].id == "000013" and found.better[0].baseline == "timeout"
    errors = why(pairs, "errors")
    assert [one.id for one in errors.worse] == ["000011"] and [one.id for one in errors.better] == ["000013"]
    assert errors.worse[0].candidate == "timeout" and errors.worse[0].candidate_s is None


def test_a_pair_that_shares_its_say_with_its_session_weighs_less() -> None:
    pairs = failing(same(400), 10, 200, 300)
    pairs = [replace(pair, session="long") if 190 <= n < 210 else pair for n, pair in enumerate(pairs)]
    found = why(pairs, "errors")
    assert [(one.id, one.weight) for one in found.worse] == [("000300", 1), ("000010", 1), ("000200", 0.05)]
    (long,) = found.sessions
    assert (long.session, long.pairs, long.worse, long.better) == ("long", 20, 1, 0)
    assert math.isclose(long.weight, 0.05)
    assert why(failing(same(400), 10), "errors").sessions == ()


def test_missing_pairs_speak_for_nothing_but_keep_evidence_for_go_small() -> None:
    pairs = [replace(pair, candidate=MISSING) if n % 50 == 0 else pair for n, pair in enumerate(same(600))]
    found = why(pairs, "errors")
    assert found.result.missing == 12 and found.worse == ()
    assert "12 missing ones are counted as harm for GO" in render_terminal(found, "r1", width=120)


@pytest.mark.parametrize(
    "pairs", [[], same(1), same(3), [replace(one, candidate=MISSING) for one in same(3)]]
)
def test_next_to_nothing_is_explained_too(pairs: list[Pair]) -> None:
    for name in NAMES:
        found = why(pairs, name, Policy())
        assert found.result.verdict is Verdict.HOLD
        assert render_terminal(found, "r1").strip()
        json.dumps(render_json(found, "r1"), allow_nan=False)


def test_a_fixed_sample_has_one_look_at_the_end_and_none_before() -> None:
    pairs, policy = run(600, 2), QUICK.model_copy(update={"analysis": "fixed"})
    assert len(why(pairs, "errors", policy).growth) == 1
    before = why(pairs, "errors", policy, final=False)
    assert (
        before.growth == ()
        and before.result.reason == "not judged: " + before.result.reason.split(": ", 1)[1]
    )


def test_latencies_that_are_not_judged_are_not_explained_as_if_they_were() -> None:
    late = {"replay_lag_p99_us": 900_000, "replay_lag_limit_us": 5_000}
    found = why(run(600, 2, slow=0.3), "latency_median", counters=late)
    assert found.growth == () and found.worse == () and found.result.reason.startswith("not judged")
    assert why(run(600, 2), "errors", counters=late).growth


def test_after_an_acknowledgement_the_pairs_since_then_are_explained() -> None:
    pairs = failing(same(800), *range(0, 400, 10), 600)
    asked: dict[str, Any] = {"now": START + 1e6, "final": True, "since": pairs[400].at}
    judgement = judge_since(columns(pairs), QUICK, **asked)
    found = explain(pairs, QUICK, "errors", judgement, **asked)
    assert judgement.code == "acknowledged" and [one.id for one in found.worse] == ["000600"]
    assert found.growth[0].at > asked["since"]
    assert found.growth[-1].rollback == found.result.evidence_rollback
    text = " ".join(render_terminal(found, "r1").split())
    assert "of the pairs since the acknowledgement at 2023-11-14 22:13:40 UTC" in text
    assert render_json(found, "r1")["since"] == "2023-11-14T22:13:40Z"


def test_order_does_not_matter() -> None:
    pairs = run(300, 4, errors=0.1)
    assert why(pairs, "errors") == why(pairs[::-1], "errors")


@pytest.mark.parametrize("width", [80, 100, 160])
def test_the_screen_keeps_to_its_width_and_shows_what_is_needed(width: int) -> None:
    pairs = [
        replace(pair, id="x" * 300, session="y" * 300) if n == 3 else pair
        for n, pair in enumerate(run(500, 3, errors=0.1))
    ]
    pairs = [
        replace(pair, session=f"s{n // 4}") if pair.session is None else pair for n, pair in enumerate(pairs)
    ]
    text = render_terminal(why(pairs, "errors"), "r1", width=width)
    assert max(map(len, text.splitlines())) <= width
    needed = why(pairs, "errors").needed_rollback
    assert "20 to 1 ┤" in text and f"ROLLBACK at {odds(needed)}" in text and "GO at 20 to 1" in text
    assert "●" in text and "○" in text


def test_json_dates_are_utc_and_numbers_finite() -> None:
    data = render_json(why(run(300, 4, errors=0.1), "errors"), "r1")
    assert data["schema"] == {"name": "llm-migrate.explanation", "version": 1}
    assert data["growth"][0]["at"].endswith("Z") and data["worse"][0]["at"].endswith("Z")
    assert data["rule"] == "errors" and data["needed_go"] < data["needed_rollback"]
    json.dumps(data, allow_nan=False)


@pytest.mark.parametrize("text", [said for name, said in HOSTILE.items() if name != "long"])
def test_names_of_pairs_and_sessions_cannot_act(text: str) -> None:
    pairs = [
        replace(pair, id=f"{text}{n}", session=f"{text}{n // 4}")
        for n, pair in enumerate(failing(same(200), *range(0, 200, 5)))
    ]
    found = why(pairs, "errors")
    screen, data = render_terminal(found, "r1"), indented(render_json(found, "r1"))
    assert not re.search(
        r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", screen + data
    )
    assert len(json.loads(data)["worse"]) == 5


@pytest.mark.parametrize(
    ("evidence", "words"),
    [
        (0.0, "1 to 1"),
        (math.log(20), "20 to 1"),
        (-math.log(20), "1 to 20"),
        (1e4, "10^4343 to 1"),
        (-1e4, "1 to 10^4343"),
    ],
)
def test_evidence_is_shown_as_odds(evidence: float, words: str) -> None:
    assert odds(evidence) == words


def test_every_rule_of_the_policy_can_be_named() -> None:
    assert tuple(rule.name for rule in RULES) == NAMES
