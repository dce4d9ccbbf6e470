"""What a run says of its canary: the whole, which may roll back, and the pairs at the present share, which may advance it."""

from __future__ import annotations

from collections.abc import Sequence

from migrate.canary.section import Step
from migrate.canary.shift import Evidence, Shift
from migrate.report import judge_run, stored_policy, timeout_of
from migrate.store import Run, Store
from reports.canary import judge_canary
from reports.compare import Embed
from reports.judgement import Verdict


def evidence(
    store: Store, run: Run, now: Shift, steps: Sequence[Step], *, at: float, embed: Embed | None
) -> Evidence:
    """The judgement of a run at ``at`` (epoch seconds) for a canary whose state is ``now``.

    The step is held to its own span and number of pairs, and has no warm-up: the server has been asked before. Pairs from
    before somebody resumed make no ROLLBACK.
    """
    found = judge_run(store, run, policy=None, now=at, embed=embed)
    step = steps[min(now.step, len(steps) - 1)]
    policy = stored_policy(run).model_copy(
        update={"minimum_span": step.minimum_span, "minimum_pairs": step.minimum_pairs, "warmup": 0.0}
    )
    table = found.seen.columns
    part = judge_canary(
        table.take(table.at >= now.since),
        policy,
        now=at,
        final=run.ended_at is not None,
        timeout_s=timeout_of(run),
        everybody=now.share >= 1,
    )
    whole = found.judgement
    reason = whole.reason if whole.verdict is Verdict.ROLLBACK else part.reason
    lost = any(check.code == "not_recorded" and not check.passed for check in whole.checks)
    step_verdict = Verdict.HOLD if lost and part.verdict is Verdict.GO else part.verdict
    return Evidence(whole=whole.verdict, step=step_verdict, reason=reason, since=now.since)
