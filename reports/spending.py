"""What the answers of a run cost, as far as their servers stated tokens; with the interval of the mean. Pure."""

from __future__ import annotations

import math
from array import array
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri, stdtrit

from replay.exchange import Outcome
from reports.columns import Answers
from reports.costing import TokenPrice, tokens_usd
from reports.judgement import Measured
from reports.stats import Flags, Floats

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Used:
    """What one arm's requests used, a value for each in every array; NaN where the server did not say."""

    answered: Flags
    failed: Flags
    retried: Flags
    prompt: Floats
    """Tokens."""
    output: Floats
    cached: Floats
    """Share of the prompt."""
    conversation: NDArray[np.int64]
    """A number for each; a negative one is a conversation of its own."""


class Using:
    """One arm's requests, added one at a time: 35 bytes for each, and no more, however many there are."""

    def __init__(self) -> None:
        self._flags = [bytearray() for _ in range(3)]
        self._numbers = [array("d") for _ in range(3)]
        self._conversation = array("q")

    def add(self, session: str | None, one: Measured | None) -> None:
        """A request of that conversation (``None``: its own). An arm that was not asked used nothing."""
        if one is None or one.outcome.missing:
            return
        flags = (one.outcome is Outcome.OK, one.outcome.failed, one.attempts > 1)
        numbers = (one.prompt_tokens, one.output_tokens, one.cached)
        for column, flag in zip(self._flags, flags, strict=True):
            column.append(flag)
        for values, value in zip(self._numbers, numbers, strict=True):
            values.append(math.nan if value is None else value)
        self._conversation.append(-1 if session is None else _number(session))

    def done(self) -> Used:
        """What was added."""
        answered, failed, retried = (np.array(column, dtype=np.bool_) for column in self._flags)
        prompt, output, cached = (np.array(values) for values in self._numbers)
        return Used(
            answered=answered,
            failed=failed,
            retried=retried,
            prompt=prompt,
            output=output,
            cached=cached,
            conversation=np.array(self._conversation),
        )


def _number(session: str) -> int:
    """At least 0, equal for equal conversations."""
    return int.from_bytes(blake2b(session.encode("utf-8", "surrogatepass"), digest_size=8).digest()) >> 1


def used_of(answers: Answers, prompt_tokens: NDArray[np.int64], session: NDArray[np.int64]) -> Used:
    """The same of columns; ``prompt_tokens`` is 0 where the server did not say."""
    return Used(
        answered=answers.answered,
        failed=answers.failed,
        retried=answers.retried,
        prompt=np.where(prompt_tokens > 0, prompt_tokens, np.nan),
        output=answers.tokens,
        cached=answers.cached,
        conversation=session,
    )


def spent(seen: Used, price: TokenPrice | None) -> Spent:
    """What one arm used and, where tokens have a ``price``, cost."""
    counted = seen.answered & np.isfinite(seen.prompt) & np.isfinite(seen.output)
    prompt, output, cached = seen.prompt[counted], seen.output[counted], seen.cached[counted]
    stated = np.isfinite(cached)
    usd = np.empty(0) if price is None else tokens_usd(price, prompt, output, np.where(stated, cached, 0.0))
    return Spent(
        answered=int(seen.answered.sum()),
        counted=int(counted.sum()),
        failed=int(seen.failed.sum()),
        retried=int((seen.retried & seen.answered).sum()),
        prompt_tokens=float(prompt.mean()) if prompt.size else None,
        cached_tokens=float((prompt * np.where(stated, cached, 0.0)).mean()) if stated.any() else None,
        cached_stated=int(stated.sum()),
        output_tokens=float(output.mean()) if output.size else None,
        usd=float(usd.sum()) if usd.size else None,
        usd_per_request=mean(usd, seen.conversation[counted]) if usd.size else None,
    )


def mean(values: Floats, conversations: NDArray[np.int64]) -> Mean:
    """The mean of ``values`` and its 95 % interval, in which the requests of one conversation speak together.

    The mean is a ratio of two sums over G conversations; with ``r`` = a conversation's sum - its size x mean, its variance is
    G / (G - 1) x sum(r²) / n² (linearization, Cochran 1977, 6.4), and the interval Student's with G - 1 degrees of freedom.
    A negative number is a conversation of its own. Never below 0.
    """
    own = np.where(conversations < 0, -1 - np.arange(values.size), conversations)
    names, group = np.unique(own, return_inverse=True)
    value, groups = float(values.mean()), names.size
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
