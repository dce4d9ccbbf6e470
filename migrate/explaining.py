"""From a store to why one rule says what it says."""

from __future__ import annotations

from typing import Any

from migrate.errors import ConfigError
from migrate.report import in_full, judge_run, timeout_of
from migrate.store import Run, Store
from reports.explain import Explanation, explain
from reports.judgement import Verdict
from reports.shown import Shown

_IN_FULL = 3


def explained(store: Store, run: Run, rule: str, **asked: Any) -> tuple[Explanation, list[Shown], Verdict]:
    """Why a rule (one of ``explain.NAMES``) says what it says, the pairs that weigh most in full, and the run's verdict.

    ``asked`` are the arguments of ``report.judge_run``. Raises ConfigError for a canary.
    """
    if run.kind == "canary":
        raise ConfigError(
            f"run {run.id} is a canary's, whose rules rest on two tables of requests; --explain shows runs of migrate shadow "
            "and migrate replay"
        )
    found = judge_run(store, run, **asked)
    items = {item.pair.id: item for item in found.look(None)}
    explanation = explain(
        [item.pair for item in items.values()],
        found.policy,
        rule,
        found.judgement,
        now=found.judged_at,
        counters=found.counters,
        final=run.ended_at is not None,
        timeout_s=timeout_of(run),
        since=found.since,
    )
    wanted = [one.id for one in (*explanation.worse, *explanation.better)][:_IN_FULL]
    return explanation, in_full(store, run, [items[one] for one in wanted]), found.judgement.verdict
