"""Requests and observations to store: ordinary ones, and Hypothesis strategies for any."""

from __future__ import annotations

from hypothesis import strategies as st

from replay.completion import joined
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
    Timing,
    ToolCall,
    Usage,
)


def request(name: str = "r1", at: float = 1_000.0, body: bytes = b'{"messages":[]}') -> Request:
    return Request(
        id=name,
        at=at,
        method="POST",
        path="/v1/chat/completions?x=1",
        headers=(("Content-Type", "application/json"), ("X-A", "1"), ("X-A", "2")),
        body=body,
        conversation="c1",
    )


def observation(
    name: str = "r1", arm: Arm = Arm.BASELINE, text: str = "hello", at: float = 1_000.0
) -> Observation:
    choice = Choice(
        text=text, tool_calls=(ToolCall(name="f", arguments="{}", id="t1"),), finish_reason="stop"
    )
    return Observation(
        request_id=name,
        arm=arm,
        at=at,
        outcome=Outcome.OK,
        status=200,
        headers=(("Content-Type", "application/json"),),
        answer=Answer(choices=(choice,), usage=Usage(prompt_tokens=3, completion_tokens=2), model="m"),
        timing=Timing(head_s=0.01, ttft_s=0.02, e2e_s=0.05, content_times=(0.02, 0.03)),
        raw=b"raw " + text.encode(errors="replace"),
    )


_text = st.text(st.characters(), max_size=30).map(lambda text: joined([text]))
"""Any code point, lone surrogates and NUL included; two surrogates that make a pair are one character."""
_times = st.integers(0, 4_000_000_000).map(lambda tick: tick / 1e6)
_failures = st.builds(
    Failure,
    outcome=st.sampled_from(Outcome),
    error_class=st.sampled_from(ErrorClass),
    message=_text,
    status=st.none() | st.integers(100, 599),
    retryable=st.booleans(),
    retry_after_s=st.none() | st.floats(0, 1e6),
    code=_text,
    envelope=_text,
)
_calls = st.builds(ToolCall, name=_text, arguments=_text, id=st.none() | _text)
_choices = st.builds(
    Choice,
    index=st.integers(0, 9),
    text=_text,
    reasoning=_text,
    refusal=_text,
    tool_calls=st.lists(_calls, max_size=2).map(tuple),
    finish_reason=st.none() | _text,
    role=_text,
    reasoning_field=_text,
    media=st.lists(_text, max_size=2).map(tuple),
)
_counts = st.none() | st.integers(0, 2**53 - 1)
_answers = st.builds(
    Answer,
    choices=st.lists(_choices, max_size=2).map(tuple),
    usage=st.none()
    | st.builds(Usage, prompt_tokens=_counts, completion_tokens=_counts, cached_tokens=_counts),
    model=st.none() | _text,
    error=st.none() | _failures,
    oddities=st.lists(st.builds(Oddity, code=_text, evidence=_text), max_size=2).map(tuple),
    fingerprint=st.none() | _text,
    embeddings=st.lists(st.lists(st.floats(-1, 1), max_size=3).map(tuple), max_size=2).map(tuple),
    extra=st.lists(st.tuples(_text, _text), max_size=2).map(tuple),
)
observations = st.builds(
    Observation,
    request_id=st.just("r1"),
    arm=st.sampled_from(Arm),
    at=st.floats(0, 4e9),
    outcome=st.sampled_from(Outcome),
    reason=st.sampled_from(["", "breaker_open"]),
    status=st.none() | st.integers(100, 599),
    headers=st.lists(st.tuples(_text, _text), max_size=3).map(tuple),
    answer=st.none() | _answers,
    failure=st.none() | _failures,
    timing=st.builds(
        Timing,
        head_s=st.none() | _times,
        ttft_s=st.none() | _times,
        e2e_s=st.none() | _times,
        generated_s=st.none() | _times,
        lag_s=st.none() | _times,
        connect_s=st.none() | _times,
        content_times=st.lists(_times, max_size=4).map(tuple),
    ),
    earlier=st.lists(_failures, max_size=2).map(tuple),
    raw=st.none() | st.binary(max_size=40),
)
