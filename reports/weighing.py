"""From what a rule read to what it says: evidence against both hypotheses, a verdict, and a reason a person can check."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from reports.judgement import RuleResult, Verdict
from reports.policy import Policy
from reports.reading import Reading, Unread
from reports.rules import RULES, Rule
from reports.stats import count_signs, log_evidence_below, log_evidence_over_time, pairs_until_below

FEWEST_PAIRS = 20
"""Below this no estimate is printed."""
_INCIDENT_S = 300.0
_BLOCKS = 288
_FINEST = 2048
_SHORTEST_PERIOD_S = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """What evidence has to reach, and how the run's time is cut for ROLLBACK."""

    needed_go: float
    needed_rollback: float
    block_s: float
    period_s: float
    trim: int
    pairs_per_hour: float
    alpha: float
    minimum_coverage: float


def scale(policy: Policy, *, pairs: int, span_s: float) -> Scale:
    """The scale of a policy for a run of ``pairs`` over ``span_s``.

    ROLLBACK pays for every required rule, each of which may cause it (union bound); GO needs all of them and pays
    nothing. Blocks are coarsened in long runs for speed: trimming may choose any blocks and stays valid.
    """
    block = min(_INCIDENT_S, policy.minimum_span / _BLOCKS)
    required = sum(rule.promise(policy).required for rule in RULES)
    trim = 0 if policy.rehearsal or block <= 0 else policy.trim_blocks
    return Scale(
        needed_go=math.log(1 / policy.alpha),
        needed_rollback=math.log(max(1, required) / policy.alpha),
        block_s=max(block, span_s / _FINEST, 1e-3) if trim else _INCIDENT_S,
        period_s=max(12 * block, _SHORTEST_PERIOD_S),
        trim=trim,
        pairs_per_hour=pairs / span_s * 3600 if span_s > 0 else 0.0,
        alpha=policy.alpha,
        minimum_coverage=policy.minimum_coverage,
    )


def evidence_above(reading: Reading, scale: Scale) -> float:
    """Log evidence that harm is above the margin: trimmed, from any start."""
    return log_evidence_over_time(
        reading.signs,
        reading.at,
        reading.bar,
        block_s=scale.block_s,
        trim=scale.trim,
        period_s=scale.period_s,
    )


def weigh(
    rule: Rule, read: Reading | Unread, scale: Scale, *, required: bool, noise: Reading | Unread | None = None
) -> RuleResult:
    """What ``rule`` says of what it read; ``noise`` is the same reading of the baseline against its own repeat."""
    if isinstance(read, Unread):
        return _unread(rule, read, required=required)
    result = _measured(rule, read, scale, required=required, noise=noise)
    if result.verdict is not Verdict.HOLD and harmful(noise, scale):
        reason = "the baseline's own repeat breaks this rule: the measurement is biased and says nothing"
        return replace(result, verdict=Verdict.HOLD, reason=reason)
    if result.verdict is Verdict.GO and (harm := _finer_harm(rule, read.finer, scale)):
        result = replace(result, verdict=Verdict.HOLD, reason=harm)
    return replace(result, reason=f"{result.reason}; {read.note}") if read.note else result


def _finer_harm(rule: Rule, finer: Reading | None, scale: Scale) -> str | None:
    """What the labels that are too noisy to decide by say of harm; ``None`` when they show none."""
    if finer is None or not (finer.low > finer.margin or harmful(finer, scale)):
        return None
    return (
        f"below the margin by the labels that are read, but {show(finer.estimate, rule.unit)}, at least "
        f"{show(finer.low, rule.unit)}, by all of them"
    )


def _unread(rule: Rule, read: Unread, *, required: bool) -> RuleResult:
    return RuleResult(
        rule=rule.name,
        verdict=Verdict.HOLD,
        estimate=None,
        low=None,
        high=None,
        margin=read.margin,
        unit=rule.unit,
        pairs=0,
        reason=read.reason,
        required=required and read.applicable,
    )


def harmful(read: Reading | Unread | None, scale: Scale) -> bool:
    """Whether the evidence of harm suffices for ROLLBACK."""
    return isinstance(read, Reading) and evidence_above(read, scale) >= scale.needed_rollback


