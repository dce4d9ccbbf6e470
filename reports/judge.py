"""One verdict out of pairs: GO, ROLLBACK or HOLD, with every rule, check and count that led to it. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from reports.advice import LATENCY_RULES
from reports.columns import Columns, columns
from reports.fitness import unfit
from reports.judgement import Check, Judgement, Pair, RuleResult, Verdict
from reports.ledger import Ledger, sort_out
from reports.noise import as_candidate, floor, labels
from reports.policy import Policy
from reports.quality import quality
from reports.reading import Frame, Reading, Unread, e2e, ttft, window, yardstick
from reports.rules import RULES
from reports.slices import slices
from reports.validity import Facts, checks, halt
from reports.weighing import Scale, harmful, scale, weigh

TITLES = {rule.name: rule.title for rule in RULES}
METHOD = (
    "anytime-valid: signed-count e-processes; GO needs evidence {go:.0f} to 1 below every required margin, ROLLBACK "
    "{rollback:.0f} to 1 above one, without the worst {trim} blocks"
)


def judge(
    pairs: Sequence[Pair],
    policy: Policy,
    *,
    now: float,
    counters: Mapping[str, int] | None = None,
    final: bool = False,
    timeout_s: float = 600.0,
) -> Judgement:
    """The verdict on ``pairs`` under ``policy``; may be asked as often as one likes.

    ``now`` is in epoch seconds. Pairs dispatched less than ``timeout_s`` (the backends' total timeout) before it do not
    count, or only quick answers would; ``final`` says that the run has ended and nothing is in flight. ``counters`` are
    the gateway's (see ``validity.Facts``). Raises ValueError when a number is NaN, infinite or negative.
    """
    return judge_columns(columns(pairs), policy, now=now, counters=counters, final=final, timeout_s=timeout_s)


def judge_columns(
    table: Columns,
    policy: Policy,
    *,
    now: float,
    counters: Mapping[str, int] | None = None,
    final: bool = False,
    timeout_s: float = 600.0,
) -> Judgement:
    """``judge`` on columns."""
    ledger = sort_out(table, policy, now=now, final=final, timeout_s=timeout_s)
    evidence, frame = ledger.evidence, _frame(ledger, policy)
    measure = scale(policy, pairs=len(evidence), span_s=_span(evidence))
    readings = _readings(evidence, frame, unfit(evidence, counters or {}))
    repeats = as_candidate(evidence)
    floors = {rule.name: floor(rule, repeats, frame) for rule in RULES}
    biased = tuple(name for name, noise in floors.items() if harmful(noise, measure))
    rules = tuple(
        weigh(
            rule,
            readings[rule.name],
            measure,
            required=rule.promise(policy).required,
            noise=floors[rule.name],
        )
        for rule in RULES
    )
    found = checks(
        Facts(policy=policy, ledger=ledger, readings=readings, biased=biased, counters=counters or {})
    )
    stop = halt(table, policy, counted=~ledger.places["warm_up"])
    verdict, code, reason = _conclude(rules, found, stop)
    return Judgement(
        verdict=verdict,
        code=code,
        reason=reason,
        rules=rules,
        checks=(
            *found,
            Check(code="halt", passed=stop is None, message=stop or "no outage of the candidate"),
        ),
        ledger=ledger.counts,
        span_s=_span(table),
        labels=labels(evidence, policy, measure),
        quality=quality(evidence, measure),
        slices=slices(evidence, readings, measure),
        method=_method(measure),
    )


def _readings(evidence: Columns, frame: Frame, unfit: str | None) -> dict[str, Reading | Unread]:
    """Each rule's reading; latencies that are no evidence are read by none, so that they cannot speak for a ROLLBACK either."""
    read = {rule.name: rule.read(evidence, frame) for rule in RULES}
    if unfit is None:
        return read
    return {
        name: Unread(reason=f"not judged: {unfit}", margin=one.margin)
        if name in LATENCY_RULES and not (isinstance(one, Unread) and not one.applicable)
        else one
        for name, one in read.items()
    }


def _frame(ledger: Ledger, policy: Policy) -> Frame:
    table, final, size = ledger.columns, ~ledger.places["not_final"], window(policy)
    return Frame(
        policy=policy,
        streamed=bool(table.streamed.any()),
        e2e=yardstick(table, final, size, e2e),
        ttft=yardstick(table, final & table.streamed, size, ttft),
    )


def _conclude(
    rules: Sequence[RuleResult], found: Sequence[Check], stop: str | None
) -> tuple[Verdict, str, str]:
    """ROLLBACK by safety stop or evidence; else HOLD by the first failed check; else GO when all required rules say so."""
    if stop:
        return Verdict.ROLLBACK, "halt", f"Safety stop, not a claim about rates: {stop}."
    required = [rule for rule in rules if rule.required]
    if broken := [rule for rule in required if rule.verdict is Verdict.ROLLBACK]:
        return _rollback(broken)
    if failed := [check for check in found if not check.passed]:
        return Verdict.HOLD, failed[0].code, _sentence(check.message for check in failed[:2])
    if undecided := [rule for rule in required if rule.verdict is Verdict.HOLD]:
        return _undecided(undecided)
    if not required:
        return Verdict.HOLD, "nothing_required", "No required rule applies to what was recorded."
    return Verdict.GO, "go", f"All {len(required)} required rules show harm below their margins."


def _rollback(broken: Sequence[RuleResult]) -> tuple[Verdict, str, str]:
    """The rule with the strongest evidence names the verdict."""
    order = sorted(broken, key=lambda rule: -(rule.evidence_rollback or 0.0))
    return (
        Verdict.ROLLBACK,
        order[0].rule,
        _sentence(f"{TITLES[rule.rule]}: {rule.reason}" for rule in order[:3]),
    )


def _undecided(undecided: Sequence[RuleResult]) -> tuple[Verdict, str, str]:
    """The rule that is furthest from GO names what is missing."""
    order = sorted(undecided, key=lambda rule: -(rule.forecast_pairs or 10**9))
    code = "not_enough_evidence"
    return Verdict.HOLD, code, _sentence(f"{TITLES[rule.rule]}: {rule.reason}" for rule in order[:3])


def _sentence(parts: Iterable[str]) -> str:
    text = "; ".join(parts)
    return f"{text[:1].upper()}{text[1:]}."


def _span(table: Columns) -> float:
    return float(table.at[-1] - table.at[0]) if len(table) else 0.0


def _method(scale: Scale) -> str:
    go, rollback = math.exp(scale.needed_go), math.exp(scale.needed_rollback)
    return METHOD.format(go=go, rollback=rollback, trim=scale.trim)
