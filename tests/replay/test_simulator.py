"""The simulator as a client sees it, over real sockets: answers, tools, JSON, pace and what it notes."""

from __future__ import annotations

import itertools
import json
import statistics
import time
from pathlib import Path

import pytest

from replay.simulator.settings import DIALECTS, DialectName, Faults, Pacing
from tests.replay.simulated import CHAT, RING, WEATHER, ask, assembled, simulator

KNOWN = (
    "For valve, start with the gasket. It is open on Thursday from 7:00. In 2004 the greenhouse was moved to Trieste. "
    "About 89 percent of the passengers are counted on Saturday. Aarhus has 42 copies, and most of them are narrow. "
    "In 1907 the archive was moved to Gdansk."
)


async def test_same_prompt_and_seed_give_the_same_text_everywhere() -> None:
    async with simulator(dialect="vllm") as first, simulator(dialect="tensorrt-llm") as second:
        for text in ("What is a valve?", "Name three ports.", ""):
            one, other = await first.said(text), await second.said(text)
            assert one["message"]["content"] == other["message"]["content"] != ""
    async with simulator(seed=1) as third:
        assert (await third.said("What is a valve?"))["message"]["content"] != one["message"]["content"]


async def test_answers_of_a_known_seed_do_not_change_between_releases() -> None:
    async with simulator() as client:
        text = (await client.said("What is a valve?"))["message"]["content"]
    assert text == KNOWN


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_stream_says_what_the_body_says(dialect: DialectName) -> None:
    async with simulator(dialect=dialect) as client:
        for more in (
            {},
            {"max_tokens": 3},
            {"stop": ["."]},
            {"tools": [WEATHER, RING], "tool_choice": "required"},
        ):
            whole = await client.said(**more)
            streamed = assembled(await client.events(ask(**more)))
            assert streamed["text"] == (whole["message"]["content"] or "")
            assert streamed["finish"] == whole["finish_reason"]
            calls = whole["message"].get("tool_calls") or []
            assert [call["arguments"] for call in streamed["calls"]] == [
                call["function"]["arguments"] for call in calls
            ]
            assert [call["id"] for call in streamed["calls"]] == [call["id"] for call in calls]


async def test_length_limit_and_stop_strings() -> None:
    async with simulator() as client:
        full = await client.said()
        cut = await client.said(max_tokens=4)
        assert (full["finish_reason"], cut["finish_reason"]) == ("stop", "length")
        assert full["message"]["content"].startswith(cut["message"]["content"])
        both = await client.said(max_tokens=50, max_completion_tokens=4)
        assert both["message"] == cut["message"]
        stopped = await client.said(stop="harbour")
        assert stopped["stop_reason"] == "harbour"
        assert stopped["message"]["content"] == full["message"]["content"].split("harbour")[0]
        _, body = await client.post(ask(max_tokens=4))
        assert body["usage"]["completion_tokens"] == 4
        assert body["usage"]["total_tokens"] == body["usage"]["prompt_tokens"] + 4


async def test_fixed_length_of_free_text() -> None:
    async with simulator(tokens=200) as client:
        _, body = await client.post(ask())
        assert body["usage"]["completion_tokens"] == 200
        _, body = await client.post(ask(max_tokens=31, ignore_eos=True))
        assert (body["usage"]["completion_tokens"], body["choices"][0]["finish_reason"]) == (31, "length")


async def test_several_choices_are_interleaved_and_counted_together() -> None:
    async with simulator() as client:
        status, body = await client.post(ask(n=3))
        assert status == 200
        texts = [choice["message"]["content"] for choice in body["choices"]]
        assert len(set(texts)) == 3
        assert texts[0] == (await client.said())["message"]["content"]
        events = await client.events(ask(n=3, stream_options={"include_usage": True}))
        assert [assembled(events, index)["text"] for index in range(3)] == texts
        assert events[-1][1]["usage"]["completion_tokens"] == body["usage"]["completion_tokens"]
        assert [chunk["choices"][0]["index"] for _, chunk in events[:3]] == [0, 1, 2]


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_completions(dialect: DialectName) -> None:
    async with simulator(dialect=dialect) as client:
        body = {"model": "m", "prompt": ["Once upon", "A harbour"], "max_tokens": 5}
        status, answer = await client.post(body, "/v1/completions")
        assert status == 200
        assert answer["object"] == "text_completion"
        assert [choice["index"] for choice in answer["choices"]] == [0, 1]
        events = await client.events(body, "/v1/completions")
        for index, choice in enumerate(answer["choices"]):
            parts = [c["text"] for _, e in events for c in e["choices"] if c["index"] == index]
            assert "".join(parts) == choice["text"]
        limit = {"tensorrt-llm": None}.get(dialect, 16)
        _, unlimited = await client.post({"model": "m", "prompt": "Tell it all."}, "/v1/completions")
        assert limit is None or unlimited["usage"]["completion_tokens"] <= limit