def _measured(
    rule: Rule, read: Reading, scale: Scale, *, required: bool, noise: Reading | Unread | None
) -> RuleResult:
    worse, same, better = count_signs(read.cautious)
    above = evidence_above(read, scale)
    below = log_evidence_below(worse, same, better, read.bar)
    strict = log_evidence_below(worse + read.missing, same, better, read.bar)
    more = pairs_until_below(worse + read.missing, same, better, read.bar, scale.alpha)
    verdict = _verdict(read, above, strict, scale)
    hours = more / scale.pairs_per_hour if more is not None and scale.pairs_per_hour else None
    enough = read.signs.size >= FEWEST_PAIRS
    return RuleResult(
        rule=rule.name,
        verdict=verdict,
        estimate=read.estimate if enough else None,
        low=read.low if math.isfinite(read.low) else None,
        high=read.high if math.isfinite(read.high) else None,
        margin=read.margin,
        unit=rule.unit,
        pairs=int(read.cautious.size),
        reason=_reason(rule, read, verdict, scale, below=below, more=more),
        required=required,
        baseline=read.baseline if enough else None,
        candidate=read.candidate if enough else None,
        noise=noise.estimate if isinstance(noise, Reading) else None,
        method=rule.method.format(bound=f"{1 - scale.alpha:.0%}"),
        missing=read.missing,
        evidence_go=strict,
        evidence_rollback=above,
        forecast_pairs=more,
        forecast_hours=hours,
    )


def coverage(read: Reading) -> float | None:
    """Share of the pairs the rule should have seen that it could read; ``None`` when there were none.

    Failures of the candidate are left out of both: they never make up for pairs that are missing.
    """
    total = read.delivered + read.missing
    return read.delivered / total if total else None


def _verdict(read: Reading, above: float, strict: float, scale: Scale) -> Verdict:
    if above >= scale.needed_rollback:
        return Verdict.ROLLBACK
    covered = coverage(read)
    if strict >= scale.needed_go and covered is not None and covered >= scale.minimum_coverage:
        return Verdict.GO
    return Verdict.HOLD


def _reason(
    rule: Rule, read: Reading, verdict: Verdict, scale: Scale, *, below: float, more: int | None
) -> str:
    margin = show(read.margin, rule.unit)
    if verdict is Verdict.GO:
        return f"at most {show(read.high, rule.unit)}, below the margin of {margin}"
    if verdict is Verdict.ROLLBACK:
        return _harm(rule, read, margin)
    if not read.cautious.size:
        return "no pair could be read yet" + (f"; {read.missing} are missing" if read.missing else "")
    covered = coverage(read)
    if covered is None or covered < scale.minimum_coverage:
        return (
            f"only {covered or 0:.1%} of its pairs could be read, {scale.minimum_coverage:.0%} are required"
        )
    if below >= scale.needed_go:
        return f"below the margin of {margin}, but not with the {read.missing} missing pairs counted as harm"
    return _undecided(rule, read, scale, margin, more)


def _harm(rule: Rule, read: Reading, margin: str) -> str:
    estimate = "" if read.estimate is None else f"{show(read.estimate, rule.unit)}, "
    return (
        f"{estimate}at least {show(read.low, rule.unit)}, above the margin of {margin}"
        if (read.low > read.margin)
        else f"{estimate}above the margin of {margin}: harm began during the run"
    )


def _undecided(rule: Rule, read: Reading, scale: Scale, margin: str, more: int | None) -> str:
    between = f"between {show(read.low, rule.unit)} and {show(read.high, rule.unit)}"
    if read.low > read.margin:
        return f"{between}, above the margin of {margin}, but not yet proven without the worst {scale.trim} blocks"
    if more is None:
        return f"{between}; the margin of {margin} cannot be decided at this traffic: widen it or mirror more"
    return f"{between}, the margin is {margin}; about {more:,} more pairs for GO if they come as so far"


def show(value: float | None, unit: str) -> str:
    """A share in percentage points, a latency in milliseconds, an unbounded end as ``unbounded``."""
    if value is None or not math.isfinite(value):
        return "unbounded"
    return f"{value * 100:.2f} %" if unit == "share" else f"{value * 1000:,.1f} ms"
