"""Four other ways to judge a candidate, from their published rules, on what each would see at a look.

None has a minimum span, a warm-up or a notion of pairs. Each says at which of the looks it rolls back first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.stats import norm, rankdata

from reports.columns import Answers, Columns
from reports.history import known_at
from reports.stats import Flags, Floats

MARGIN, MARGIN_S = 0.01, 0.05
"""The same promises as ours: errors by a point, latency by 50 ms; of the mean, and in one of them of the p99."""
_FEWEST = 20
_WINDOW_S, _BAD_WINDOWS = 300.0, 5
_FRACTION, _CRITICAL = 0.25, float(norm.ppf(0.99))
"""Kayenta: what part of its estimate the end of its 98 % interval must exceed, and where that interval ends."""
_TWO_SIDED = float(norm.ppf(0.975))


@dataclass(frozen=True, slots=True)
class Arm:
    """Requests of one arm, in the order in which they were known."""

    failed: Flags
    seconds: Floats
    """End to end; NaN of a failure."""

    @classmethod
    def of(cls, answers: Answers, order: NDArray[np.int64]) -> Arm:
        return cls(answers.failed[order], np.where(answers.answered, answers.e2e, np.nan)[order])


@dataclass(frozen=True, slots=True)
class Seen:
    """A run as a monitoring system sees it."""

    at: Floats
    """When each pair was known, ascending."""
    start: float
    baseline: Arm
    candidate: Arm

    @classmethod
    def of(cls, table: Columns) -> Seen:
        """The pairs of which both arms are known."""
        table = table.take(~table.baseline.missing & ~table.candidate.missing)
        known = known_at(table)
        order = np.argsort(known, kind="stable")
        start = float(table.at[0]) if len(table) else 0.0
        return cls(known[order], start, Arm.of(table.baseline, order), Arm.of(table.candidate, order))


Rival = Callable[[Seen, Sequence[float]], float | None]
"""The first look (epoch seconds) at which it rolls back; ``None``: at none."""


def running_threshold(seen: Seen, looks: Sequence[float]) -> float | None:
    """Errors or the mean or the p99 of everything so far are beyond a fixed margin."""
    upto = np.searchsorted(seen.at, looks, side="right")
    errors, seconds, _ = _means(seen, np.zeros_like(upto), upto)
    for look, end, bad in zip(looks, upto.tolist(), (errors > MARGIN) | (seconds > MARGIN_S), strict=True):
        if end >= _FEWEST and (bad or _p99(seen.candidate, end) - _p99(seen.baseline, end) > MARGIN_S):
            return look
    return None


def window_threshold(seen: Seen, looks: Sequence[float]) -> float | None:
    """Five windows of five minutes in which errors or the mean were beyond a fixed margin: a failure limit."""
    ends = np.arange(seen.start + _WINDOW_S, looks[-1] + 1e-6, _WINDOW_S)
    upto = np.searchsorted(seen.at, ends, side="right")
    before = np.concatenate([[0], upto[:-1]])
    errors, seconds, counts = _means(seen, before, upto)
    bad = ends[((errors > MARGIN) | (seconds > MARGIN_S)) & (counts >= _FEWEST)]
    return _next(looks, bad[_BAD_WINDOWS - 1]) if bad.size >= _BAD_WINDOWS else None


def repeated_z_test(seen: Seen, looks: Sequence[float]) -> float | None:
    """At each look a z-test of the paired differences in errors and one in latency, each two-sided at 5 %."""
    upto = np.searchsorted(seen.at, looks, side="right")
    errors = seen.candidate.failed.astype(np.float64) - seen.baseline.failed
    seconds = seen.candidate.seconds - seen.baseline.seconds
    bad = np.maximum(_z(errors, upto), _z(seconds, upto)) > _TWO_SIDED
    bad &= upto >= _FEWEST
    return looks[int(np.argmax(bad))] if bad.any() else None


def kayenta(seen: Seen, looks: Sequence[float]) -> float | None:
    """Mann-Whitney on the values of each minute so far (share of errors, mean latency); one metric called High fails."""
    metrics = [_by_minute(seen, arm) for arm in (seen.baseline, seen.candidate)]
    for look in looks:
        minutes = int((look - seen.start) // 60)
        if any(
            high(candidate[:minutes], baseline[:minutes])
            for baseline, candidate in zip(*metrics, strict=True)
        ):
            return look
    return None


RIVALS: dict[str, Rival] = {
    "running threshold": running_threshold,
    "5 bad windows": window_threshold,
    "hourly z-test": repeated_z_test,
    "Kayenta's rule": kayenta,
}


def high(experiment: Floats, control: Floats) -> bool:
    """Kayenta's Mann-Whitney classifier: the 98 % interval of the shift ends above a quarter of its estimate."""
    experiment, control = (values[~np.isnan(values)] for values in (experiment, control))
    if not experiment.size or not control.size or np.array_equal(np.sort(experiment), np.sort(control)):
        return False
    if _shifted(0.0, experiment, control, corrected=True) <= _CRITICAL:
        return False
    low = _root(
        lambda shift: _shifted(shift, experiment, control, corrected=True) - _CRITICAL, experiment, control
    )
    estimate = _root(lambda shift: _shifted(shift, experiment, control, corrected=False), experiment, control)
    return low > _FRACTION * abs(estimate)


