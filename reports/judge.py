"""One verdict out of pairs: GO, ROLLBACK or HOLD, with every rule, check and count that led to it. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from reports.advice import LATENCY_RULES
from reports.advisory import Growth, Slices
from reports.columns import Columns, columns
from reports.facts import duration
from reports.fitness import unfit
from reports.growth import growth
from reports.judgement import Check, Judgement, Pair, RuleResult, Verdict
from reports.ledger import Ledger, sort_out
from reports.noise import as_candidate, floor, labels
from reports.policy import Policy
from reports.quality import quality
from reports.reading import Frame, Reading, Unread, e2e, itl, tpot, ttft, window, yardstick
from reports.rules import RULES, TITLES
from reports.safety import halt
from reports.slices import slices
from reports.validity import Facts, checks
from reports.weighing import Scale, harmful, scale, test_of, weigh

METHODS = {
    "anytime": "anytime-valid: signed-count e-processes; GO needs evidence {go:.0f} to 1 below every required margin, "
    "ROLLBACK {rollback:.0f} to 1 above one{blocks}",
    "fixed": "fixed sample: exact tests of signed counts, once, at the end; GO needs p at most 1/{go:.0f} against harm at "
    "every required margin, ROLLBACK 1/{rollback:.0f} against harm within one{blocks}",
}


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
    verdict_only: bool = False,
) -> Judgement:
    """``judge`` on columns; ``verdict_only`` leaves out what only a reader wants: labels, quality and slices."""
    seen = take_in(table, policy, now=now, counters=counters, final=final, timeout_s=timeout_s)
    return conclude(seen, verdict_only=verdict_only)


def conclude(seen: Taken, *, verdict_only: bool = False) -> Judgement:
    """The judgement of what was taken in."""
    ledger, readings, measure, policy = seen.ledger, seen.readings, seen.measure, seen.policy
    rules = tuple(
        weigh(
            rule,
            readings[rule.name],
            measure,
            required=rule.promise(policy).required,
            noise=seen.floors[rule.name],
            biased=rule.name in seen.biased,
            brief=verdict_only,
        )
        for rule in RULES
    )
    found = checks(
        Facts(policy=policy, ledger=ledger, readings=readings, biased=seen.biased, counters=seen.counters)
    )
    current = ~ledger.places["other_version"]
    stop = halt(ledger.columns.take(current), counted=~ledger.places["warm_up"][current])
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
        span_s=_span(ledger.columns),
        labels=() if verdict_only else labels(ledger.evidence, policy, measure),
        quality=() if verdict_only else quality(ledger.evidence, measure),
        slices=Slices() if verdict_only else slices(ledger.evidence, readings, measure),
        growth=() if verdict_only else tuple(_growth(seen)),
        method=_method(policy, measure),
    )


def _growth(seen: Taken) -> Iterator[Growth]:
    """A fixed-sample analysis looks once."""
    if seen.policy.analysis == "fixed":
        return
    for rule in RULES:
        read = seen.readings[rule.name]
        if rule.promise(seen.policy).required and isinstance(read, Reading):
            yield growth(rule.name, read, seen.measure)


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """What a judgement rests on, before anything is concluded."""

    policy: Policy
    counters: Mapping[str, int]
    ledger: Ledger
    frame: Frame
    readings: Mapping[str, Reading | Unread]
    """By rule."""
    floors: Mapping[str, Reading | Unread]
    """The same, between the baseline and its own repeat."""
    biased: tuple[str, ...]
    """Rules that the baseline's own repeat breaks."""
    measure: Scale


def take_in(
    table: Columns,
    policy: Policy,
    *,
    now: float,
    counters: Mapping[str, int] | None = None,
    final: bool = False,
    timeout_s: float = 600.0,
) -> Taken:
    """Every rule's reading of the pairs that count; arguments as of ``judge``."""
    table, counters = replace(table, position=np.arange(len(table), dtype=np.int32)), counters or {}
    ledger = sort_out(table, policy, now=now, final=final, timeout_s=timeout_s)
    evidence, frame = ledger.evidence, frame_of(ledger, policy)
    ppm = counters.get("mirror_ppm")
    waits = policy.analysis == "fixed" and not final
    readings = _readings(evidence, frame, _UNFINISHED if waits else unfit(evidence, counters), every=waits)
    stakes = sum(rule.promise(policy).required and _applies(readings[rule.name]) for rule in RULES)
    measure = scale(
        policy,
        span_s=_span(evidence),
        mirrored=ppm / 1e6 if ppm else None,
        rules=stakes,
        unserved=ledger.count("unserved"),
        ended=final,
    )
    repeats = as_candidate(evidence)
    floors = {rule.name: floor(rule, repeats, frame) for rule in RULES}
    return Taken(
        policy=policy,
        counters=counters,
        ledger=ledger,
        frame=frame,
        readings=readings,
        floors=floors,
        biased=tuple(name for name, noise in floors.items() if harmful(noise, measure)),
        measure=measure,
    )


def _applies(read: Reading | Unread) -> bool:
    return isinstance(read, Reading) or read.applicable


_UNFINISHED = "a fixed-sample analysis speaks once, when the run has ended"


def _readings(
    evidence: Columns, frame: Frame, unfit: str | None, *, every: bool
) -> dict[str, Reading | Unread]:
    """Each rule's reading. What is no evidence (latencies, or ``every`` rule) is not read, so that it cannot speak for a
    ROLLBACK either."""
    read = {rule.name: rule.read(evidence, frame) for rule in RULES}
    if unfit is None:
        return read
    return {
        name: Unread(reason=f"not judged: {unfit}", margin=one.margin)
        if (every or name in LATENCY_RULES) and _applies(one)
        else one
        for name, one in read.items()
    }


def frame_of(ledger: Ledger, policy: Policy) -> Frame:
    """What rules may know of a run besides the pairs that count."""
    table, final, size = ledger.columns, ~ledger.places["not_final"], window(policy)
    return Frame(
        policy=policy,
        at=table.at,
        test=test_of(policy),
        streamed=bool(table.streamed.any()),
        tails={
            one: yardstick(table, final & (table.streamed | (one is e2e)), size, one)
            for one in (e2e, ttft, tpot, itl)
        },
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


def _method(policy: Policy, scale: Scale) -> str:
    go, rollback = math.exp(scale.needed_go), math.exp(scale.needed_rollback)
    length = duration(scale.block_s)
    blocks = f", without the worst {scale.trim} blocks of {length}" if scale.trim else ""
    if math.isfinite(scale.most) and policy.analysis == "anytime":
        blocks += f", to which no block of {length} adds more than a factor of {math.exp(scale.most):.1f}"
    return METHODS[policy.analysis].format(go=go, rollback=rollback, blocks=blocks)
