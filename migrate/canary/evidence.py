"""What a run says of its canary: the whole, which may roll back, and the pairs at the present share, which may advance it."""

from __future__ import annotations

from collections.abc import Sequence

from migrate.canary.section import Step
from migrate.canary.shift import Evidence, Shift
from migrate.report import JudgedRun, timeout_of
from migrate.store import Run
from reports.canary import judge_canary
from reports.judgement import Verdict


def evidence(found: JudgedRun, run: Run, now: Shift, steps: Sequence[Step]) -> Evidence:
    """What the judgement of a run says of a canary whose state was ``now`` before.

    The step is held to its own span and number of pairs, and has no warm-up: the server has been asked before. It is no GO while
    the run lacks requests that were to be recorded.
    """
    step = steps[min(now.step, len(steps) - 1)]
    policy = found.policy.model_copy(
        update={"minimum_span": step.minimum_span, "minimum_pairs": step.minimum_pairs, "warmup": 0.0}
    )
    table, whole = found.seen.columns, found.judgement
    part = judge_canary(
        table.take(table.at >= now.since),
        policy,
        now=found.judged_at,
        final=run.ended_at is not None,
        timeout_s=timeout_of(run),
        everybody=now.share >= 1,
    )
    verdict, reason = part.verdict, part.reason
    lost = next((one for one in whole.checks if one.code == "not_recorded" and not one.passed), None)
    if verdict is Verdict.GO and lost is not None:
        verdict, reason = Verdict.HOLD, lost.message
    if whole.verdict is Verdict.ROLLBACK:
        reason = whole.reason
    return Evidence(whole=whole.verdict, step=verdict, reason=reason, since=now.since)
