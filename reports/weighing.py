"""From what a rule read to what it says: evidence against both hypotheses, a verdict, and a reason a person can check."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from reports.advice import Missing, Outlook, outlook
from reports.fixed import fixed
from reports.forecast import (
    hours_for,
    pairs_of_blocks_until,
    pairs_until_above,
    round_up,
    wider_margin,
)
from reports.judgement import RuleResult, Verdict
from reports.policy import Policy
from reports.reading import Reading, Unread
from reports.rules import RULES, Rule
from reports.stats import (
    Floats,
    Test,
    anytime,
    log_evidences_over_time,
    pairs_until_below,
)

FEWEST_PAIRS = 20
"""Below this no estimate is printed."""
_INCIDENT_S = 300.0
_BLOCKS = 288
_FINEST = 2048
_SHORTEST_PERIOD_S = 600.0
_MOST_PER_BLOCK = 1.5
"""What five minutes may add to the logarithm of a bet's evidence for ROLLBACK. Without it a rare incident of one arm, far
outside of what independent requests do, is taken for proof (docs/verdicts.md has the measurement)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """What evidence has to reach, and how the run's time is cut for ROLLBACK."""

    needed_go: float
    needed_rollback: float
    block_s: float
    period_s: float
    trim: int
    most: float
    """What a block adds at most for each bet."""
    alpha: float
    minimum_coverage: float
    test: Test = anytime
    """How counts become evidence."""
    mirrored: float | None = None
    """Share of requests that is copied; ``None`` where nothing is."""
    unserved: int = 0
    """Pairs that are missing because the candidate does not offer what they ask: known, where others are not."""
    ended: bool = False
    """The run is over: only another one brings more pairs."""


def scale(
    policy: Policy,
    *,
    span_s: float,
    mirrored: float | None = None,
    rules: int | None = None,
    unserved: int = 0,
    ended: bool = False,
) -> Scale:
    """The scale of a policy for a run over ``span_s``.

    ROLLBACK pays for every required rule that applies (``rules``; ``None``: all), each of which may cause it (union
    bound); GO needs all of them and pays nothing. Blocks are coarsened in long runs for speed: they may be any and the
    evidence stays valid.
    """
    block = min(_INCIDENT_S, policy.minimum_span / _BLOCKS)
    required = sum(rule.promise(policy).required for rule in RULES) if rules is None else rules
    whole = policy.rehearsal or block <= 0
    trim = 0 if whole else policy.trim_blocks
    return Scale(
        needed_go=math.log(1 / policy.alpha),
        needed_rollback=math.log(max(1, required) / policy.alpha),
        block_s=_INCIDENT_S if whole else max(block, span_s / _FINEST, 1e-3),
        period_s=max(12 * block, _SHORTEST_PERIOD_S),
        trim=trim,
        most=math.inf if whole else _MOST_PER_BLOCK,
        alpha=policy.alpha,
        minimum_coverage=policy.minimum_coverage,
        test=test_of(policy),
        unserved=unserved,
        mirrored=mirrored,
        ended=ended,
    )


def test_of(policy: Policy) -> Test:
    """The primitive that the policy asks for."""
    return fixed if policy.analysis == "fixed" else anytime


def evidence_above(reading: Reading, scale: Scale) -> float:
    """Log evidence that harm is above the margin: trimmed, from any start."""
    grid = reading.grid(block_s=scale.block_s, period_s=scale.period_s)
    counts = grid.counts(reading.signs, reading.weight)
    return float(evidences_above(counts[None], grid.period, reading.bar, scale)[0])


def evidences_above(counts: Floats, period: NDArray[np.int64], bar: float, scale: Scale) -> Floats:
    """``evidence_above`` of several series at once: (series, block, sign) counts, and the period of each block."""
    if scale.test is anytime:
        return log_evidences_over_time(counts, period, bar, trim=scale.trim, most=scale.most)
    harm = counts[..., 0] - counts[..., 2] - bar * counts.sum(axis=-1)
    order = np.argsort(-harm, axis=1, kind="stable").argsort(axis=1)
    kept = np.where(((order < scale.trim) & (harm > 0))[..., None], 0.0, counts)
    worse, same, better = kept.sum(axis=1).T
    return scale.test(worse, same, better, bar, math.exp(-scale.needed_rollback))


