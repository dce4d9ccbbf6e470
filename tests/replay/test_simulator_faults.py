"""Planted faults: each does what it says, to the share it says, and again in the next run."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import signal
import socket
import subprocess
import sys
import time
from typing import Any

import aiohttp
import pytest

from replay.simulator import faults
from replay.simulator.settings import DIALECTS, DialectName, Faults, Lack, Pacing
from tests.replay.simulated import CHAT, WEATHER, Client, ask, simulator

REAL = [sys.executable, "-m", "migrate", "simulate", "--port", "0"]


async def statuses(client: Client, count: int) -> list[int]:
    return [(await client.post(ask(f"question {number}")))[0] for number in range(count)]


async def test_share_of_errors_is_kept_and_repeats() -> None:
    async with simulator(faults=Faults(error_share=0.2, error_status=503)) as client:
        first = await statuses(client, 300)
    async with simulator(faults=Faults(error_share=0.2, error_status=503)) as client:
        again = await statuses(client, 300)
    async with simulator(faults=Faults(error_share=0.4)) as client:
        more = await statuses(client, 300)
    assert first == again
    assert 35 < first.count(503) < 85
    assert all(later == 500 for early, later in zip(first, more, strict=True) if early == 503)


async def test_other_fault_seed_draws_other_requests() -> None:
    async with (
        simulator(faults=Faults(error_share=0.5)) as one,
        simulator(faults=Faults(error_share=0.5), fault_seed=9) as other,
    ):
        assert await statuses(one, 40) != await statuses(other, 40)


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_errors_and_rate_limits_come_in_the_envelope_of_the_dialect(dialect: DialectName) -> None:
    async with simulator(dialect=dialect, faults=Faults(error_share=1)) as client:
        status, body = await client.post(ask())
        assert status == 500
        assert (body["code"] if dialect == "tensorrt-llm" else body["error"]["type"]) in (
            500,
            "InternalServerError",
            "server_error",
        )
    async with simulator(dialect=dialect, faults=Faults(rate_limit_share=1, retry_after=2)) as client:
        async with client.http.post(client.url + CHAT, json=ask(stream=True)) as response:
            assert (response.status, response.headers["Retry-After"]) == (429, "2")
        assert (await client.get("/health"))[0] == 200


async def timed(client: Client, text: str = "x") -> float:
    started = time.monotonic()
    await client.said(text)
    return time.monotonic() - started


async def test_latency_and_tail() -> None:
    async with simulator(faults=Faults(extra_latency=0.05, slow_share=0.3, slow_by=0.2)) as client:
        spent = [await timed(client, str(number)) for number in range(12)]
    assert min(spent) >= 0.05
    assert 1 <= sum(at >= 0.25 for at in spent) <= 8
    assert sum(0.12 < at < 0.25 for at in spent) == 0


async def test_stall_pauses_amid_the_tokens() -> None:
    async with simulator(faults=Faults(stall_share=1, stall=0.2), tokens=20) as client:
        times = [at for at, _ in await client.events(ask())]
    gaps = sorted(later - early for early, later in itertools.pairwise(times))
    assert times[0] < 0.1
    assert gaps[-1] > 0.15
    assert gaps[-2] < 0.1


async def test_truncated_answers_say_length() -> None:
    async with simulator() as healthy, simulator(faults=Faults(truncate_share=1)) as client:
        whole, cut = await healthy.said(), await client.said()
        called = await client.said(tools=[WEATHER], tool_choice="required")
    assert cut["finish_reason"] == called["finish_reason"] == "length"
    assert whole["message"]["content"].startswith(cut["message"]["content"])
    assert len(cut["message"]["content"]) < len(whole["message"]["content"])


async def test_wrong_answers_differ_in_facts_and_repeat() -> None:
    schema = {"type": "json_schema", "json_schema": {"schema": {"type": "object", "required": ["kg"]}}}
    async with simulator() as healthy, simulator(faults=Faults(wrong_share=1)) as client:
        right = [(await healthy.said(f"q {n}"))["message"]["content"] for n in range(30)]
        wrong = [(await client.said(f"q {n}"))["message"]["content"] for n in range(30)]
        again = [(await client.said(f"q {n}"))["message"]["content"] for n in range(30)]
        json.loads((await client.said(response_format=schema))["message"]["content"])
    assert all(a != b for a, b in zip(right, wrong, strict=True))
    assert wrong == again
    assert any(" not " in text or "cannot" in text for text in wrong)


async def test_noise_rewords_some_answers_differently_each_time() -> None:
    async with simulator() as healthy, simulator(faults=Faults(noise=0.5)) as client:
        right = (await healthy.said())["message"]["content"]
        said = [(await client.said())["message"]["content"] for _ in range(40)]
    assert 8 < said.count(right) < 32
    assert len(set(said)) > 4
    assert all(right in text for text in said)


async def test_tools_refused_and_broken() -> None:
    asked: dict[str, Any] = {"tools": [WEATHER], "tool_choice": "required"}
    async with simulator(faults=Faults(refuse_tools_share=1)) as client:
        choice = await client.said(**asked)
        assert (choice["finish_reason"], "tool_calls" in choice["message"]) == ("stop", False)
        assert choice["message"]["content"]
    async with simulator(faults=Faults(break_tools_share=1)) as client:
        choice = await client.said(**asked)
        assert choice["finish_reason"] == "tool_calls"
        with pytest.raises(json.JSONDecodeError):
            json.loads(choice["message"]["tool_calls"][0]["function"]["arguments"])


async def test_refusals_are_short_texts() -> None:
    async with simulator(faults=Faults(refuse_share=1)) as client:
        assert "can't help" in (await client.said(tools=[WEATHER]))["message"]["content"]


async def test_garbage_is_no_json_and_no_stream_of_events() -> None:
    async with simulator(faults=Faults(garbage_share=1)) as client:
        for number in range(12):
            async with client.http.post(client.url + CHAT, json=ask(str(number))) as response:
                assert not is_json(await response.read())
            async with client.http.post(client.url + CHAT, json=ask(str(number), stream=True)) as response:
                first = (await response.read()).removeprefix(b"data: ").partition(b"\n")[0]
                assert not is_json(first)


def is_json(text: bytes) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


async def test_hanging_request_gets_no_byte_and_others_go_on() -> None:
    async with simulator(faults=Faults(hang_share=1)) as client:
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(client.post(ask()), 0.3)
        assert (await client.get("/health"))[0] == 200
        await asyncio.sleep(0.15)
        assert (
            'vllm:num_requests_running{engine="0",model_name="simulated"} 0.0'
            in (await client.get("/metrics"))[1]
        )


async def test_disconnects_before_and_amid_the_answer() -> None:
    async with simulator(faults=Faults(disconnect_share=1)) as client:
        received = [
            await until_reset(client, ask(str(number), stream=number % 2 == 0)) for number in range(30)
        ]
    assert all(b"[DONE]" not in part for part in received)
    assert 5 < sum(b"200 OK" in part for part in received) < 25
    assert sum(part == b"" for part in received) > 5


async def until_reset(client: Client, body: dict[str, Any]) -> bytes:
    """What arrives before the connection is reset; an orderly end fails the test."""
    sent = json.dumps(body).encode()
    reader, writer = await asyncio.open_connection("127.0.0.1", int(client.url.rpartition(":")[2]))
    writer.write(
        b"POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % (CHAT.encode(), len(sent)) + sent
    )
    received = b""
    try:
        while data := await reader.read(65536):
            received += data
    except ConnectionResetError:
        return received
    finally:
        writer.close()
    raise AssertionError("the connection ended in an orderly way")


async def test_flood_goes_on_until_the_client_leaves() -> None:
    async with simulator(faults=Faults(flood=True)) as client:
        received = 0
        async with client.http.post(client.url + CHAT, json=ask()) as response:
            async for chunk in response.content.iter_any():
                received += len(chunk)
                if received > 5_000_000:
                    break
        assert (await client.get("/health"))[0] == 200


async def test_client_that_leaves_is_counted_as_an_abort() -> None:
    async with simulator(pacing=Pacing(itl=0.02), tokens=200) as client:
        async with client.http.post(client.url + CHAT, json=ask(stream=True)) as response:
            await response.content.readany()
        await asyncio.sleep(0.15)
        assert 'finished_reason="abort"} 1' in (await client.get("/metrics"))[1]


def test_no_fault_is_planned_without_shares() -> None:
    assert faults.plan(Faults(), key=1, seed=2, occurrence=3) == faults.HEALTHY


def test_each_kind_is_drawn_on_its_own() -> None:
    told = Faults(wrong_share=0.5, truncate_share=0.5)
    plans = [faults.plan(told, key=key, seed=0, occurrence=0) for key in range(400)]
    for wrong in (True, False):
        for cut in (True, False):
            assert 60 < sum((plan.wrong, plan.truncate) == (wrong, cut) for plan in plans) < 140


def started(*words: str, **environment: str) -> tuple[subprocess.Popen[str], str]:
    process = subprocess.Popen(
        [*REAL, *words], stderr=subprocess.PIPE, text=True, env={**os.environ, **environment}
    )
    assert process.stderr is not None
    line = process.stderr.readline()
    assert f"(pid {process.pid})" in line, line
    return process, line.split(" on ")[1].split()[0]


async def test_process_serves_and_stops_cleanly() -> None:
    process, url = started(
        "--dialect", "openai", "--api-key-env", "SIM_KEY", "--error-share", "100 %", SIM_KEY="k"
    )
    async with aiohttp.ClientSession() as http:
        client = Client(http, url)
        assert (await client.post(ask()))[0] == 401
        assert (await client.post(ask(), Authorization="Bearer k"))[0] == 500
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=10)
    assert (process.returncode, err) == (0, "")


async def test_process_crashes_when_told() -> None:
    process, url = started("--crash-after", "2")
    async with aiohttp.ClientSession() as http:
        client = Client(http, url)
        assert await statuses(client, 2) == [200, 200]
        with pytest.raises(aiohttp.ClientError):
            await client.post(ask())
    _, err = process.communicate(timeout=10)
    assert (process.returncode, err) == (1, "")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--error-share", "5"], "5 has no unit: write 5 %"),
        (["--ttft", "soon"], "'soon' is not a duration"),
        (["--dialect", "vlm"], "'vlm' is not one of"),
        (["--api-key-env", "NO_SUCH_KEY"], "environment variable NO_SUCH_KEY is empty"),
        (["--truth", "/no/such/folder/t"], "/no/such/folder/t: cannot be written"),
    ],
)
def test_wrong_use_is_refused_before_listening(words: list[str], message: str) -> None:
    done = subprocess.run([*REAL, *words], capture_output=True, text=True, timeout=20, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert "listening" not in done.stderr
    assert "Traceback" not in done.stderr


def test_port_in_use_is_one_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = subprocess.run(
            [*REAL, "--port", port], capture_output=True, text=True, timeout=20, check=False
        )
    assert done.returncode == 2
    assert done.stderr == f"migrate: 127.0.0.1:{port} is in use; choose another --port, or 0 for a free one\n"


@pytest.mark.parametrize(
    ("lack", "fields"),
    [
        ("tool-choice", {"tools": [WEATHER]}),
        ("schema", {"response_format": {"type": "json_object"}}),
    ],
)
async def test_what_a_server_lacks_is_refused_and_nothing_else(lack: Lack, fields: dict[str, Any]) -> None:
    async with simulator(lacks=frozenset((lack,))) as client:
        refused, _ = await client.post(ask(**fields))
        plain, _ = await client.post(ask())
    assert (refused, plain) == (400, 200)


async def test_a_server_that_starts_answers_503_until_it_has() -> None:
    async with simulator(faults=Faults(starting=0.5)) as client:
        early, _ = await client.post(ask())
        await asyncio.sleep(0.6)
        later, _ = await client.post(ask())
    assert (early, later) == (503, 200)


async def test_only_the_first_answer_of_a_cold_server_is_late() -> None:
    async with simulator(faults=Faults(cold=0.4)) as client:
        times = []
        for _ in range(2):
            start = time.monotonic()
            await client.post(ask())
            times.append(time.monotonic() - start)
    assert times[0] > 0.4 > times[1]


async def test_everything_lies_below_the_root() -> None:
    async with simulator(root="/api") as client:
        assert (await client.get("/v1/models"))[0] == 404
        assert (await client.get("/api/v1/models"))[0] == 200
        assert (await client.post(ask(), path=f"/api{CHAT}"))[0] == 200
