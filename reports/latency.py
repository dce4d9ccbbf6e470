"""The latency rules. Two readings of failed requests keep both verdicts honest:

- towards GO a failed request has infinite latency in its arm: who fails fast has not shown to be fast;
- towards ROLLBACK of a tail or slow share a timeout has infinite latency, any other failure has none: errors have their
  own rule, and an error incident is not a slow tail.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from replay.exchange import Outcome
from reports.columns import Answers, Columns
from reports.policy import LatencyRule, Policy
from reports.reading import Frame, Latency, Reading, Unread, e2e, mean, signs_of, untied, window
from reports.stats import Flags, Floats, count_signs, exceedance_bound, median_interval, share_interval


def slow_share(columns: Columns, frame: Frame) -> Reading | Unread:
    """Sign = 1{candidate slower than the p99 of the baseline's latest answers}, over pairs that the baseline answered.

    Towards ROLLBACK only where the baseline was not as slow itself: a load that outruns the yardstick slows both arms.
    """
    limit, alpha = frame.policy.slow_share.limit, frame.policy.alpha
    threshold = frame.e2e.p99[columns.position]
    ready = np.isfinite(threshold) & ~columns.baseline.failed
    if not ready.any():
        return _no_yardstick(frame, limit)
    columns, threshold = columns.take(ready), threshold[ready]
    base, candidate, known = _latencies(columns, e2e)
    slow, kept = candidate > threshold, known & _has_latency(columns.candidate)
    signs, cautious = (slow & (base <= threshold))[kept].astype(np.int8), slow[known].astype(np.int8)
    return Reading(
        at=columns.at[kept],
        position=columns.position[kept],
        signs=signs,
        cautious=cautious,
        delivered=int((known & columns.candidate.answered).sum()),
        missing=int((~known).sum()),
        bar=limit,
        margin=limit,
        estimate=mean(slow[kept]),
        low=max(0.0, share_interval(*count_signs(signs), alpha)[0]),
        high=share_interval(*count_signs(cautious), alpha)[1],
        baseline=mean((base > threshold)[kept]),
        candidate=mean(slow[kept]),
    )


def _latencies(columns: Columns, latency: Latency) -> tuple[Floats, Floats, Flags]:
    """Baseline's and candidate's seconds (infinite for a failed request), and where both are known."""
    base, candidate = (
        np.where(arm.failed, math.inf, np.where(arm.answered, latency(arm), np.nan))
        for arm in (columns.baseline, columns.candidate)
    )
    return base, candidate, ~np.isnan(base) & ~np.isnan(candidate)


def _has_latency(answers: Answers) -> Flags:
    return answers.answered | answers.having(Outcome.TIMEOUT)


def _no_yardstick(frame: Frame, margin: float) -> Unread:
    reason = (
        f"no pair yet after the baseline's first {window(frame.policy)} answers, from which its tail is known"
    )
    return Unread(reason=reason, margin=margin)


def _not_streamed(margin: float) -> Unread:
    reason = "does not apply: no request of the run was streamed"
    return Unread(reason=reason, applicable=False, margin=margin)


def median(
    latency: Latency, promise: Callable[[Policy], LatencyRule], *, streamed: bool
) -> Callable[[Columns, Frame], Reading | Unread]:
    """Reads paired differences: sign of (candidate - baseline - margin). Both failed: no difference."""

    def read(columns: Columns, frame: Frame) -> Reading | Unread:
        rule = promise(frame.policy)
        if streamed and not frame.streamed:
            return _not_streamed(rule.margin)
        columns = columns.take(columns.streamed) if streamed else columns
        base, candidate, known = _latencies(columns, latency)
        kept = known & ~(np.isinf(base) & np.isinf(candidate))
        missing = int((~known).sum())
        return _differences(
            columns.take(kept), base[kept], candidate[kept], missing, rule, frame.policy.alpha
        )

    return read


def _differences(
    columns: Columns,
    base: Floats,
    candidate: Floats,
    missing: int,
    rule: LatencyRule,
    alpha: float,
) -> Reading:
    """With ``or`` each difference has its own margin; all are shown on the scale of the median baseline's."""
    relative = rule.relative or 0.0
    typical = _middle(base)
    margin = rule.margin if typical is None else max(rule.margin, relative * typical)
    excess = candidate - base - np.maximum(rule.margin, relative * np.where(np.isinf(base), 0.0, base))
    signs, shown = np.sign(excess).astype(np.int8), excess + margin
    low, high = median_interval(shown, alpha)
    return Reading(
        at=columns.at,
        position=columns.position,
        signs=signs,
        cautious=signs,
        delivered=int(columns.candidate.answered.sum()),
        missing=missing,
        bar=0.0,
        margin=margin,
        estimate=_middle(shown),
        low=low,
        high=high,
        baseline=typical,
        candidate=_middle(candidate),
    )


def _middle(values: Floats) -> float | None:
    """The median; ``None`` when it is infinite or there is none."""
    if not values.size:
        return None
    ranks = [(values.size - 1) // 2, values.size // 2]
    low, high = np.partition(values, ranks)[ranks]
    return float(low + high) / 2 if math.isfinite(low) and math.isfinite(high) else None


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def p95(
    latency: Latency, promise: Callable[[Policy], LatencyRule], *, streamed: bool
) -> Callable[[Columns, Frame], Reading | Unread]:
    """Reads the tail: sign = 1{candidate > threshold + margin} - 1{baseline > threshold}.

    The threshold is the p95 of the baseline's latest answers. The mean sign is negative exactly when the candidate's
    quantile, at the level at which the baseline crosses the threshold, is less than the margin above it.
    """

    def read(columns: Columns, frame: Frame) -> Reading | Unread:
        rule = promise(frame.policy)
        if streamed and not frame.streamed:
            return _not_streamed(rule.margin)
        threshold = (frame.ttft if streamed else frame.e2e).p95[columns.position]
        ready = np.isfinite(threshold) & (columns.streamed | (not streamed))
        if not ready.any():
            return _no_yardstick(frame, rule.margin)
        columns = columns.take(ready)
        base, candidate, known = _latencies(columns, latency)
        kept = known & _has_latency(columns.baseline) & _has_latency(columns.candidate)
        tail = _Tail.of(threshold[ready], untied(base, columns.position), candidate, rule)
        return _exceedances(columns, known, kept, tail, frame.policy.alpha)

    return read


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tail:
    """Exceedances of one arm over the other's threshold, seconds; ``excess`` is on the scale of the typical margin."""

    threshold: float
    margin: float
    excess: Floats
    base_slow: Flags

    @classmethod
    def of(cls, threshold: Floats, base: Floats, candidate: Floats, rule: LatencyRule) -> _Tail:
        margins = np.maximum(rule.margin, (rule.relative or 0.0) * threshold)
        margin = float(np.median(margins))
        excess = candidate - threshold - margins + margin
        return cls(
            threshold=float(np.median(threshold)), margin=margin, excess=excess, base_slow=base > threshold
        )


def _exceedances(columns: Columns, known: Flags, kept: Flags, tail: _Tail, alpha: float) -> Reading:
    signs = signs_of(tail.excess > tail.margin, tail.base_slow)
    excess, base_slow = tail.excess[kept], tail.base_slow[kept]
    shift = _equal_shift(excess, base_slow)
    return Reading(
        at=columns.at[kept],
        position=columns.position[kept],
        signs=signs[kept],
        cautious=signs[known],
        delivered=int((known & columns.candidate.answered).sum()),
        missing=int((~known).sum()),
        bar=0.0,
        margin=tail.margin,
        estimate=shift,
        low=exceedance_bound(excess, base_slow, alpha, upper=False),
        high=exceedance_bound(tail.excess[known], tail.base_slow[known], alpha, upper=True),
        baseline=tail.threshold,
        candidate=None if shift is None else tail.threshold + shift,
    )


def _equal_shift(excess: Floats, base_slow: Flags) -> float | None:
    """The shift at which the candidate exceeds the threshold as often as the baseline; ``None`` if it cannot be said."""
    rank = excess.size - 1 - int(base_slow.sum())
    return _finite(float(np.partition(excess, rank)[rank])) if 0 <= rank < excess.size - 1 else None
