"""The document: complete, finite, ordered, and the same whenever the same run is judged."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import asdict, replace

import pytest

from reports.advice import advice
from reports.judgement import Verdict
from reports.policy import Policy
from tests.reports.builders import (
    COUNTERS,
    alike,
    document,
    exchange,
    from_items,
    from_pairs,
    item,
    slow,
    wrong,
)
from tests.reports.made import QUICK, REHEARSAL, START, run, same


def walk(value: object) -> Iterator[object]:
    if isinstance(value, dict):
        for part in value.values():
            yield from walk(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from walk(part)
    else:
        yield value


def test_names_its_schema_and_holds_only_what_json_knows() -> None:
    made = document(wrong(60), QUICK)
    data = json.loads(json.dumps(asdict(made), allow_nan=False))
    assert data["schema"] == {"name": "llm-migrate.report", "version": 1}
    assert not [x for x in walk(asdict(made)) if isinstance(x, float) and not math.isfinite(x)]


@pytest.mark.parametrize(
    ("exchanges", "verdict"),
    [(alike, Verdict.GO), (wrong, Verdict.ROLLBACK), (slow, Verdict.ROLLBACK), (list, Verdict.HOLD)],
)
def test_carries_the_verdict_of_the_judge(exchanges: object, verdict: Verdict) -> None:
    made = document(exchanges())  # type: ignore[operator]
    assert made.verdict is verdict
    assert made.reason and made.advice.endswith(".")


def test_does_not_depend_on_the_order_in_which_pairs_arrive() -> None:
    items = [item(one) for one in wrong(200, every=7) + [exchange(200 + n, failed="no") for n in range(5)]]
    assert from_items(items) == from_items(list(reversed(items)))


def test_is_the_same_when_made_again() -> None:
    assert document(slow(120), slow_first=True) == document(slow(120), slow_first=True)


@pytest.mark.parametrize("seed", range(3))
def test_every_sum_is_the_sum_of_its_parts(seed: int) -> None:
    made = from_pairs(run(300, seed, errors=0.1, base_errors=0.1), counters=COUNTERS)
    for parts, total in ((made.gateway, "passed"), (made.ledger, "dispatched"), (made.compared, "pairs")):
        assert parts[total] == sum(count for name, count in parts.items() if name != total)
    assert made.ledger["dispatched"] == made.compared["pairs"] == 300


def test_requests_that_are_not_decided_yet_are_shown_as_such() -> None:
    made = from_pairs([], counters={"passed": 10, "mirrored": 4, "not_sampled": 3})
    assert made.gateway["undecided"] == 3
    later = from_pairs([], counters={"passed": 5, "mirrored": 4, "not_sampled": 3})
    assert later.gateway["passed"] == 7 and later.gateway["undecided"] == 0


def test_without_a_gateway_nothing_is_said_about_it() -> None:
    assert from_pairs(same(3)).gateway == {}


def test_mirrored_requests_that_are_not_in_the_store_are_counted() -> None:
    assert from_pairs(same(3), counters={"passed": 9, "mirrored": 5}).not_recorded == 2
    assert from_pairs(same(3), counters={"passed": 9, "mirrored": 3}).not_recorded == 0


def test_settings_among_the_counters_are_not_shown_as_traffic() -> None:
    assert from_pairs([], counters={"passed": 1, "mirror_ppm": 100_000}).traffic == {"passed": 1}


def test_repeats_say_how_many_were_answered_and_why_others_were_not_asked() -> None:
    made = from_pairs(
        [*same(4), replace(same(1)[0], id="z", repeat=None)], counters={"repeats_skipped.no_key": 3}
    )
    assert made.repeats == {"answered": 4, "failed": 0, "skipped.no_key": 3}


def test_a_retried_success_is_counted() -> None:
    pairs = same(4)
    pairs[1] = replace(pairs[1], candidate=replace(pairs[1].candidate, attempts=2))
    assert from_pairs(pairs).retried == {"baseline": 0, "candidate": 1}


def test_broken_rules_come_first_and_those_not_required_last() -> None:
    rules = document(wrong()).rules
    assert rules[0].verdict is Verdict.ROLLBACK and rules[0].rule == "disagreement"
    policy = Policy.model_validate(
        REHEARSAL.model_dump(by_alias=True) | {"disagreement": {"required": False}}
    )
    aside = [rule for rule in document(wrong(), policy).rules if not rule.required]
    assert aside[0].rule == "disagreement" and document(wrong(), policy).rules[-len(aside) :] == tuple(aside)


def test_baseline_and_candidate_are_never_swapped() -> None:
    made = document([exchange(0, "OLD 1", "CAND 2", slower_s=1.0)], QUICK, baseline="OLD", candidate="CAND")
    pair = made.worst[0]
    assert (pair.baseline.text, pair.candidate.text) == ("OLD 1", "CAND 2")
    assert pair.excess_s == pytest.approx(1.0)
    assert (made.run["baseline"], made.run["candidate"]) == ("OLD", "CAND")
    curves = {(curve.metric, curve.arm): curve.seconds[-1] for curve in made.curves}
    assert curves["e2e", "candidate"] - curves["e2e", "baseline"] == pytest.approx(1.0)
    assert curves["e2e", "baseline_repeat"] == curves["e2e", "baseline"]
    assert "baseline has 1, the candidate 2" in made.causes[0].message


def test_times_are_iso_8601_in_utc_and_durations_name_their_unit() -> None:
    made = document([exchange(0, failed="no")], QUICK, ended_at=None, judged_at=START + 60)
    assert made.run["started_at"] == "2023-11-14T22:13:20Z" and made.run["ended_at"] is None
    assert made.judged_at == "2023-11-14T22:14:20Z"
    assert made.causes[0].first_at == made.worst[0].at == "2023-11-14T22:13:20Z"
    assert {"level", "value_s", "low_s", "high_s"} == set(asdict(made.latency[0].quantiles[0]))


def test_a_quantile_with_too_few_samples_is_none() -> None:
    made = from_pairs(same(30))
    levels = next(one for one in made.latency if one.metric == "e2e" and one.arm == "candidate").quantiles
    assert [level.value_s is None for level in levels] == [False, False, True]


@pytest.mark.parametrize("code", ["minimum_span", "too_few_pairs", "not_enough_evidence", "not_final"])
def test_advice_to_wait_is_given_only_while_waiting_can_help(code: str) -> None:
    assert "let the run go on" in advice(Verdict.HOLD, code, kind="shadow", ended=False)
    assert "longer run" in advice(Verdict.HOLD, code, kind="shadow", ended=True)


@pytest.mark.parametrize(
    ("kind", "way"),
    [("import", "import more, or"), ("capture", "capture more, or"), ("replay", "replay more requests")],
)
def test_advice_on_what_does_not_grow_by_waiting_is_not_a_longer_run(kind: str, way: str) -> None:
    said = advice(Verdict.HOLD, "too_few_pairs", kind=kind, ended=True)
    assert way in said and "longer run" not in said


@pytest.mark.parametrize("verdict", [Verdict.ROLLBACK, Verdict.HOLD])
@pytest.mark.parametrize(
    "code", ["errors", "halt", "disagreement", "ttft_p95", "unscored", "sample_ratio", "new"]
)
def test_any_verdict_but_go_keeps_production_on_the_baseline(verdict: Verdict, code: str) -> None:
    assert advice(verdict, code, kind="shadow", ended=True).startswith("Keep production on the baseline")


@pytest.mark.parametrize("kind", ["capture", "import"])
def test_what_was_only_captured_has_to_be_replayed(kind: str) -> None:
    assert "migrate replay" in advice(Verdict.HOLD, "mirror_sent_nothing", kind=kind, ended=True)
    assert "shadow.percent" in advice(Verdict.HOLD, "mirror_sent_nothing", kind="shadow", ended=True)
