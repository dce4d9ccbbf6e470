"""What a stored run says of its canary, judged as the gateway's judge does."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from migrate.canary import shift
from migrate.canary.evidence import evidence
from migrate.canary.section import CanarySection
from migrate.config import Config
from migrate.report import judge_run
from migrate.store import Store, Writer
from replay.exchange import Arm, ErrorClass, Failure, Outcome
from reports.judgement import Verdict
from tests.migrate.samples import observation, request

STEPS = CanarySection.model_validate(
    {"steps": [{"percent": 50, "minimum_span": "10m", "minimum_pairs": 100}, 100]}
).steps
SHARES = ("errors", "timeouts", "format_breaks", "refusals", "truncations", "tool_calls")
TIMES = ("latency_median", "latency_p95", "ttft_median", "ttft_p95", "tpot_median")
POLICY = {
    "warmup": "0s",
    **{name: {"margin": 0.1} for name in SHARES},
    **{name: {"margin": "1s", "required": False} for name in TIMES},
    "slow_share": {"limit": 0.3, "required": False},
    "disagreement": {"margin": 0.1, "required": False},
}
START, REQUESTS = 10_000.0, 1_200


def judged(
    folder: Path, *, failing: float = 0.0, counted: int = REQUESTS, since: float = START
) -> shift.Evidence:
    """Twenty minutes at a share of 50 %, of which the candidate fails a part."""
    config = Config.model_validate(
        {
            "baseline": {"kind": "vllm", "url": "http://127.0.0.1:1"},
            "candidate": {"kind": "vllm", "url": "http://127.0.0.1:2"},
            "policy": POLICY,
        }
    )
    data: dict[str, Any] = config.model_dump(mode="json", by_alias=True)
    chance = random.Random(1)
    with Store.open(f"sqlite:///{folder / 'store.db'}", create=True) as store:
        name = store.begin_run(kind="canary", config=data, policy=data["policy"], seed=1, at=START)
        writer = Writer(store, name)
        for n in range(REQUESTS):
            side, at = Arm.CANDIDATE if n % 2 else Arm.BASELINE, START + n
            writer.put(replace(request(f"r{n:04}", at), conversation=f"c{n}", side=side))
            writer.put(observation(f"r{n:04}", Arm.BASELINE, at=at))
            if side is Arm.CANDIDATE:
                seen = observation(f"r{n:04}", Arm.CANDIDATE, at=at)
                bad = chance.random() < failing
                writer.put(replace(seen, **FAILED) if bad else seen)
        writer.counters({"mirrored": counted, "passed": counted})
        assert writer.close(20)
        run = store.run(name)
        found = judge_run(store, run, policy=None, now=START + REQUESTS + 700, embed=None)
        state = shift.started("a", STEPS, at=since, who="one", why="a test", run=name)
        return evidence(found, run, state, STEPS)


FAILED: dict[str, Any] = {
    "outcome": Outcome.HTTP_ERROR,
    "status": 500,
    "answer": None,
    "failure": Failure(outcome=Outcome.HTTP_ERROR, error_class=ErrorClass.SERVER, message="oops", status=500),
}


def test_a_candidate_as_good_is_go_for_its_step_though_the_whole_is_too_young(tmp_path: Path) -> None:
    seen = judged(tmp_path)
    assert (seen.step, seen.whole) == (Verdict.GO, Verdict.HOLD), seen.reason


def test_one_that_fails_is_rolled_back_with_its_reason(tmp_path: Path) -> None:
    seen = judged(tmp_path, failing=0.4)
    assert Verdict.ROLLBACK in (seen.whole, seen.step) and "rror" in seen.reason, seen


def test_a_step_is_no_go_while_requests_are_missing_from_the_store(tmp_path: Path) -> None:
    seen = judged(tmp_path, counted=2 * REQUESTS)
    assert seen.step is Verdict.HOLD and "not recorded" in seen.reason


@pytest.mark.parametrize("since", [START + 900, START + REQUESTS + 1])
def test_only_what_came_since_the_share_began_counts_for_the_step(tmp_path: Path, since: float) -> None:
    assert judged(tmp_path, since=since).step is Verdict.HOLD
