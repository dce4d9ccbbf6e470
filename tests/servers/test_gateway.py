"""The gateway in front of a real llama.cpp server: bytes, the SDK, what was decoded, and errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest
from openai import BadRequestError, OpenAI

from replay.exchange import ErrorClass, Outcome
from reports.compare import compare
from reports.judgement import Severity
from tests.shadowing import MODEL, Shadow, shadowing
from tests.wire import one_by_one, payload, raw, wire

CHAT: dict[str, Any] = {
    "model": MODEL,
    "messages": [{"role": "user", "content": "What is the tide at noon?"}],
    "temperature": 0,
    "seed": 1,
    "max_tokens": 24,
}
STREAM = CHAT | {"stream": True, "stream_options": {"include_usage": True}}
COMPLETION: dict[str, Any] = {"model": MODEL, "prompt": "The harbour", "temperature": 0, "max_tokens": 12}
SCHEMA = {"type": "object", "properties": {"open": {"type": "boolean"}}, "required": ["open"]}
TOOL = {"type": "function", "function": {"name": "set_valve", "parameters": SCHEMA}}
TOO_LONG = CHAT | {"messages": [{"role": "user", "content": "tide " * 2_000}]}


def calling(client: OpenAI) -> dict[str, Any]:
    """A request that gets a call: the random model is made to begin it and to end the turn, the server forces the rest."""
    tokens = [
        httpx.post(f"{str(client.base_url).removesuffix('/v1/')}/tokenize", json=asked).json()["tokens"]
        for asked in (
            {"content": "<tool_call>"},
            {"content": "<|im_end|>", "parse_special": True},
        )
    ]
    bias = {str(token): 50 for (token,) in tokens}
    return CHAT | {
        "tools": [TOOL],
        "tool_choice": "required",
        "parallel_tool_calls": False,
        "max_tokens": 300,
        "logit_bias": bias,
    }


@pytest.mark.parametrize(
    ("path", "data", "status"),
    [
        ("/v1/chat/completions", orjson.dumps(CHAT), 200),
        ("/v1/chat/completions", orjson.dumps(STREAM), 200),
        ("/v1/completions", orjson.dumps(COMPLETION), 200),
        ("/v1/completions", orjson.dumps(COMPLETION | {"stream": True}), 200),
        ("/v1/chat/completions", orjson.dumps(CHAT | {"logprobs": True, "top_logprobs": 2}), 200),
        ("/v1/chat/completions", orjson.dumps(TOO_LONG), 400),
        ("/v1/chat/completions", orjson.dumps(TOO_LONG | {"stream": True}), 400),
        ("/v1/chat/completions", b'{"model":', 400),
        ("/v1/nowhere", b"{}", 404),
    ],
    ids=[
        "chat",
        "stream",
        "completion",
        "completion-stream",
        "logprobs",
        "context",
        "context-stream",
        "bad-json",
        "404",
    ],
)
def test_bytes_through_the_gateway_equal_bytes_from_llama_cpp(
    llama: list[str], tmp_path: Path, path: str, data: bytes, status: int
) -> None:
    """Compared on the wire, to the last id and the server's own timings."""
    with (
        wire(llama[0]) as baseline,
        shadowing(
            tmp_path,
            baseline=baseline.url,
            candidate=llama[1],
            backend="preset: llama-cpp",
            repeat="0 %",
        ) as shadow,
    ):
        through = raw(shadow.url, path, data)
        assert payload(through) in [
            payload(one) for answers in baseline.answered for one in one_by_one(answers)
        ]
        assert any(asked.endswith(b"\r\n\r\n" + data) for asked in baseline.asked)
    assert through.startswith(b"HTTP/1.1 %d " % status)


@pytest.mark.parametrize("path", ["/v1/models", "/health", "/props"])
def test_everything_else_passes_too(llama: list[str], tmp_path: Path, path: str) -> None:
    with (
        wire(llama[0]) as baseline,
        shadowing(tmp_path, baseline=baseline.url, candidate=llama[1], backend="preset: llama-cpp") as shadow,
    ):
        through = raw(shadow.url, path, b"", "GET")
        assert payload(through) in [
            payload(one) for answers in baseline.answered for one in one_by_one(answers)
        ]
    assert through.startswith(b"HTTP/1.1 200 ")


