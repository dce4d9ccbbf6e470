"""A verdict after a ROLLBACK that somebody acknowledged: pairs from before no longer make one, and still keep GO away. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from reports.columns import Columns
from reports.history import first_rollback
from reports.judge import conclude, judge_columns, take_in
from reports.judgement import Check, Judgement, RuleResult, Verdict
from reports.policy import Policy
from reports.rules import TITLES


def judge_since(table: Columns, policy: Policy, *, since: float | None, **asked: Any) -> Judgement:
    """``judge_columns``, where only pairs dispatched at or after ``since`` (epoch seconds; ``None``: all) can make a ROLLBACK.

    They are judged as a run of their own, with a warm-up of its own: who acknowledges has changed the candidate. ``asked``
    are the other arguments of ``judge_columns``.
    """
    if since is None:
        return judge_standing(table, policy, **asked)
    whole = judge_columns(table, policy, **asked)
    fresh = judge_standing(table.take(table.at >= since), policy, **asked)
    if fresh.verdict is Verdict.ROLLBACK:
        return _standing(whole, fresh, fresh.code, fresh.reason, Verdict.ROLLBACK)
    if whole.verdict is not Verdict.ROLLBACK:
        return whole
    code, reason = (
        "acknowledged",
        f"The ROLLBACK ({whole.code}) was acknowledged; its pairs still keep GO away.",
    )
    return _standing(whole, fresh, code, reason, Verdict.HOLD)


def judge_standing(table: Columns, policy: Policy, **asked: Any) -> Judgement:
    """``judge_columns``, where a ROLLBACK stays one though better hours have thinned its evidence: waiting is no cure."""
    seen = take_in(table, policy, **asked)
    judged = conclude(seen)
    first = None if judged.verdict is Verdict.ROLLBACK else first_rollback(seen)
    if first is None:
        return judged
    when = datetime.fromtimestamp(first.at, UTC).strftime("%Y-%m-%dT%H:%MZ")
    stays = f"its evidence sufficed by {when}, and a ROLLBACK stays until somebody acknowledges it"
    rules = tuple(
        replace(rule, verdict=Verdict.ROLLBACK, reason=f"{rule.reason}; {stays}")
        if rule.rule == first.code
        else rule
        for rule in judged.rules
    )
    title = TITLES[first.code]
    reason = f"{title[:1].upper()}{title[1:]}: {stays}."
    return replace(judged, verdict=Verdict.ROLLBACK, code=first.code, reason=reason, rules=rules)


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
        growth=fresh.growth,
    )


def _rule(rule: RuleResult, fresh: Mapping[str, RuleResult]) -> RuleResult:
    now = fresh[rule.rule]
    if now.verdict is Verdict.ROLLBACK:
        reason = f"since the acknowledgement {now.reason}"
        return replace(rule, verdict=now.verdict, reason=reason, evidence_rollback=now.evidence_rollback)
    if rule.verdict is not Verdict.ROLLBACK:
        return rule
    reason = f"{rule.reason}; acknowledged, and the pairs since then do not show it"
    return replace(rule, verdict=Verdict.HOLD, evidence_rollback=now.evidence_rollback, reason=reason)


def _check(check: Check, fresh: Judgement) -> Check:
    """A safety stop that was acknowledged is over."""
    return next(one for one in fresh.checks if one.code == "halt") if check.code == "halt" else check
