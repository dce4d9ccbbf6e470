"""Each dialect's chunks, envelopes, pages and refusals, as its real server writes them."""

from __future__ import annotations

import json
import re
from typing import Any

import openai
import pytest

from replay.simulator.server import serving
from replay.simulator.settings import DIALECTS, DialectName, Settings
from tests.replay.simulated import CHAT, ask, simulator


async def test_vllm_stream_has_the_shapes_of_vllm() -> None:
    async with simulator() as client:
        events = [
            e for _, e in await client.events(ask(max_tokens=2, stream_options={"include_usage": True}))
        ]
    first, token, last, usage = events
    assert first["choices"] == [
        {"index": 0, "delta": {"role": "assistant", "content": ""}, "logprobs": None, "finish_reason": None}
    ]
    assert list(first) == ["id", "object", "created", "model", "choices"]
    assert set(token["choices"][0]) == {"index", "delta", "logprobs", "finish_reason", "token_ids"}
    assert (last["choices"][0]["finish_reason"], last["choices"][0]["stop_reason"]) == ("length", None)
    assert last["choices"][0]["delta"]["content"]
    assert usage["choices"] == []
    assert set(usage["usage"]) == {"prompt_tokens", "total_tokens", "completion_tokens"}
    assert len({chunk["id"] for chunk in events}) == 1
    assert re.fullmatch(r"chatcmpl-[0-9a-f]{32}", first["id"])


async def test_tensorrt_llm_stream_has_the_shapes_of_tensorrt_llm() -> None:
    async with simulator(dialect="tensorrt-llm") as client:
        plain = [e for _, e in await client.events(ask())]
        asked = [e for _, e in await client.events(ask(stream_options={}))]
        async with client.http.post(client.url + CHAT, json=ask(stream=True)) as response:
            raw = await response.read()
    assert plain[0]["choices"] == [{"index": 0, "delta": {"role": "assistant"}}]
    assert plain[1]["choices"][0]["delta"].keys() == {"content", "reasoning_content"}
    assert plain[-1]["choices"][0]["finish_reason"] == "stop"
    assert all("usage" not in chunk for chunk in plain)
    assert asked[-1]["choices"] == []
    assert asked[-1]["usage"]["prompt_tokens_details"] == {"cached_tokens": 0}
    assert raw.partition(b"\n")[0].endswith(b"} ")


async def test_openai_stream_has_the_shapes_of_openai() -> None:
    async with simulator(dialect="openai") as client:
        events = [e for _, e in await client.events(ask(stream_options={"include_usage": True}))]
        async with client.http.post(client.url + CHAT, json=ask()) as response:
            headers = response.headers
    assert events[0]["choices"][0]["delta"] == {"role": "assistant", "content": "", "refusal": None}
    assert events[-2]["choices"][0] == {"index": 0, "delta": {}, "logprobs": None, "finish_reason": "stop"}
    assert all(chunk["usage"] is None for chunk in events[:-1])
    assert events[-1]["usage"]["completion_tokens_details"]["reasoning_tokens"] == 0
    assert all(chunk["system_fingerprint"].startswith("fp_") for chunk in events)
    assert headers["x-request-id"].startswith("req_")
    assert headers["openai-version"] == "2020-10-01"


async def test_usage_in_every_chunk_when_asked() -> None:
    async with simulator() as client:
        options = {"include_usage": True, "continuous_usage_stats": True}
        events = [e for _, e in await client.events(ask(max_tokens=3, stream_options=options))]
    assert [chunk["usage"]["completion_tokens"] for chunk in events] == [0, 1, 2, 3, 3]


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_sdk_reads_every_dialect(dialect: DialectName) -> None:
    async with serving(Settings(dialect=dialect, models=("m",), api_key="key")) as url:
        async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="key", max_retries=0) as sdk:
            messages: Any = [{"role": "user", "content": "Hello?"}]
            whole = await sdk.chat.completions.create(model="m", messages=messages)
            stream = await sdk.chat.completions.create(model="m", messages=messages, stream=True)
            text = "".join([c.choices[0].delta.content or "" async for c in stream if c.choices])
            assert text == whole.choices[0].message.content
            assert [model.id async for model in await _listed(sdk)] == ["m"]
            vectors = await sdk.embeddings.create(model="m", input=["a calm sea", "calm sea"])
            assert sum(x * x for x in vectors.data[0].embedding) == pytest.approx(1, abs=1e-5)
        async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="wrong", max_retries=0) as sdk:
            with pytest.raises(openai.AuthenticationError):
                await sdk.chat.completions.create(model="m", messages=messages)


async def _listed(sdk: openai.AsyncOpenAI) -> Any:
    return await sdk.models.list()