def test_the_sdk_works_through_it_unchanged_and_both_arms_are_recorded(shadow: Shadow) -> None:
    client = OpenAI(base_url=f"{shadow.url}/v1", api_key="sk-visitor-0123456789abcdef", max_retries=0)
    whole = client.chat.completions.create(**CHAT)
    pieces = [
        chunk.choices[0].delta.content or ""
        for chunk in client.chat.completions.create(**STREAM)
        if chunk.choices
    ]
    text = whole.choices[0].message.content
    assert text and text == "".join(pieces)
    exchanges = shadow.exchanges(2)
    assert len(exchanges) == 2
    for exchange in exchanges:
        for seen in (exchange.baseline, exchange.candidate):
            assert seen is not None and seen.outcome is Outcome.OK and seen.answer is not None
            assert seen.answer.first.text == text
            assert seen.answer.first.finish_reason == whole.choices[0].finish_reason == "length"
            assert seen.answer.usage is not None and whole.usage is not None
            assert seen.answer.usage.completion_tokens == whole.usage.completion_tokens == 24
            assert seen.answer.usage.prompt_tokens == whole.usage.prompt_tokens
        assert compare(exchange.request, exchange.baseline, exchange.candidate).severity is Severity.EQUAL
    streamed = next(one for one in exchanges if b'"stream":true' in one.request.body)
    assert streamed.baseline is not None and streamed.baseline.timing.ttft_s is not None
    assert b"sk-visitor" not in Path(shadow.store.removeprefix("sqlite:///")).read_bytes()


@pytest.mark.parametrize("stream", [False, True])
def test_a_completion_is_decoded(shadow: Shadow, stream: bool) -> None:
    client = OpenAI(base_url=f"{shadow.url}/v1", api_key="none", max_retries=0)
    if stream:
        chunks = client.completions.create(**COMPLETION, stream=True)
        text = "".join(chunk.choices[0].text for chunk in chunks if chunk.choices)
    else:
        text = client.completions.create(**COMPLETION).choices[0].text
    (exchange,) = shadow.exchanges(1)
    for seen in (exchange.baseline, exchange.candidate):
        assert seen is not None and seen.answer is not None and seen.answer.first.text == text != ""


@pytest.mark.parametrize("stream", [False, True])
def test_a_tool_call_is_decoded(shadow: Shadow, stream: bool) -> None:
    client = OpenAI(base_url=f"{shadow.url}/v1", api_key="none", max_retries=0)
    asked = calling(client)
    if stream:
        with client.chat.completions.stream(**asked) as events:
            answer = events.get_final_completion()
    else:
        answer = client.chat.completions.create(**asked)
    (call,) = answer.choices[0].message.tool_calls or ()
    assert answer.choices[0].finish_reason == "tool_calls"
    assert isinstance(orjson.loads(call.function.arguments)["open"], bool)
    (exchange,) = shadow.exchanges(1)
    assert exchange.baseline is not None and exchange.baseline.answer is not None
    (decoded,) = exchange.baseline.answer.first.tool_calls
    assert (decoded.id, decoded.name, decoded.arguments) == (
        call.id,
        call.function.name,
        call.function.arguments,
    )
    assert exchange.baseline.answer.first.finish_reason == "tool_calls"
    assert exchange.candidate is not None
    assert compare(exchange.request, exchange.baseline, exchange.candidate).severity is Severity.EQUAL


def test_a_schema_is_kept_to_on_both_sides(shadow: Shadow) -> None:
    client = OpenAI(base_url=f"{shadow.url}/v1", api_key="none", max_retries=0)
    wanted = {"type": "json_schema", "json_schema": {"name": "valve", "schema": SCHEMA}}
    answer = client.chat.completions.create(**CHAT | {"response_format": wanted, "max_tokens": 300})
    (exchange,) = shadow.exchanges(1)
    for seen in (exchange.baseline, exchange.candidate):
        assert seen is not None and seen.answer is not None
        assert seen.answer.first.text == answer.choices[0].message.content
        assert isinstance(orjson.loads(seen.answer.first.text)["open"], bool)


def test_a_prompt_beyond_the_context_is_an_overflow(shadow: Shadow) -> None:
    client = OpenAI(base_url=f"{shadow.url}/v1", api_key="none", max_retries=0)
    with pytest.raises(BadRequestError, match="exceeds the available context size"):
        client.chat.completions.create(**TOO_LONG)
    (exchange,) = shadow.exchanges(1)
    for seen in (exchange.baseline, exchange.candidate):
        assert seen is not None and seen.failure is not None
        assert seen.failure.error_class is ErrorClass.CONTEXT_OVERFLOW
