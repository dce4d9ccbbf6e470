"""From stored exchanges to pairs: the numbers of each arm, and whether the answers would serve a user differently."""

from __future__ import annotations

from itertools import pairwise
from typing import Protocol

import orjson

from replay.exchange import Exchange, Observation, Outcome, Request
from reports.judgement import Measured, Pair, Severity

NOT_COMPARABLE = "not_comparable"
"""A reason that starts with this word marks a pair whose answers say nothing about each other."""
_UNSENT = Measured(outcome=Outcome.NOT_SENT, reason="not observed")


class Compared(Protocol):
    """What a comparison of two answers has to say here."""

    @property
    def severity(self) -> Severity:
        """The worst finding."""

    @property
    def scored(self) -> bool:
        """Whether every comparator that was needed could say something."""


def measure(observation: Observation | None) -> Measured | None:
    """The numbers of one observation; ``None`` when there was none."""
    if observation is None:
        return None
    timing, failure = observation.timing, observation.failure
    return Measured(
        outcome=observation.outcome,
        error_class=failure.error_class if failure else None,
        e2e_s=timing.e2e_s,
        ttft_s=timing.ttft_s,
        itl_s=tuple(later - earlier for earlier, later in pairwise(timing.content_times)),
        output_tokens=observation.output_tokens,
        cached=_cached(observation),
        attempts=observation.attempts,
        reason=observation.reason,
    )


def _cached(observation: Observation) -> float | None:
    usage = observation.answer.usage if observation.answer else None
    if usage is None or usage.cached_tokens is None or not usage.prompt_tokens:
        return None
    return min(1.0, max(0.0, usage.cached_tokens / usage.prompt_tokens))


def differs(comparison: Compared | None) -> bool | None:
    """Whether a user would be served differently: a BLOCK finding. ``None`` when it was not scored, or is INVALID."""
    if comparison is None or not comparison.scored or comparison.severity is Severity.INVALID:
        return None
    return comparison.severity is Severity.BLOCK


def pair_up(exchange: Exchange, comparison: Compared | None = None, repeat: Compared | None = None) -> Pair:
    """The pair of an exchange; ``comparison`` is candidate against baseline, ``repeat`` the baseline against itself.

    An arm that was not observed is NOT_SENT: a request counts from the moment it is dispatched.
    """
    request = exchange.request
    return Pair(
        id=request.id,
        at=request.at,
        baseline=measure(exchange.baseline) or _UNSENT,
        candidate=measure(exchange.candidate) or _UNSENT,
        repeat=measure(exchange.repeat),
        differs=differs(comparison),
        repeat_differs=differs(repeat),
        not_comparable=_not_comparable(exchange.candidate),
        session=request.conversation,
        streamed=_streamed(exchange),
        labels={"path": request.path.partition("?")[0]},
    )


def _not_comparable(candidate: Observation | None) -> str | None:
    reason = candidate.reason if candidate else ""
    return reason if reason.startswith(NOT_COMPARABLE) else None


def _streamed(exchange: Exchange) -> bool:
    """Whether the client asked for a stream; where the body is no longer kept, whether an answer came as one."""
    asked = _asks_for_stream(exchange.request)
    if asked is not None:
        return asked
    return any(map(_is_event_stream, (exchange.baseline, exchange.candidate)))


def _asks_for_stream(request: Request) -> bool | None:
    try:
        body = orjson.loads(request.body)
    except orjson.JSONDecodeError:
        return None
    return body.get("stream") is True if isinstance(body, dict) else None


def _is_event_stream(observation: Observation | None) -> bool:
    headers = observation.headers if observation else ()
    return any(
        name.lower() == "content-type" and value.startswith("text/event-stream") for name, value in headers
    )