async def test_vllm_refusals() -> None:
    async with simulator(models=("harbor",), context=100) as client:
        status, body = await client.post(ask(model="other"))
        error = {
            "message": "The model `other` does not exist.",
            "type": "NotFoundError",
            "param": "model",
            "code": 404,
        }
        assert (status, body) == (404, {"error": error})
        status, body = await client.post(ask("word " * 100, model="harbor"))
        assert (status, body["error"]["type"], body["error"]["param"]) == (
            400,
            "BadRequestError",
            "input_tokens",
        )
        assert "maximum context length is 100 tokens" in body["error"]["message"]
        wrongs = {"messages": [], "n": 0, "stop": 3, "max_tokens": 0, "tool_choice": "required"}
        for name, wrong in wrongs.items():
            status, body = await client.post(ask(model="harbor") | {name: wrong})
            assert (status, body["error"]["code"], body["error"]["param"]) == (400, 400, name)
        status, body = await client.post([])
        assert status == 400
        async with client.http.post(client.url + CHAT, data=b"{") as response:
            assert response.status == 400
            assert "JSON" in (await response.json())["error"]["message"]
        assert (await client.post(ask(model="harbor", enable_thinking=False)))[0] == 200
        assert await client.get("/nowhere") == (
            404,
            '{"error":{"message":"Not Found","type":"Not Found","param":null,"code":404}}',
        )


async def test_max_tokens_beyond_the_context_is_clamped() -> None:
    async with simulator(context=30, tokens=100) as client:
        _, body = await client.post(ask("Hi", max_tokens=5000))
        assert body["choices"][0]["finish_reason"] == "length"
        assert body["usage"]["total_tokens"] == 30


async def test_tensorrt_llm_refusals() -> None:
    async with simulator(dialect="tensorrt-llm", models=("harbor",), context=100) as client:
        status, body = await client.post(ask(enable_thinking=False))
        assert (status, body["object"], body["type"], body["code"]) == (400, "error", "BadRequestError", 400)
        assert "'extra_forbidden'" in body["message"]
        assert "'enable_thinking'" in body["message"]
        status, body = await client.post(ask("word " * 100))
        assert (status, body["code"]) == (400, 400)
        assert (await client.post(ask(model="any name")))[1]["model"] == "any name"
        assert (await client.get("/nowhere"))[1] == '{"detail":"Not Found"}'


async def test_openai_refusals() -> None:
    async with simulator(dialect="openai", models=("harbor",), context=100, api_key="sk-right-key") as client:
        status, body = await client.post(ask(), Authorization="Bearer sk-wrong-key")
        assert (status, body["error"]["code"]) == (401, "invalid_api_key")
        assert "wrong" not in body["error"]["message"]
        key = {"Authorization": "Bearer sk-right-key"}
        assert (await client.post(ask(model="x"), **key))[1]["error"]["code"] == "model_not_found"
        status, body = await client.post(ask("word " * 100, model="harbor"), **key)
        assert (status, body["error"]["code"]) == (400, "context_length_exceeded")


async def test_key_guards_v1_only() -> None:
    async with simulator(api_key="secret") as client:
        assert await client.post(ask()) == (401, {"error": "Unauthorized"})
        assert (await client.get("/health"))[0] == 200
        assert (await client.get("/metrics"))[0] == 200


async def test_vllm_pages() -> None:
    async with simulator(models=("harbor",)) as client:
        await client.said(model="harbor")
        await client.events(ask(model="harbor", max_tokens=3))
        assert await client.get("/version") == (200, '{"version":"0.33.0"}')
        card = json.loads((await client.get("/v1/models"))[1])["data"][0]
        assert (card["id"], card["owned_by"], card["max_model_len"]) == ("harbor", "vllm", 32768)
        _, text = await client.get("/metrics")
    labels = 'engine="0",model_name="harbor"'
    assert f'vllm:request_success_total{{{labels},finished_reason="length"}} 1' in text
    assert f"vllm:time_to_first_token_seconds_count{{{labels}}} 2" in text
    assert f"vllm:num_requests_running{{{labels}}} 0.0" in text
    for name in (
        "inter_token_latency_seconds_bucket",
        "e2e_request_latency_seconds_sum",
        "kv_cache_usage_perc",
    ):
        assert f"vllm:{name}{{{labels}" in text
    assert "trtllm" not in text


async def test_tensorrt_llm_pages() -> None:
    async with simulator(dialect="tensorrt-llm", models=("harbor",)) as client:
        await client.said()
        assert (await client.get("/health_generate"))[0] == 200
        card = json.loads((await client.get("/v1/models"))[1])["data"][0]
        assert set(card) == {"id", "object", "created", "owned_by"}
        _, text = await client.get("/prometheus/metrics")
        assert 'trtllm_request_success_total{model_name="undefined",finished_reason="stop"} 1' in text
        assert 'trtllm_time_per_output_token_seconds_count{model_name="undefined"} 1' in text
        assert [item["iter"] for item in json.loads((await client.get("/metrics"))[1])] == [1]
        assert (await client.get("/metrics"))[1] == "[]"
