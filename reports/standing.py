"""A verdict after a ROLLBACK that somebody acknowledged: pairs from before no longer make one, and still keep GO away. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from reports.columns import Columns, columns
from reports.judge import judge_columns
from reports.judgement import Check, Judgement, Pair, RuleResult, Verdict
from reports.policy import Policy


def judge_since(pairs: Sequence[Pair], policy: Policy, *, since: float | None, **asked: Any) -> Judgement:
    """``judge``, where only pairs dispatched at or after ``since`` (epoch seconds; ``None``: all) can make a ROLLBACK.

    They are judged as a run of their own, with a warm-up of its own: who acknowledges has changed the candidate. ``asked``
    are the other arguments of ``judge``.
    """
    table = columns(pairs)
    whole = judge_columns(table, policy, **asked)
    if since is None:
        return whole
    fresh = judge_columns(_from(table, since), policy, **asked, verdict_only=True)
    if fresh.verdict is Verdict.ROLLBACK:
        return _standing(whole, fresh, fresh.code, fresh.reason, Verdict.ROLLBACK)
    if whole.verdict is not Verdict.ROLLBACK:
        return whole
    code, reason = (
        "acknowledged",
        f"The ROLLBACK ({whole.code}) was acknowledged; its pairs still keep GO away.",
    )
    return _standing(whole, fresh, code, reason, Verdict.HOLD)


def _from(table: Columns, since: float) -> Columns:
    """The pairs from ``since`` on, as a run of their own."""
    late = table.take(table.at >= since)
    return replace(late, position=np.arange(len(late)))


def _standing(whole: Judgement, fresh: Judgement, code: str, reason: str, verdict: Verdict) -> Judgement:
    """The whole judgement, with what the fresh pairs alone say of harm."""
    said = {rule.rule: rule for rule in fresh.rules}
    return replace(
        whole,
        verdict=verdict,
        code=code,
        reason=reason,
        rules=tuple(_rule(rule, said) for rule in whole.rules),
        checks=tuple(_check(check, fresh) for check in whole.checks),
    )


def _rule(rule: RuleResult, fresh: Mapping[str, RuleResult]) -> RuleResult:
    now = fresh[rule.rule]
    if now.verdict is Verdict.ROLLBACK:
        return replace(rule, verdict=now.verdict, evidence_rollback=now.evidence_rollback)
    if rule.verdict is not Verdict.ROLLBACK:
        return rule
    reason = f"{rule.reason}; acknowledged, and the pairs since then do not show it"
    return replace(rule, verdict=Verdict.HOLD, evidence_rollback=now.evidence_rollback, reason=reason)


def _check(check: Check, fresh: Judgement) -> Check:
    """A safety stop that was acknowledged is over."""
    return next(one for one in fresh.checks if one.code == "halt") if check.code == "halt" else check