def _root(of: Callable[[float], float], experiment: Floats, control: Floats) -> float:
    """Brent's method to 1e-4, as R's wilcox.test has it."""
    ends = float(experiment.min() - control.max()), float(experiment.max() - control.min())
    values = of(ends[0]), of(ends[1])
    if values[0] <= 0:
        return ends[0]
    if values[1] >= 0:
        return ends[1]
    found: float = brentq(of, *ends, xtol=1e-4)
    return found


def _shifted(shift: float, experiment: Floats, control: Floats, *, corrected: bool) -> float:
    """z of the rank sum of ``experiment - shift`` against ``control``, with the correction for ties."""
    size, other = experiment.size, control.size
    ranks = rankdata(np.concatenate([experiment - shift, control]))
    excess = ranks[:size].sum() - size * (size + 1) / 2 - size * other / 2
    ties = np.unique(ranks, return_counts=True)[1].astype(np.float64)
    total = size + other
    variance = size * other / 12 * (total + 1 - ((ties**3 - ties).sum() / (total * (total - 1))))
    if variance <= 0:
        return 0.0
    return float((excess - (0.5 * np.sign(excess) if corrected else 0.0)) / np.sqrt(variance))


def _by_minute(seen: Seen, arm: Arm) -> tuple[Floats, Floats]:
    minute = ((seen.at - seen.start) // 60).astype(np.int64)
    failed = np.bincount(minute, arm.failed)
    count = np.bincount(minute).astype(np.float64)
    answered = np.bincount(minute, ~np.isnan(arm.seconds))
    with np.errstate(invalid="ignore", divide="ignore"):
        return failed / count, np.bincount(minute, np.nan_to_num(arm.seconds)) / answered


def _means(seen: Seen, first: NDArray[np.int64], last: NDArray[np.int64]) -> tuple[Floats, Floats, Floats]:
    """Excess of the candidate's share of errors and of its mean latency between the positions, and how many pairs."""
    count = (last - first).astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        shares = [(_upto(arm.failed)[last] - _upto(arm.failed)[first]) / count for arm in _arms(seen)]
        means = [
            (_upto(np.nan_to_num(arm.seconds))[last] - _upto(np.nan_to_num(arm.seconds))[first])
            / (_upto(~np.isnan(arm.seconds))[last] - _upto(~np.isnan(arm.seconds))[first])
            for arm in _arms(seen)
        ]
    return shares[1] - shares[0], means[1] - means[0], count


def _arms(seen: Seen) -> tuple[Arm, Arm]:
    return seen.baseline, seen.candidate


def _upto(values: NDArray[np.generic]) -> Floats:
    return np.concatenate([[0.0], np.cumsum(values, dtype=np.float64)])


def _p99(arm: Arm, end: int) -> float:
    seconds = arm.seconds[:end]
    seconds = seconds[~np.isnan(seconds)]
    rank = int(0.99 * (seconds.size - 1)) if seconds.size else 0
    return float(np.partition(seconds, rank)[rank]) if seconds.size else np.nan


def _z(differences: Floats, upto: NDArray[np.int64]) -> Floats:
    """Mean over standard error of the paired differences before each position; NaN: no difference."""
    count = np.maximum(1, _upto(~np.isnan(differences))[upto])
    mean = _upto(np.nan_to_num(differences))[upto] / count
    square = _upto(np.nan_to_num(differences) ** 2)[upto] / count
    error = np.sqrt(np.maximum(square - mean**2, 0) / count)
    return np.where(error > 0, mean / np.where(error > 0, error, 1), 0.0)


def _next(looks: Sequence[float], at: float) -> float | None:
    place = int(np.searchsorted(looks, at))
    return looks[place] if place < len(looks) else None
