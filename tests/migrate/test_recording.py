"""The recording transport between real clients of the OpenAI SDK and real servers."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest

import migrate
from migrate.errors import ConfigError
from replay.exchange import Exchange, Outcome
from replay.simulator.settings import Faults, Pacing
from tests.migrate.sdk import (
    ASK,
    KEY,
    OWN,
    SDK,
    WAYS,
    async_client,
    counted,
    reading,
    running,
    simulator,
    stored,
    sync_client,
)
from tests.replay.servers import CHAT_ANSWER, acting, reply, saying
from tests.replay.simulated import WEATHER


@pytest.fixture
def store(tmp_path: Path) -> Iterator[str]:
    yield f"sqlite:///{tmp_path}/migrate.db"
    migrate.stop_recording()


def outcome(exchange: Exchange) -> Outcome:
    assert exchange.baseline is not None
    return exchange.baseline.outcome


def text(exchange: Exchange) -> str:
    assert exchange.baseline is not None and exchange.baseline.answer is not None
    return exchange.baseline.answer.first.text


def said(chunks: list[Any]) -> str:
    return "".join(part.choices[0].delta.content or "" for part in chunks if part.choices)


@pytest.mark.parametrize("way", WAYS)
def test_what_a_synchronous_client_asks_and_gets_is_stored(way: str, store: str) -> None:
    with (
        running(simulator(pacing=Pacing(ttft=0.03, itl=0.002))) as url,
        sync_client(way, url, store) as client,
    ):
        whole = client.chat.completions.create(model="m", messages=ASK)
        pieces = list(client.chat.completions.create(model="m", messages=ASK, stream=True))
        tool = client.chat.completions.create(
            model="m", messages=ASK, tools=[WEATHER], tool_choice="required"
        )
        plain = client.completions.create(model="m", prompt="Once upon a tide")
    one, streamed, called, completed = stored(store)
    assert text(one) == whole.choices[0].message.content and text(streamed) == said(pieces)
    assert text(completed) == plain.choices[0].text and completed.request.path == "/v1/completions"
    assert called.baseline is not None and called.baseline.answer is not None
    assert called.baseline.answer.first.tool_calls[0].arguments == (
        tool.choices[0].message.tool_calls[0].function.arguments
    )
    assert json.loads(one.request.body) == {"model": "m", "messages": ASK}
    assert {outcome(exchange) for exchange in (one, streamed, called, completed)} == {Outcome.OK}
    timed(one, streamed)


@pytest.mark.parametrize("way", WAYS)
async def test_what_an_asynchronous_client_asks_and_gets_is_stored(way: str, store: str) -> None:
    with running(simulator(pacing=Pacing(ttft=0.03, itl=0.002))) as url:
        async with async_client(way, url, store) as client:
            whole = await client.chat.completions.create(model="m", messages=ASK)
            stream = await client.chat.completions.create(model="m", messages=ASK, stream=True)
            pieces = [part async for part in stream]
    one, streamed = stored(store)
    assert text(one) == whole.choices[0].message.content and text(streamed) == said(pieces)
    assert outcome(one) is outcome(streamed) is Outcome.OK
    timed(one, streamed)


@pytest.mark.skipif(SDK < 3, reason="an SDK before 3 needs one more package for its aiohttp client")
async def test_the_sdks_aiohttp_client_is_recorded_as_well(store: str) -> None:
    with running(simulator(pacing=Pacing(itl=0.002))) as url:
        more = {"http_client": openai.DefaultAioHttpClient()}
        async with async_client("record", url, store, **more) as client:
            stream = await client.chat.completions.create(model="m", messages=ASK, stream=True)
            pieces = [part async for part in stream]
    (streamed,) = stored(store)
    assert outcome(streamed) is Outcome.OK and text(streamed) == said(pieces)


def timed(one: Exchange, streamed: Exchange) -> None:
    assert one.baseline is not None and streamed.baseline is not None
    unstreamed, timing = one.baseline.timing, streamed.baseline.timing
    assert unstreamed.ttft_s is None and unstreamed.head_s and unstreamed.head_s > 0.005
    assert timing.head_s and timing.ttft_s and timing.e2e_s
    assert timing.head_s <= timing.ttft_s < timing.e2e_s and len(timing.content_times) > 5
    assert list(timing.content_times) == sorted(timing.content_times)
    assert abs(one.baseline.at - time.time()) < 60


def test_no_credential_and_nothing_personal_is_stored(tmp_path: Path, store: str) -> None:
    with running(simulator()) as url, sync_client("record", url, store) as client:
        messages = [{"role": "user", "content": "Write to ann.lee@example.com, please"}]
        client.chat.completions.create(
            model="m", messages=messages, extra_headers={"X-Tenant": "very-secret", "Cookie": "session=12345"}
        )
    (exchange,) = stored(store)
    assert b"[email:" in exchange.request.body
    names = {name.lower() for name, _ in exchange.request.headers}
    assert names == {"accept", "content-type", "user-agent"}
    written = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    for secret in (KEY, "ann.lee", "very-secret", "session=12345"):
        assert secret.encode() not in written


@pytest.mark.parametrize(
    ("faults", "raises", "expected"),
    [
        (Faults(error_share=1.0), openai.InternalServerError, ("http_error", 500, "server_error")),
        (Faults(rate_limit_share=1.0), openai.RateLimitError, ("http_error", 429, "rate_limited")),
        (Faults(hang_share=1.0), openai.APITimeoutError, ("timeout", None, "timeout")),
        (
            Faults(error_share=1.0, error_status=400),
            openai.BadRequestError,
            ("http_error", 400, "bad_request"),
        ),
    ],
)
async def test_what_fails_raises_as_ever_and_is_stored_as_what_it_was(
    faults: Faults, raises: type[Exception], expected: tuple[str, int | None, str], store: str
) -> None:
    with running(simulator(faults=faults)) as url:
        with sync_client("record", url, store, timeout=0.4) as client, pytest.raises(raises):
            client.chat.completions.create(model="m", messages=ASK)
        async with async_client("record", url, store, timeout=0.4) as client:
            with pytest.raises(raises):
                await client.chat.completions.create(model="m", messages=ASK, stream=True)
    for exchange in stored(store):
        seen = exchange.baseline
        assert seen is not None and seen.failure is not None
        assert (seen.outcome.value, seen.status, seen.failure.error_class.value) == expected


def test_no_connection_a_cut_stream_and_a_slow_one_are_told_apart(store: str) -> None:
    half = (
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 999\r\n\r\n"
        b'data: {"choices":[{"index":0,"delta":{"content":"high"}}]}\n\n'
    )

    async def cut(_: bytes, __: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(half)
        await writer.drain()
        await asyncio.sleep(0.05)
        writer.transport.abort()

    async def slow(_: bytes, __: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(half)
        await asyncio.sleep(5)

    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        asked(f"http://127.0.0.1:{nobody.getsockname()[1]}", store, OWN.ConnectError)
    with running(acting(cut)) as url:
        asked(url, store, OWN.HTTPError)
    with running(acting(slow)) as url:
        asked(url, store, OWN.ReadTimeout)
    refused, broken, stalled = stored(store)
    assert outcome(refused) is Outcome.CONNECT_ERROR and outcome(broken) is Outcome.PROTOCOL_ERROR
    assert outcome(stalled) is Outcome.TIMEOUT
    for exchange in (broken, stalled):
        assert exchange.baseline is not None and exchange.baseline.timing.head_s is not None
        assert text(exchange) == "high"


def asked(url: str, store: str, raises: type[Exception]) -> None:
    """A streamed call that ends in an exception of the transport, which the SDK names as the cause of its own."""
    with (
        sync_client("record", url, store, timeout=0.4) as client,
        pytest.raises((openai.APIConnectionError, raises)) as told,
    ):
        list(client.chat.completions.create(model="m", messages=ASK, stream=True))
    assert isinstance(told.value, raises) or isinstance(told.value.__cause__, raises)


async def test_a_reader_that_leaves_is_no_fault_of_the_backend(store: str) -> None:
    with running(simulator(tokens=200, pacing=Pacing(itl=0.01))) as url:
        with sync_client("record", url, store) as client:
            for _ in client.chat.completions.create(model="m", messages=ASK, stream=True):
                break  # and the stream is garbage
            with client.chat.completions.create(model="m", messages=ASK, stream=True) as stream:
                next(iter(stream))
            client.chat.completions.create(model="m", messages=ASK, stream=True).close()
        async with async_client("record", url, store) as client:
            async with await client.chat.completions.create(model="m", messages=ASK, stream=True) as stream:
                async for _ in stream:
                    break
            whole = client.chat.completions.create(model="m", messages=ASK)  # takes two seconds
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(0.2):
                    await whole
    left = stored(store)
    assert len(left) == 5 and {outcome(exchange) for exchange in left} == {Outcome.CLIENT_CANCELLED}
    assert not any(exchange.baseline.outcome.failed for exchange in left if exchange.baseline)


def test_a_connection_pool_that_is_full_is_the_clients_own_affair(store: str) -> None:
    limits = OWN.Limits(max_connections=1)
    with running(simulator(tokens=50, pacing=Pacing(itl=0.01))) as url:
        http = OWN.Client(limits=limits, timeout=OWN.Timeout(5, pool=0.05))
        with migrate.record(http, store):
            words = {"model": "m", "messages": ASK, "stream": True}
            with (
                http.stream("POST", f"{url}/v1/chat/completions", json=words),
                pytest.raises(OWN.PoolTimeout),
            ):
                http.post(f"{url}/v1/chat/completions", json=words)
    assert {outcome(exchange) for exchange in stored(store)} == {Outcome.CLIENT_CANCELLED}


def test_every_attempt_of_the_sdk_is_an_exchange(store: str) -> None:
    answers = iter(
        [reply(b'{"error":{"message":"busy"}}', status="503 Busy", headers=b"Retry-After-Ms: 1\r\n")]
    )

    async def second_time(_: bytes, __: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(next(answers, reply(CHAT_ANSWER)))

    with running(acting(second_time)) as url, sync_client("record", url, store, max_retries=2) as client:
        assert client.chat.completions.create(model="m", messages=ASK).choices
    assert [outcome(exchange) for exchange in stored(store)] == [Outcome.HTTP_ERROR, Outcome.OK]


def test_a_request_that_is_redirected_is_recorded_where_it_is_answered(store: str) -> None:
    async def hop(head: bytes, __: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        moved = reply(b"", status="307 Moved", headers=b"Location: /there/v1/chat/completions\r\n")
        writer.write(reply(CHAT_ANSWER) if b"/there/" in head else moved)

    with running(acting(hop)) as url, sync_client("record", url, store) as client:
        assert client.chat.completions.create(model="m", messages=ASK).choices
    moved, answered = stored(store)
    assert outcome(moved) is Outcome.PROTOCOL_ERROR and text(answered) == "high at four"
    assert moved.request.body == answered.request.body


def test_an_answer_in_a_content_coding_is_read(store: str) -> None:
    coded = reply(gzip.compress(CHAT_ANSWER), headers=b"Content-Encoding: gzip\r\n")
    with running(acting(saying(coded))) as url, sync_client("record", url, store) as client:
        assert (
            client.chat.completions.create(model="m", messages=ASK).choices[0].message.content
            == "high at four"
        )
    assert [text(exchange) for exchange in stored(store)] == ["high at four"]


def test_only_model_calls_are_recorded_whatever_the_base_url(store: str) -> None:
    with running(acting(saying(reply(CHAT_ANSWER)))) as url:
        with migrate.record(httpx.Client(), store) as http:
            for path in ("/v1/embeddings", "/v1/threads/t/messages", "/completions/x", "/v1/models"):
                http.post(url + path, json={})
            http.get(f"{url}/v1/chat/completions")
            for path in ("/chat/completions", "/api/v1/completions?api-version=3&key=x", "/v1/responses"):
                http.post(url + path, json={"model": "m"})
        azure = openai.AzureOpenAI(
            azure_endpoint=url, api_key=KEY, api_version="2024-10-21", azure_deployment="deep"
        )
        with migrate.record(azure, store) as client:
            client.chat.completions.create(model="deep", messages=ASK)
    assert [exchange.request.path for exchange in stored(store)] == [
        "/v1/chat/completions",
        "/v1/completions?api-version=3",
        "/v1/responses",
        "/v1/chat/completions?api-version=2024-10-21",
    ]


def test_a_request_that_cannot_be_kept_passes_and_is_counted(store: str) -> None:
    with running(acting(saying(reply(CHAT_ANSWER)))) as url, migrate.record(httpx.Client(), store) as http:
        target = f"{url}/v1/chat/completions"
        long = json.dumps({"messages": [{"role": "user", "content": "a" * 2**23}]}).encode()
        stateful = b'{"previous_response_id":"r1"}'
        for content in (iter([b"{", b"}"]), b"no json", long, stateful, b"[" * 9_000, b'{"model":"m"}'):
            assert http.post(target, content=content).content
    assert len(stored(store)) == 1
    counts = counted(store)
    assert counts["passed"] == 6 and counts["mirrored"] == 1 and counts["stateful"] == 1
    assert counts["incomplete"] == 1 and counts["too_large"] == 1 and counts["not_json"] == 2


def test_time_before_the_request_leaves_is_no_latency(store: str) -> None:
    class Late(OWN.HTTPTransport):  # type: ignore[name-defined, misc]
        """As a rate limiter does, or a connection that takes its time."""

        def handle_request(self, request: Any) -> Any:
            time.sleep(0.3)
            return super().handle_request(request)

    heard: list[str] = []
    http = OWN.Client(transport=migrate.RecordingTransport(Late(), store=store))
    with running(acting(saying(reply(CHAT_ANSWER)))) as url, http:
        words = {"json": {"model": "m"}, "extensions": {"trace": lambda name, _: heard.append(name)}}
        answer = http.post(f"{url}/v1/chat/completions", **words)
    (exchange,) = stored(store)
    assert exchange.baseline is not None and exchange.baseline.timing.e2e_s is not None
    assert exchange.baseline.timing.e2e_s < 0.2
    assert "http11.send_request_headers.complete" in heard, "the caller's own trace goes on"
    assert answer.request.extensions["trace"] is words["extensions"]["trace"]


def test_a_client_keeps_its_proxies_and_is_recorded_once(store: str) -> None:
    with running(acting(saying(reply(CHAT_ANSWER)))) as url:
        http = httpx.Client(mounts={"http://far.away": httpx.HTTPTransport(proxy=url)})
        with migrate.record(migrate.record(http, store), store):
            assert http.post("http://far.away/v1/chat/completions", json={"model": "m"}).status_code == 200
    assert len(stored(store)) == 1


def test_what_is_no_client_is_refused_and_so_is_a_wrong_configuration(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="not a dict"):
        migrate.record({})
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text("baselin: {}")
    with pytest.raises(ConfigError, match=r"baselin"):
        migrate.RecordingTransport(config=wrong)


def test_a_configuration_says_what_is_recorded_and_redacted(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/other.db"
    config = tmp_path / "migrate.yaml"
    config.write_text(
        "baseline: {kind: vllm, url: http://127.0.0.1:1, api_key_env: NOT_SET_HERE}\n"
        "candidate: {kind: vllm, url: http://127.0.0.1:2}\n"
        "shadow: {percent: 100, paths: [/v1/completions]}\n"
        f"redact: {{patterns: ['ACME-\\d+']}}\nstore: {{url: '{store}'}}\n"
    )
    with (
        running(acting(saying(reply(CHAT_ANSWER)))) as url,
        migrate.record(httpx.Client(), config=config) as http,
    ):
        http.post(f"{url}/v1/chat/completions", json={"model": "m"})
        http.post(f"{url}/v1/completions", json={"model": "m", "prompt": "about ACME-1234"})
    (exchange,) = stored(store)
    assert exchange.request.path == "/v1/completions" and b"[own:" in exchange.request.body


def test_many_threads_and_many_loops_lose_nothing_and_mix_nothing(store: str) -> None:
    with running(simulator(pacing=Pacing(itl=0.001))) as url, sync_client("record", url, store) as client:

        def ask(name: int) -> None:
            for turn in range(5):
                words = [{"role": "user", "content": f"thread {name} turn {turn}"}]
                list(client.chat.completions.create(model="m", messages=words, stream=True))

        async def loop(name: int) -> None:
            async with async_client("record", url, store) as asynchronous:

                async def one(turn: int) -> None:
                    words = [{"role": "user", "content": f"loop {name} turn {turn}"}]
                    await asynchronous.chat.completions.create(model="m", messages=words)

                await asyncio.gather(*(one(turn) for turn in range(20)))

        threads = [threading.Thread(target=ask, args=(name,)) for name in range(8)]
        threads += [threading.Thread(target=lambda n=name: asyncio.run(loop(n))) for name in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    exchanges = stored(store)
    prompts = {json.loads(exchange.request.body)["messages"][0]["content"] for exchange in exchanges}
    assert len(exchanges) == len(prompts) == 8 * 5 + 3 * 20
    assert {outcome(exchange) for exchange in exchanges} == {Outcome.OK}
    assert len(reading(store)) == 100