def weigh(
    rule: Rule,
    read: Reading | Unread,
    scale: Scale,
    *,
    required: bool,
    noise: Reading | Unread | None = None,
    biased: bool = False,
    brief: bool = False,
) -> RuleResult:
    """What ``rule`` says of what it read; ``noise`` is the same reading of the baseline against its own repeat, which is
    ``biased`` where it shows harm.

    ``brief``: the verdict and its evidence, without interval, forecast and words.
    """
    if isinstance(read, Unread):
        return _unread(rule, read, required=required)
    result = _measured(rule, read, scale, required=required, noise=noise)
    if not brief:
        result = _told(rule, read, result, scale)
    if result.verdict is not Verdict.HOLD and biased:
        reason = "the baseline's own repeat breaks this rule: the measurement is biased and says nothing"
        return replace(result, verdict=Verdict.HOLD, reason=reason)
    if result.verdict is Verdict.GO and (harm := _finer_harm(rule, read.finer, scale)):
        result = replace(result, verdict=Verdict.HOLD, reason=harm)
    return replace(result, reason=f"{result.reason}; {read.note}") if read.note else result


def _finer_harm(rule: Rule, finer: Reading | None, scale: Scale) -> str | None:
    """What the labels that are too noisy to decide by say of harm; ``None`` when they show none."""
    if finer is None:
        return None
    low = finer.bounds()[0]
    if not (low > finer.margin or harmful(finer, scale)):
        return None
    return (
        f"below the margin by the labels that are read, but {show(finer.estimate, rule.unit)}, at least "
        f"{show(low, rule.unit)}, by all of them"
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
        applies=read.applicable,
    )


def harmful(read: Reading | Unread | None, scale: Scale) -> bool:
    """Whether the evidence of harm suffices for ROLLBACK."""
    return isinstance(read, Reading) and evidence_above(read, scale) >= scale.needed_rollback


def _measured(
    rule: Rule, read: Reading, scale: Scale, *, required: bool, noise: Reading | Unread | None
) -> RuleResult:
    worse, same, better = read.cautious
    above = evidence_above(read, scale)
    strict = _evidence_below(worse + read.missing, same, better, read.bar, scale)
    enough = read.signs.size >= FEWEST_PAIRS
    return RuleResult(
        rule=rule.name,
        verdict=_verdict(read, above, strict, scale),
        estimate=read.estimate if enough else None,
        low=None,
        high=None,
        margin=read.margin,
        unit=rule.unit,
        pairs=read.pairs,
        effective_pairs=sum(read.cautious),
        reason="",
        required=required,
        baseline=read.baseline if enough else None,
        candidate=read.candidate if enough else None,
        noise=noise.estimate if isinstance(noise, Reading) else None,
        method=rule.method.format(bound=_bound(scale)),
        missing=read.missing,
        evidence_go=strict,
        evidence_rollback=above,
    )


def _told(rule: Rule, read: Reading, result: RuleResult, scale: Scale) -> RuleResult:
    """With the interval, the forecast and a reason in words."""
    worse, same, better = read.cautious
    more = pairs_until_below(worse + read.missing, same, better, read.bar, scale.alpha, scale.test)
    if more is not None and result.effective_pairs:
        more = math.ceil(more * read.pairs / result.effective_pairs)
    ends = read.bounds()
    low, high = (end if math.isfinite(end) else None for end in ends)
    return replace(
        result,
        low=low,
        high=high,
        reason=_reason(rule, read, ends, result, scale, more=more),
        forecast_pairs=more,
        forecast_hours=hours_for(read, more),
    )


def _bound(scale: Scale) -> str:
    return f"{1 - scale.alpha:.0%} {'at every look' if scale.test is anytime else 'at one look'}"


def _evidence_below(worse: float, same: float, better: float, bar: float, scale: Scale) -> float:
    return float(scale.test(better, same, worse, -bar, scale.alpha))