async def test_tool_choice_is_honoured() -> None:
    async with simulator() as client:
        assert "tool_calls" not in (await client.said(tools=[WEATHER], tool_choice="none"))["message"]
        required = await client.said(tools=[RING, WEATHER], tool_choice="required")
        assert required["finish_reason"] == "tool_calls"
        assert required["message"]["content"] is None
        named = {"type": "function", "function": {"name": "ring"}}
        chosen = await client.said(tools=[WEATHER, RING], tool_choice=named)
        assert [call["function"] for call in chosen["message"]["tool_calls"]] == [
            {"name": "ring", "arguments": "{}"}
        ]
        assert chosen["finish_reason"] == "stop"
        called = [
            "tool_calls" in (await client.said(f"Weather question {n}", tools=[WEATHER]))["message"]
            for n in range(60)
        ]
        assert 30 < sum(called) < 60


async def test_tool_matching_the_question_is_called_with_arguments_of_its_schema() -> None:
    async with simulator() as client:
        for number in range(20):
            choice = await client.said(
                f"What is the weather {number}?", tools=[RING, WEATHER], tool_choice="required"
            )
            call = choice["message"]["tool_calls"][0]
            arguments = json.loads(call["function"]["arguments"])
            assert call["function"]["name"] == "get_weather"
            assert set(arguments) == {"city", "days"}
            assert isinstance(arguments["city"], str)
            assert arguments["days"] <= 7
            assert call["id"].startswith("chatcmpl-tool-")


async def test_tool_result_is_answered_in_words() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "get_weather", "arguments": "{}"}}
    messages = [
        {"role": "user", "content": "Weather in Hull?"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "rain"},
    ]
    async with simulator() as client:
        first = await client.said(tools=[WEATHER], messages=messages)
        call["id"] = "another"
        again = await client.said(tools=[WEATHER], messages=messages)
    assert first["finish_reason"] == "stop"
    assert first["message"]["content"] == again["message"]["content"] != ""


async def test_answers_in_json_when_asked() -> None:
    schema = {"type": "object", "properties": {"kg": {"type": "number"}}, "required": ["kg"]}
    named = {"type": "json_schema", "json_schema": {"name": "weight", "schema": schema}}
    async with simulator() as client:
        first = json.loads((await client.said(response_format=named))["message"]["content"])
        assert isinstance(first["kg"], int | float)
        assert isinstance(
            json.loads((await client.said(response_format={"type": "json_object"}))["message"]["content"]),
            dict,
        )
        own = json.loads((await client.said(structured_outputs={"json": schema}))["message"]["content"])
        assert own == first
        ignored = (await client.said(guided_json=schema))["message"]["content"]
        assert not ignored.startswith("{")


async def test_pace_follows_the_distributions() -> None:
    pacing = Pacing(ttft=0.05, itl=0.004)
    async with simulator(pacing=pacing, tokens=40) as client:
        first, gaps, heads = [], [], []
        for number in range(6):
            started = time.monotonic()
            async with client.http.post(client.url + CHAT, json=ask(str(number), stream=True)) as response:
                heads.append(time.monotonic() - started)
                lines = [(time.monotonic() - started, line) async for line in response.content]
            times = [at for at, line in lines if b'"content":"' in line and b'"role"' not in line]
            first.append(times[0])
            gaps += [b - a for a, b in itertools.pairwise(times)]
        assert 0.035 < statistics.median(first) < 0.12
        assert 0.002 < statistics.median(gaps) < 0.012
        assert min(heads) < 0.03
        started = time.monotonic()
        await client.said("0")
        assert time.monotonic() - started > 0.15


async def test_request_log_holds_what_arrived(tmp_path: Path) -> None:
    log = tmp_path / "requests.jsonl"
    async with simulator(log_requests=log) as client:
        await client.post(ask("Hi"), Authorization="Bearer k1")
        async with client.http.post(client.url + "/v1/completions", data=b"not json") as response:
            await response.read()
    first, second = map(json.loads, log.read_text().splitlines())
    assert ["Authorization", "Bearer k1"] in first["headers"]
    assert (first["path"], first["body"]) == (CHAT, ask("Hi"))
    assert second["body"] == "not json"


async def test_truth_holds_the_time_of_every_chunk(tmp_path: Path) -> None:
    log = tmp_path / "truth.jsonl"
    started = time.monotonic()
    async with simulator(truth=log, pacing=Pacing(ttft=0.02, itl=0.002), faults=Faults(noise=0.5)) as client:
        events = await client.events(ask(max_tokens=5))
        await client.post(ask())
        await client.post({})
    streamed, whole, refused = map(json.loads, log.read_text().splitlines())
    assert [token for _, _, token in streamed["chunks"]] == [0, 0, 1, 2, 3, 4, None]
    times = [at for at, _, _ in streamed["chunks"]]
    assert started < streamed["arrived"] < times[0]
    assert times == sorted(times)
    assert times[0] - streamed["arrived"] > 0.005
    assert streamed["id"] in events[0][1]["id"]
    assert (streamed["ended"], len(whole["chunks"])) == ("complete", 1)
    assert (refused["status"], refused["id"]) == (400, None)
