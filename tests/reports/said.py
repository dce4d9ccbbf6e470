"""Builders of answers to compare: who said what to which request."""

from __future__ import annotations

from typing import Any

import orjson

from replay.exchange import (
    Answer,
    Arm,
    Choice,
    ErrorClass,
    Failure,
    Observation,
    Oddity,
    Outcome,
    Request,
    ToolCall,
    Usage,
)
from reports.compare import Comparison, compare


def request(identity: str = "r1", **body: Any) -> Request:
    return Request(
        id=identity,
        at=1_000.0,
        method="POST",
        path="/v1/chat/completions",
        headers=(),
        body=orjson.dumps(body),
        conversation="c",
    )


def choice(text: str = "", **fields: Any) -> Choice:
    return Choice(text=text, **{"finish_reason": "stop", **fields})


def calls(*made: tuple[str, str], finish: str = "tool_calls", text: str = "") -> Choice:
    """A choice that calls (name, arguments) in turn."""
    tools = tuple(
        ToolCall(name=name, arguments=arguments, id=f"id-{n}") for n, (name, arguments) in enumerate(made)
    )
    return Choice(text=text, tool_calls=tools, finish_reason=finish)


def seen(
    *choices: Choice | str,
    arm: Arm = Arm.BASELINE,
    tokens: int | None = None,
    oddities: tuple[str, ...] = (),
    raw: bytes | None = None,
) -> Observation:
    made = tuple(choice(one, index=n) if isinstance(one, str) else one for n, one in enumerate(choices))
    usage = None if tokens is None else Usage(completion_tokens=tokens)
    odd = tuple(Oddity(code=code) for code in oddities)
    answer = Answer(choices=made, usage=usage, oddities=odd)
    return Observation(
        request_id="r1", arm=arm, at=1_000.0, outcome=Outcome.OK, status=200, answer=answer, raw=raw
    )


def failed(kind: ErrorClass, arm: Arm = Arm.BASELINE) -> Observation:
    outcome = Outcome.TIMEOUT if kind is ErrorClass.TIMEOUT else Outcome.HTTP_ERROR
    failure = Failure(outcome=outcome, error_class=kind, message=f"words about {kind}")
    return Observation(
        request_id="r1", arm=arm, at=1_000.0, outcome=outcome, reason=kind.value, failure=failure
    )


def lost(outcome: Outcome, arm: Arm = Arm.CANDIDATE) -> Observation:
    return Observation(request_id="r1", arm=arm, at=1_000.0, outcome=outcome, reason="queue_full")


def compared(baseline: Choice | str, candidate: Choice | str, **body: Any) -> Comparison:
    return compare(request(**body), seen(baseline), seen(candidate, arm=Arm.CANDIDATE))


def categories(comparison: Comparison) -> list[str]:
    return [finding.category for finding in comparison.findings]