def coverage(read: Reading) -> float | None:
    """Share of the pairs the rule should have seen that it could read; ``None`` when there were none.

    Failures of the candidate are left out of both: they never make up for pairs that are missing.
    """
    total = read.delivered + read.missing
    return read.delivered / total if total else None


def _verdict(read: Reading, above: float, strict: float, scale: Scale) -> Verdict:
    if above >= scale.needed_rollback and read.missing - scale.unserved <= read.signs.size:
        return Verdict.ROLLBACK
    covered = coverage(read)
    if strict >= scale.needed_go and covered is not None and covered >= scale.minimum_coverage:
        return Verdict.GO
    return Verdict.HOLD


def _reason(
    rule: Rule,
    read: Reading,
    ends: tuple[float, float],
    result: RuleResult,
    scale: Scale,
    *,
    more: int | None,
) -> str:
    """``ends`` of the interval; ``more`` pairs until GO."""
    margin = show(read.margin, rule.unit)
    if result.verdict is Verdict.GO:
        return f"at most {show(ends[1], rule.unit)}, below the margin of {margin}"
    if result.verdict is Verdict.ROLLBACK:
        return _harm(rule, read, ends[0], margin)
    if not read.pairs:
        return "no pair could be read yet" + (f"; {read.missing} are missing" if read.missing else "")
    covered = coverage(read)
    if covered is None or covered < scale.minimum_coverage:
        return (
            f"only {covered or 0:.1%} of its pairs could be read, {scale.minimum_coverage:.0%} are required"
        )
    if _evidence_below(*read.cautious, read.bar, scale) >= scale.needed_go:
        return f"below the margin of {margin}, but not with the {read.missing} missing pairs counted as harm"
    between = f"between {show(ends[0], rule.unit)} and {show(ends[1], rule.unit)}"
    return f"{between}, {outlook(_outlook(rule, read, ends, result, scale, more=more))}"


def _harm(rule: Rule, read: Reading, low: float, margin: str) -> str:
    estimate = "" if read.estimate is None else f"{show(read.estimate, rule.unit)}, "
    return (
        f"{estimate}at least {show(low, rule.unit)}, above the margin of {margin}"
        if low > read.margin
        else f"{estimate}above the margin of {margin}: harm began during the run"
    )


def _outlook(
    rule: Rule,
    read: Reading,
    ends: tuple[float, float],
    result: RuleResult,
    scale: Scale,
    *,
    more: int | None,
) -> Outlook:
    """How a rule that is not decided goes on. What costs time is worked out only where it is said."""
    above, go = ends[0] > read.margin, Missing(pairs=more, hours=hours_for(read, more))
    rollback = Missing(pairs=None, hours=None)
    if above or not go.soon:
        found = _pairs_until_rollback(read, result.evidence_rollback or 0.0, scale)
        rollback = Missing(pairs=found, hours=hours_for(read, found))
    stuck = not (above or go.soon or rollback.soon)
    wider = wider_margin(read, ends[1], scale.alpha, scale.test) if stuck else math.inf
    return Outlook(
        margin=show(read.margin, rule.unit),
        wider=show(round_up(wider), rule.unit) if read.margin < wider < math.inf else None,
        above=above,
        trim=scale.trim,
        go=go,
        rollback=rollback,
        mirrored=scale.mirrored,
        repeated=rule.name == "disagreement",
        ended=scale.ended,
    )


def _pairs_until_rollback(read: Reading, above: float, scale: Scale) -> int | None:
    if not (math.isfinite(scale.most) or scale.trim):
        return pairs_until_above(read, above, scale.needed_rollback, scale.test)

    def evidence(counts: Floats) -> float:
        period = np.floor(np.arange(len(counts)) * scale.block_s / scale.period_s).astype(np.int64)
        return float(evidences_above(counts[None], period, read.bar, scale)[0])

    return pairs_of_blocks_until(read, block_s=scale.block_s, evidence=evidence, needed=scale.needed_rollback)


def show(value: float | None, unit: str) -> str:
    """A share in percentage points, a latency in milliseconds, an unbounded end as ``unbounded``."""
    if value is None or not math.isfinite(value):
        return "unbounded"
    return f"{value * 100:.2f} %" if unit == "share" else f"{value * 1000:,.1f} ms"
