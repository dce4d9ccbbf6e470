"""What the official client makes of a stream, we make of it too: text, tool calls, finish reason and usage."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openai import OpenAI
from openai.lib.streaming.chat import ChatCompletionStreamState

from replay.completion import joined
from replay.exchange import Arm, Recording
from replay.saved import read_saved
from tests.casebook.cases import CASES
from tests.replay.saved import FIXTURES
from tests.replay.wire import SSE, recording, seen

Made = tuple[list[tuple[str, list[tuple[str, str, str]], str | None]], tuple[int, int] | None]
"""Choices as text, tool calls (id, name, arguments) and finish reason; and usage."""


def by_the_client(body: bytes) -> Made | None:
    """What the client assembles; ``None`` when it raises."""

    def serve(_: httpx.Request) -> httpx.Response:
        return httpx.Response(200, headers={"content-type": "text/event-stream"}, content=body)

    client = OpenAI(
        base_url="http://stand.in/v1",
        api_key="none",
        max_retries=0,
        http_client=httpx.Client(transport=httpx.MockTransport(serve)),
    )
    state = ChatCompletionStreamState()
    usage: tuple[int, int] | None = None
    began = False
    try:
        for chunk in client.chat.completions.create(model="m", messages=[], stream=True):
            if chunk.usage is not None:
                usage = (chunk.usage.prompt_tokens, chunk.usage.completion_tokens)
            if chunk.choices is None:
                return None
            list(state.handle_chunk(chunk))
            began = True
        choices = state.current_completion_snapshot.choices if began else []
    except Exception:  # noqa: BLE001 - whatever it raises, it does not accept the stream
        return None
    return [
        (
            joined([choice.message.content or ""]),
            [
                (c.id or "", c.function.name or "", c.function.arguments or "")
                for c in choice.message.tool_calls or ()
            ],
            choice.finish_reason,
        )
        for choice in choices
    ], usage


def by_us(found: Recording) -> Made:
    answer = seen(found, arm=Arm.BASELINE).answer
    assert answer is not None
    usage = answer.usage
    counts = (usage.prompt_tokens, usage.completion_tokens) if usage else None
    return [
        (choice.text, [(c.id or "", c.name, c.arguments) for c in choice.tool_calls], choice.finish_reason)
        for choice in answer.choices
    ], counts if counts is None or None in counts else (counts[0] or 0, counts[1] or 0)


def streams() -> Iterator[Any]:
    for case in CASES:
        for side in ("baseline", "candidate"):
            data = getattr(case, side)
            if b"text/event-stream" in data:
                yield pytest.param(data, id=f"{case.number}-{case.title}-{side}")
    for path in sorted((FIXTURES / "vllm-0.32").glob("chat*stream.http")):
        yield pytest.param(path.read_bytes(), id=path.stem)


@pytest.mark.parametrize("saved", list(streams()))
def test_every_known_stream_that_it_accepts_means_the_same(saved: bytes) -> None:
    found = read_saved(saved)
    theirs = by_the_client(b"".join(data for _, data in found.chunks))
    if theirs is not None:
        assert by_us(found) == theirs


def test_most_known_streams_are_accepted_by_it() -> None:
    """So that the comparison above compares something."""
    bodies = [b"".join(data for _, data in read_saved(p.values[0]).chunks) for p in streams()]
    assert sum(by_the_client(body) is not None for body in bodies) > len(bodies) * 0.6


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
NAMES = st.text("abc_", min_size=1, max_size=6)
CALLS = st.lists(st.tuples(NAMES, NAMES, st.lists(TEXTS, max_size=4)), max_size=3)


@st.composite
def chunks(draw: st.DrawFn) -> list[dict[str, Any]]:
    """The chunks of a stream as servers send them: choices in turn, a role first or not, text and calls in pieces, usage."""
    made: list[dict[str, Any]] = []

    def add(index: int, delta: dict[str, Any], finish: str | None = None) -> None:
        choice = {"index": index, "delta": delta, "finish_reason": finish}
        made.append(
            {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
        )

    for index in range(draw(st.integers(1, 3))):
        add(index, {"role": "assistant", "content": ""} if draw(st.booleans()) else {"content": ""})
        for piece in draw(st.lists(TEXTS, max_size=6)):
            add(index, {"content": piece})
        for number, (identity, name, pieces) in enumerate(draw(CALLS)):
            whole = {
                "index": number,
                "id": identity,
                "type": "function",
                "function": {"name": name, "arguments": ""},
            }
            add(index, {"tool_calls": [whole]})
            for piece in pieces:
                add(index, {"tool_calls": [{"index": number, "function": {"arguments": piece}}]})
        add(index, {}, draw(st.sampled_from(["stop", "length", "tool_calls", None])))
    if draw(st.booleans()):
        usage = {
            "prompt_tokens": draw(st.integers(0, 99)),
            "completion_tokens": draw(st.integers(0, 99)),
            "total_tokens": 1,
        }
        made.append(
            {
                "id": "c",
                "object": "chat.completion.chunk",
                "created": 1,
                "model": "m",
                "choices": [],
                "usage": usage,
            }
        )
    return made


@settings(max_examples=150, deadline=None)
@given(chunks(), st.sampled_from(["\n", "\r\n"]), st.sampled_from([" ", ""]), st.booleans(), st.booleans())
def test_generated_streams_mean_the_same(
    made: list[dict[str, Any]], end: str, space: str, escaped: bool, comments: bool
) -> None:
    lines = [f"data:{space}{json.dumps(chunk, ensure_ascii=escaped)}" for chunk in made] + [
        f"data:{space}[DONE]"
    ]
    between = f"{end}{end}: wait{end}{end}" if comments else end * 2
    body = (between.join(lines) + end * 2).encode()
    theirs = by_the_client(body)
    assert theirs is not None
    assert by_us(recording([body], headers=SSE)) == theirs
