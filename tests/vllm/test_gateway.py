"""The gateway in front of a real vLLM: bytes, the SDK, what was decoded, and errors."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import orjson
import pytest
from openai import BadRequestError, NotFoundError, OpenAI

from replay.exchange import Outcome
from reports.compare import compare
from reports.judgement import Severity
from tests.shadowing import MODEL, Shadow, shadowing, simulator
from tests.wire import one_by_one, payload, raw, wire, without_identity

CHAT = {
    "model": MODEL,
    "messages": [{"role": "user", "content": "What is the tide at noon?"}],
    "temperature": 0,
    "seed": 1,
    "max_tokens": 24,
}
STREAM = CHAT | {"stream": True, "stream_options": {"include_usage": True}}
COMPLETION = {"model": MODEL, "prompt": "The harbour", "temperature": 0, "max_tokens": 12}


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/chat/completions", CHAT),
        ("/v1/chat/completions", STREAM),
        ("/v1/completions", COMPLETION),
        ("/v1/completions", COMPLETION | {"stream": True}),
        ("/v1/chat/completions", CHAT | {"temperature": -1}),
        ("/v1/chat/completions", CHAT | {"model": "nobody"}),
        ("/v1/nowhere", {}),
        ("/v1/chat/completions", CHAT | {"logprobs": True, "top_logprobs": 2}),
    ],
    ids=["chat", "stream", "completion", "completion-stream", "400", "404-model", "404-route", "logprobs"],
)
def test_bytes_through_the_gateway_equal_bytes_from_vllm(
    vllm: list[str], tmp_path: Path, path: str, body: dict[str, Any]
) -> None:
    """Compared on the wire, to the last id: vLLM cuts no stream twice alike, it joins what waits when it is busy."""
    data = orjson.dumps(body)
    with (
        wire(vllm[0]) as baseline,
        shadowing(tmp_path, baseline=baseline.url, candidate=vllm[1], repeat="0 %") as shadow,
    ):
        through = raw(shadow.url, path, data)
        assert payload(through) in [
            payload(one) for answers in baseline.answered for one in one_by_one(answers)
        ]
        assert any(asked.endswith(b"\r\n\r\n" + data) for asked in baseline.asked)
    status = through.partition(b"\r\n")[0]
    assert status == raw(vllm[0], path, data).partition(b"\r\n")[0]


@pytest.mark.parametrize("path", ["/v1/models", "/health", "/version"])
def test_everything_else_passes_too(vllm: list[str], shadow: Shadow, path: str) -> None:
    direct, through = raw(vllm[0], path, b"", "GET"), raw(shadow.url, path, b"", "GET")
    assert without_identity(payload(through)) == without_identity(payload(direct))
    assert through.startswith(b"HTTP/1.1 200 ")


def test_the_metrics_pass_too(vllm: list[str], shadow: Shadow) -> None:
    direct, through = raw(vllm[0], "/metrics", b"", "GET"), raw(shadow.url, "/metrics", b"", "GET")
    names = [
        set(re.findall(rb"^# TYPE (\S+ \S+)$", answer, flags=re.MULTILINE)) for answer in (direct, through)
    ]
    assert names[0] == names[1] and b"vllm:num_requests_running gauge" in names[1]


def test_a_simulator_can_stand_in_for_the_candidate(vllm: list[str], tmp_path: Path) -> None:
    with simulator() as other, shadowing(tmp_path, baseline=vllm[0], candidate=other) as shadow:
        client = OpenAI(base_url=f"{shadow.url}/v1", api_key="none", max_retries=0)
        assert client.chat.completions.create(**CHAT).choices[0].message.content
        (exchange,) = shadow.exchanges(1)
    assert exchange.baseline is not None and exchange.candidate is not None
    assert exchange.baseline.outcome is exchange.candidate.outcome is Outcome.OK
    found = compare(exchange.request, exchange.baseline, exchange.candidate)
    assert found.severity is not Severity.EQUAL  # the tiny model speaks no words that the simulator would say


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
            assert seen.answer.first.finish_reason == whole.choices[0].finish_reason
            assert seen.answer.usage is not None and whole.usage is not None
            assert seen.answer.usage.completion_tokens == whole.usage.completion_tokens
            assert seen.answer.usage.prompt_tokens == whole.usage.prompt_tokens
        assert compare(exchange.request, exchange.baseline, exchange.candidate).severity is Severity.EQUAL
    streamed = next(one for one in exchanges if b'"stream":true' in one.request.body)
    assert streamed.baseline is not None and streamed.baseline.timing.ttft_s is not None
    assert b"sk-visitor" not in Path(shadow.store.removeprefix("sqlite:///")).read_bytes()


def test_the_sdk_sees_vllms_own_errors(shadow: Shadow) -> None:
    client = OpenAI(base_url=f"{shadow.url}/v1", api_key="none", max_retries=0)
    with pytest.raises(BadRequestError, match="temperature"):
        client.chat.completions.create(**CHAT | {"temperature": -1})
    with pytest.raises(NotFoundError, match="nobody"):
        client.chat.completions.create(**CHAT | {"model": "nobody"})


def test_a_tool_call_of_a_real_server_is_decoded(shadow: Shadow) -> None:
    parameters = {"type": "object", "properties": {"open": {"type": "boolean"}}, "required": ["open"]}
    tool = {"type": "function", "function": {"name": "set_valve", "parameters": parameters}}
    client = OpenAI(base_url=f"{shadow.url}/v1", api_key="none", max_retries=0)
    answer = client.chat.completions.create(
        **CHAT | {"tools": [tool], "tool_choice": "required", "max_tokens": 200}
    )
    (call, *_) = answer.choices[0].message.tool_calls or ()
    (exchange,) = shadow.exchanges(1)
    assert exchange.candidate is not None and exchange.candidate.answer is not None
    decoded = exchange.candidate.answer.first.tool_calls[0]
    assert (decoded.name, decoded.arguments) == (call.function.name, call.function.arguments)
