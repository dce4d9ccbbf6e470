"""Retries of a copy, off the client's path. tenacity stays in this file."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable

from tenacity import (
    AsyncRetrying,
    RetryCallState,
    retry_if_result,
    stop_after_attempt,
    wait_random_exponential,
)

from migrate.config import Retry
from replay.exchange import Failure, Recording
from replay.failures import classify

Attempt = tuple[Recording, Failure | None]


async def send_with_retries(
    send: Callable[[], Awaitable[Recording]], policy: Retry
) -> tuple[Recording, tuple[Failure, ...]]:
    """Sends, and sends again while the failure is one that a retry can help and no byte of an answer's body came in 200.

    Waits as long as Retry-After asks, at most ``policy.longest_wait``. Returns the last recording and the failures of the
    attempts before it.
    """
    first = await _attempt(send)
    if first[1] is None or not first[1].retryable:
        return first[0], ()  # by far the most: they pay nothing for the machinery below
    earlier: list[Failure] = []
    known = [first]

    async def attempt() -> Attempt:
        return known.pop() if known else await _attempt(send)

    def note(state: RetryCallState) -> None:
        if (failure := _result(state)[1]) is not None:
            earlier.append(failure)

    retrying = AsyncRetrying(
        retry=retry_if_result(lambda result: result[1] is not None and result[1].retryable),
        stop=stop_after_attempt(policy.attempts),
        wait=lambda state: _wait(state, policy.longest_wait),
        before_sleep=note,
        retry_error_callback=_result,
    )
    last: Attempt = await retrying(attempt)
    return last[0], tuple(earlier)


async def _attempt(send: Callable[[], Awaitable[Recording]]) -> Attempt:
    recording = await send()
    return recording, classify(recording, now=time.time())


_jitter = wait_random_exponential(multiplier=0.5, max=10)


def _wait(state: RetryCallState, longest: float) -> float:
    failure = _result(state)[1]
    asked = failure.retry_after_s if failure else None
    return min(_jitter(state) if asked is None else asked, longest)


def _result(state: RetryCallState) -> Attempt:
    if state.outcome is None:  # tenacity asks only after an attempt
        raise RuntimeError("no attempt was made")
    result: Attempt = state.outcome.result()
    return result
