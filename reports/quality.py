"""Quality without a reference: what can be counted in an answer by itself, in both arms of the same pairs. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reports.advisory import Drift
from reports.columns import Answers, Columns
from reports.intervals import median_interval, share_interval
from reports.multiplicity import e_bh
from reports.reading import mean, signs_of
from reports.sessions import weights
from reports.stats import Flags, Floats, Signs, count_signs, grid_of, log_evidences_over_time, median
from reports.weighing import FEWEST_PAIRS, Scale, show

TOLERATED_SHARE = 0.01
"""One answer in a hundred more or less is not worth a word."""
TOLERATED_RATIO = 1.1
"""A median answer that is a tenth longer or shorter is not worth a word."""


def quality(columns: Columns, scale: Scale) -> tuple[Drift, ...]:
    """Lengths and rates over pairs that both arms answered; ``columns`` are the pairs that count, in time order."""
    answered = columns.baseline.answered & columns.candidate.answered
    found = [*_lengths(columns, answered, scale), *_rates(columns, answered, scale)]
    named = e_bh(np.array([drift.evidence or 0.0 for drift in found]), scale.alpha)
    return tuple(replace(drift, named=bool(name)) for drift, name in zip(found, named, strict=True))


@dataclass(frozen=True, slots=True)
class _Two:
    """One trait of two arms on the same pairs, where both are known."""

    at: Floats
    before: NDArray[Any]
    after: NDArray[Any]
    weight: Floats


def _two(columns: Columns, before: NDArray[Any], after: NDArray[Any], known: Flags) -> _Two:
    return _Two(columns.at[known], before[known], after[known], weights(columns.session[known]))


def _lengths(columns: Columns, answered: Flags, scale: Scale) -> Iterator[Drift]:
    for name in ("characters", "tokens"):

        def two(arm: Answers, name: str = name) -> _Two:
            before, after = getattr(columns.baseline, name), getattr(arm, name)
            return _two(columns, before, after, answered & (before > 0) & (after > 0))

        if (seen := two(columns.candidate)).at.size:
            yield _length(name, seen, two(columns.repeat), scale)


def _length(name: str, seen: _Two, again: _Two, scale: Scale) -> Drift:
    ratios = np.log(seen.after / seen.before)
    # Without logarithms, so that a length exactly at the limit is judged alike in both directions.
    longer, shorter = (
        np.sign(one - TOLERATED_RATIO * other).astype(np.int8)
        for one, other in ((seen.after, seen.before), (seen.before, seen.after))
    )
    low, high = (math.exp(bound) for bound in median_interval(ratios, scale.alpha, seen.weight))
    return _drift(
        name=name,
        unit="ratio",
        pairs=ratios.size,
        baseline=median(seen.before),
        candidate=median(seen.after),
        estimate=math.exp(median(ratios)),
        low=low if low > 0 else None,
        high=high if math.isfinite(high) else None,
        noise=math.exp(median(np.log(again.after / again.before))) if again.at.size else None,
        tolerated=TOLERATED_RATIO,
        evidence=_either_way(seen, longer, shorter, 0.0, scale),
    )


def _rates(columns: Columns, answered: Flags, scale: Scale) -> Iterator[Drift]:
    for place, name in enumerate(columns.traits):
        before = columns.baseline.traits[:, place]
        seen, again = (
            _two(
                columns, before, arm.traits[:, place], answered & (before >= 0) & (arm.traits[:, place] >= 0)
            )
            for arm in (columns.candidate, columns.repeat)
        )
        if seen.at.size:
            yield _rate(name, seen, again, scale)


def _rate(name: str, seen: _Two, again: _Two, scale: Scale) -> Drift:
    signs = _difference(seen)
    low, high = share_interval(*count_signs(signs, seen.weight), scale.alpha)
    return _drift(
        name=name,
        unit="share",
        pairs=signs.size,
        baseline=mean(seen.before > 0, seen.weight),
        candidate=mean(seen.after > 0, seen.weight),
        estimate=mean(signs, seen.weight),
        low=low,
        high=high,
        noise=float(_difference(again).mean()) if again.at.size else None,
        tolerated=TOLERATED_SHARE,
        evidence=_either_way(seen, signs, -signs, TOLERATED_SHARE, scale),
    )


def _difference(two: _Two) -> Signs:
    return signs_of(two.after > 0, two.before > 0)


def _either_way(seen: _Two, up: Signs, down: Signs, margin: float, scale: Scale) -> float:
    """Evidence for one direction or the other: the mean of both is evidence again."""
    grid = grid_of(seen.at, block_s=scale.block_s, period_s=scale.period_s)
    counts = np.stack([grid.counts(signs, seen.weight) for signs in (up, down)])
    both = log_evidences_over_time(counts, grid.period, margin, trim=scale.trim, most=scale.most)
    return float(np.logaddexp(*both)) - math.log(2)


def _drift(**parts: object) -> Drift:
    """Without estimates where there are too few pairs for any."""
    drift = Drift(**parts, named=False, reason="")  # type: ignore[arg-type]
    if drift.pairs < FEWEST_PAIRS:
        few = f"{drift.pairs} pairs are too few"
        return replace(drift, baseline=None, candidate=None, estimate=None, noise=None, reason=few)
    return replace(drift, reason=_reason(drift))


def _reason(drift: Drift) -> str:
    if drift.unit == "ratio":
        ends = (drift.low, drift.high)
        low, high = ("unbounded" if end is None else f"{end:.2f}" for end in ends)
        return f"{drift.estimate:.2f} times as many, between {low} and {high}"
    before, after = show(drift.baseline, "share"), show(drift.candidate, "share")
    return f"{before} became {after}, between {show(drift.low, 'share')} and {show(drift.high, 'share')} more"
