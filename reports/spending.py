"""What the answers of a run cost, as far as their servers stated tokens; with the interval of the mean. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from scipy.special import chdtri, stdtrit

from reports.costing import TokenPrice, request_usd
from reports.judgement import Measured
from reports.stats import Floats

CONFIDENCE = 0.95
FEW = 30
"""With fewer conversations an interval of the mean is rough: costs are skewed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mean:
    """A mean with its interval."""

    value: float
    low: float | None
    high: float | None
    """``None`` with fewer than two conversations."""
    conversations: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """What one arm of a run used. Means are over the answers that stated both counts; ``None`` where none did."""

    answered: int
    counted: int
    """Answers whose server stated prompt and output tokens; the others are in no figure."""
    failed: int
    """Requests without an answer; what they cost is not known."""
    retried: int
    """Answers that took more than one attempt; what the earlier ones cost is not known."""
    prompt_tokens: float | None
    cached_tokens: float | None
    """Of the prompt; ``None`` where not one answer stated it."""
    cached_stated: int
    """Counted answers that stated what came from the cache."""
    output_tokens: float | None
    usd: float | None
    """All counted answers together; ``None`` without a price for tokens, or without counts."""
    usd_per_request: Mean | None


def spent(answers: Iterable[tuple[str | None, Measured | None]], price: TokenPrice | None) -> Spent:
    """What one arm's answers used and, where tokens have a ``price``, cost. An answer comes with its conversation.

    An arm that was not asked is no answer and no failure.
    """
    seen = [(session, one) for session, one in answers if one is not None and not one.outcome.missing]
    answered = [(session, one) for session, one in seen if not one.outcome.failed]
    counted = [
        (session, one, one.prompt_tokens, one.output_tokens)
        for session, one in answered
        if one.prompt_tokens is not None and one.output_tokens is not None
    ]
    cached = [
        prompt * one.cached if one.cached is not None else None for _, one, prompt, _ in counted if prompt
    ]
    stated = [one for one in cached if one is not None]
    usd = _costs(price, counted)
    return Spent(
        answered=len(answered),
        counted=len(counted),
        failed=len(seen) - len(answered),
        retried=sum(one.attempts > 1 for _, one in answered),
        prompt_tokens=_mean([prompt for *_, prompt, _ in counted]),
        cached_tokens=sum(stated) / len(counted) if stated else None,
        cached_stated=len(stated),
        output_tokens=_mean([output for *_, output in counted]),
        usd=float(usd.sum()) if usd.size else None,
        usd_per_request=mean(usd, [session for session, *_ in counted]) if usd.size else None,
    )


def _costs(price: TokenPrice | None, counted: list[tuple[str | None, Measured, int, int]]) -> Floats:
    if price is None:
        return np.empty(0)
    return np.array([request_usd(price, prompt, output, one.cached) for _, one, prompt, output in counted])


def _mean(values: list[int]) -> float | None:
    return sum(values) / len(values) if values else None


def mean(values: Floats, conversations: list[str | None]) -> Mean:
    """The mean of ``values`` and its 95 % interval, in which the requests of one conversation speak together.

    The mean is a ratio of two sums over G conversations; with ``r`` = a conversation's sum - its size x mean, its variance is
    G / (G - 1) x sum(r²) / n² (linearization, Cochran 1977, 6.4), and the interval Student's with G - 1 degrees of freedom.
    ``None`` is a conversation of its own. Never below 0.
    """
    places: dict[str | int, int] = {}
    keys = [n if name is None else name for n, name in enumerate(conversations)]
    group = np.array([places.setdefault(key, len(places)) for key in keys])
    value, groups = float(values.mean()), len(places)
    if groups < 2:
        return Mean(value=value, low=None, high=None, conversations=groups)
    rest = np.bincount(group, values - value)
    error = math.sqrt(groups / (groups - 1) * float((rest**2).sum())) / values.size
    reach = float(stdtrit(groups - 1, (1 + CONFIDENCE) / 2)) * error
    return Mean(value=value, low=max(0.0, value - reach), high=value + reach, conversations=groups)


@dataclass(frozen=True, slots=True, kw_only=True)
class Throughput:
    """Requests a second within the limits of goodput, of one replica."""

    per_s: float
    low: float | None
    high: float | None
    """``None`` for a figure that came without its counts."""
    source: str


def measured_throughput(met: int, window_s: float, source: str) -> Throughput:
    """``met`` good answers in ``window_s`` seconds, with the exact 95 % interval of a Poisson count (Garwood 1936)."""
    tail = (1 - CONFIDENCE) / 2
    low = float(chdtri(2 * met, 1 - tail)) / 2
    high = float(chdtri(2 * met + 2, tail)) / 2
    return Throughput(per_s=met / window_s, low=low / window_s, high=high / window_s, source=source)
