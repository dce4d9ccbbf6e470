"""The latency rules. Two readings of failed requests keep both verdicts honest:

- towards GO a failed request has infinite latency in its arm: who fails fast has not shown to be fast;
- towards ROLLBACK of a tail or slow share a timeout has infinite latency, any other failure has none: errors have their
  own rule, and an error incident is not a slow tail.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from replay.exchange import Outcome
from reports.columns import Answers, Columns
from reports.intervals import exceedance_bound, median_interval, share_interval
from reports.policy import LatencyRule, Policy
from reports.reading import Frame, Latency, Reading, Unread, e2e, mean, middle, signs_of, ttft, untied, window
from reports.sessions import weights
from reports.stats import Flags, Floats, count_signs, finite
from reports.stats import median as median_of


def slow_share(columns: Columns, frame: Frame) -> Reading | Unread:
    """Sign = 1{candidate slower than the p99 of the baseline's latest answers}, over pairs that the baseline answered.

    Towards ROLLBACK only where the baseline was not as slow itself: a load that outruns the yardstick slows both arms.
    """
    limit, alpha = frame.policy.slow_share.limit, frame.policy.alpha
    threshold = frame.tails[e2e].tail(0.99, columns.position)
    ready = np.isfinite(threshold) & ~columns.baseline.failed
    if not ready.any():
        return _no_yardstick(frame, limit)
    columns, threshold = columns.take(ready), threshold[ready]
    base, candidate, known = _latencies(columns, e2e)
    slow, kept = candidate > threshold, known & _has_latency(columns.candidate)
    signs, weight = (slow & (base <= threshold))[kept].astype(np.int8), weights(columns.session[kept])
    cautious = count_signs(slow[known].astype(np.int8), weights(columns.session[known]))

    def bounds() -> tuple[float, float]:
        low = share_interval(*count_signs(signs, weight), alpha, frame.test)[0]
        return max(0.0, low), share_interval(*cautious, alpha, frame.test)[1]

    return Reading(
        run_at=frame.at,
        position=columns.position[kept],
        signs=signs,
        weight=weight,
        cautious=cautious,
        pairs=int(np.count_nonzero(known)),
        delivered=int(np.count_nonzero(known & columns.candidate.answered)),
        missing=int(np.count_nonzero(~known)),
        bar=limit,
        margin=limit,
        estimate=mean(slow[kept], weight),
        bounds=bounds,
        baseline=mean((base > threshold)[kept], weight),
        candidate=mean(slow[kept], weight),
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


def _applies(columns: Columns, latency: Latency, frame: Frame) -> Flags | str:
    """The pairs that have such a latency, or why none has. An end-to-end latency belongs to every answer, a TTFT to every
    stream; the rhythm of a stream to those whose baseline came in pieces with its tokens counted, or failed. A candidate that
    does not tell is missing there: what it keeps to itself is no evidence for it."""
    if latency is e2e:
        return np.ones(len(columns), dtype=np.bool_)
    if not frame.streamed:
        return "does not apply: no request of the run was streamed"
    if latency is ttft:
        return columns.streamed
    told = columns.baseline.answered & ~np.isnan(latency(columns.baseline))
    if not told.any():
        return "does not apply: no stream of the baseline came in pieces with its tokens counted"
    having: Flags = columns.streamed & (told | (columns.baseline.failed & columns.candidate.answered))
    return having


_Read = Callable[[Columns, Frame], Reading | Unread]


def _light(read: _Read) -> _Read:
    """Reads again when the interval is asked for: until then its latencies, as long as the run, are nobody's memory."""

    def light(columns: Columns, frame: Frame) -> Reading | Unread:
        found = read(columns, frame)
        if isinstance(found, Unread):
            return found
        return replace(found, bounds=lambda: _bounds(read(columns, frame)))

    return light


def _bounds(read: Reading | Unread) -> tuple[float, float]:
    return read.bounds() if isinstance(read, Reading) else (-math.inf, math.inf)


def median(
    latency: Latency, promise: Callable[[Policy], LatencyRule]
) -> Callable[[Columns, Frame], Reading | Unread]:
    """Reads paired differences: sign of (candidate - baseline - margin). Both failed: no difference.

    Towards ROLLBACK only requests that have a latency in both arms, a timeout's being infinite.
    """

    def read(columns: Columns, frame: Frame) -> Reading | Unread:
        rule, having = promise(frame.policy), _applies(columns, latency, frame)
        if isinstance(having, str):
            return Unread(reason=having, applicable=False, margin=rule.margin)
        columns = columns.take(having)
        base, candidate, known = _latencies(columns, latency)
        kept = known & ~(np.isinf(base) & np.isinf(candidate))
        missing = int(np.count_nonzero(~known))
        return _differences(columns.take(kept), base[kept], candidate[kept], missing, rule, frame)

    return _light(read)


def _differences(
    columns: Columns,
    base: Floats,
    candidate: Floats,
    missing: int,
    rule: LatencyRule,
    frame: Frame,
) -> Reading:
    """With ``or`` each difference has its own margin; all are shown on the scale of the median baseline's."""
    relative, weight = rule.relative or 0.0, weights(columns.session)
    typical = middle(base, weight)
    margin = rule.margin if typical is None else max(rule.margin, relative * typical)
    excess = candidate - base - np.maximum(rule.margin, relative * np.where(np.isinf(base), 0.0, base))
    signs, shown = signs_of(excess > 0, excess < 0), excess + margin
    cautious, alpha = count_signs(signs, weight), frame.policy.alpha
    timed = _has_latency(columns.baseline) & _has_latency(columns.candidate)
    told = weights(columns.session[timed])

    def bounds() -> tuple[float, float]:
        low, high = median_interval(shown[timed], alpha, told, frame.test)
        return low, high if timed.all() else median_interval(shown, alpha, weight, frame.test)[1]

    return Reading(
        run_at=frame.at,
        position=columns.position[timed],
        signs=signs[timed],
        weight=told,
        cautious=cautious,
        pairs=signs.size,
        delivered=int(np.count_nonzero(columns.candidate.answered)),
        missing=missing,
        bar=0.0,
        margin=margin,
        estimate=middle(shown[timed], told),
        bounds=bounds,
        baseline=typical,
        candidate=middle(candidate[timed], told),
    )


def p95(
    latency: Latency, promise: Callable[[Policy], LatencyRule]
) -> Callable[[Columns, Frame], Reading | Unread]:
    """Reads the tail: sign = 1{candidate > threshold + margin} - 1{baseline > threshold}.

    The threshold is the p95 of the baseline's latest answers. The mean sign is negative exactly when the candidate's
    quantile, at the level at which the baseline crosses the threshold, is less than the margin above it.
    """

    def read(columns: Columns, frame: Frame) -> Reading | Unread:
        rule, having = promise(frame.policy), _applies(columns, latency, frame)
        if isinstance(having, str):
            return Unread(reason=having, applicable=False, margin=rule.margin)
        threshold = frame.tails[latency].tail(0.95, columns.position)
        ready = np.isfinite(threshold) & having
        if not ready.any():
            return _no_yardstick(frame, rule.margin)
        columns = columns.take(ready)
        base, candidate, known = _latencies(columns, latency)
        kept = known & _has_latency(columns.baseline) & _has_latency(columns.candidate)
        tail = _Tail.of(threshold[ready], untied(base, columns.position), candidate, rule)
        return _exceedances(columns, known, kept, tail, frame)

    return _light(read)


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
        margin = median_of(margins)
        excess = candidate - threshold - margins + margin
        return cls(threshold=median_of(threshold), margin=margin, excess=excess, base_slow=base > threshold)


def _exceedances(columns: Columns, known: Flags, kept: Flags, tail: _Tail, frame: Frame) -> Reading:
    signs, alpha = signs_of(tail.excess > tail.margin, tail.base_slow), frame.policy.alpha
    excess, base_slow = tail.excess[kept], tail.base_slow[kept]
    weight, cautious = weights(columns.session[kept]), weights(columns.session[known])
    shift = _equal_shift(excess, base_slow, weight)

    def bound(of: Flags, heavy: Floats, *, upper: bool) -> float:
        return exceedance_bound(
            tail.excess[of], tail.base_slow[of], alpha, upper=upper, weight=heavy, test=frame.test
        )

    return Reading(
        run_at=frame.at,
        position=columns.position[kept],
        signs=signs[kept],
        weight=weight,
        cautious=count_signs(signs[known], cautious),
        pairs=int(np.count_nonzero(known)),
        delivered=int(np.count_nonzero(known & columns.candidate.answered)),
        missing=int(np.count_nonzero(~known)),
        bar=0.0,
        margin=tail.margin,
        estimate=shift,
        bounds=lambda: (bound(kept, weight, upper=False), bound(known, cautious, upper=True)),
        baseline=tail.threshold,
        candidate=None if shift is None else tail.threshold + shift,
    )


def _equal_shift(excess: Floats, base_slow: Flags, weight: Floats) -> float | None:
    """The shift at which the candidate exceeds the threshold as often as the baseline; ``None`` if it cannot be said."""
    if weight.size and weight.min() < 1:
        order = np.argsort(-excess, kind="stable")
        beyond = np.cumsum(weight[order])
        place = int(np.searchsorted(beyond, weight[base_slow].sum() + 1e-9, side="right"))
        return finite(float(excess[order][place])) if place < excess.size and base_slow.any() else None
    rank = excess.size - 1 - int(np.count_nonzero(base_slow))
    return finite(float(np.partition(excess, rank)[rank])) if 0 <= rank < excess.size - 1 else None
