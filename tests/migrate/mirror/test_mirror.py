"""The mirror with its real client and store: every admitted request ends with one observation of the candidate."""

from __future__ import annotations

import asyncio
import gc
import sqlite3
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from migrate.channel import Admitted, Answered, Control, Counted
from migrate.config import Config
from migrate.mirror.mirror import Mirror
from migrate.redact import Redactor
from migrate.store import Store, Writer, codec
from replay.client import Client
from replay.exchange import Ending, Exchange, Headers, Outcome, Recording, Request
from tests.migrate.samples import request
from tests.replay.servers import CHAT_ANSWER, acting, reply, saying

JSON_HEADERS: Headers = (("Content-Type", "application/json"),)
BODY = b'{"model":"m","messages":[{"role":"user","content":"tide?"}],"stream":false,"seed":7}'


@dataclass(kw_only=True)
class Rig:
    """A mirror under test."""

    mirror: Mirror
    store: Store
    run: str
    writer: Writer

    def admit(self, name: str, body: bytes = BODY, status: int = 200, head_s: float = 0.01) -> None:
        """One sampled request, and the baseline's answer to it."""
        asked: Request = request(name, at=time.time(), body=body)
        self.mirror.take(Admitted(request=asked))
        self.mirror.take(Answered(request_id=name, at=asked.at, recording=answered(status, head_s)))

    async def settled(self) -> None:
        async with asyncio.timeout(20):
            while self.mirror.status()["in_flight"] or self.mirror.status()["repeats_in_flight"]:
                await asyncio.sleep(0.02)

    async def finish(self) -> list[Exchange]:
        await self.mirror.drain(0.3)
        assert await asyncio.to_thread(self.writer.close, 10)
        return list(self.store.exchanges(self.run))


def answered(status: int = 200, head_s: float = 0.01, body: bytes = CHAT_ANSWER) -> Recording:
    return Recording(
        sent_at=1.0,
        head_at=1.0 + head_s,
        status=status,
        headers=JSON_HEADERS,
        chunks=((1.0 + head_s, body),),
        ended_at=1.1 + head_s,
        ending=Ending.COMPLETE,
    )


@asynccontextmanager
async def rig(
    tmp_path: Path, url: str, baseline: str = "http://127.0.0.1:9", **config: Any
) -> AsyncIterator[Rig]:
    counted = config.pop("counted", None)
    sections = {
        "baseline": {"kind": "vllm", "url": baseline},
        "candidate": {"kind": "vllm", "url": url, **config.pop("candidate", {})},
        "shadow": {"repeat_baseline": 0, "retry": {"attempts": 1}, **config.pop("shadow", {})},
        **config,
    }
    settings = Config.model_validate(sections)
    with Store.open(f"sqlite:///{tmp_path}/m.db", create=True) as store:
        run = store.begin_run(kind="shadow", config={}, policy={}, seed=1, at=1.0)
        writer = Writer(store, run)
        async with Client() as client:
            redactor = Redactor(settings.redact, b"0123456789abcdef")
            yield Rig(
                mirror=Mirror(settings, client=client, redactor=redactor, writer=writer, counted=counted),
                store=store,
                run=run,
                writer=writer,
            )
        writer.close(5)


def candidates(exchanges: list[Exchange]) -> Counter[tuple[str, str]]:
    assert all(exchange.candidate is not None for exchange in exchanges)
    return Counter((e.candidate.outcome.value, e.candidate.reason) for e in exchanges if e.candidate)


async def test_both_answers_of_a_request_are_stored(tmp_path: Path) -> None:
    async with acting(saying(reply(CHAT_ANSWER))) as url, rig(tmp_path, url) as under:
        under.admit("a")
        await under.settled()
        (exchange,) = await under.finish()
    for seen in (exchange.baseline, exchange.candidate):
        assert seen is not None and seen.outcome is Outcome.OK and seen.answer is not None
        assert seen.answer.first.text == "high at four"
    assert exchange.repeat is None and exchange.request.body == BODY


async def test_a_thousand_requests_under_garbage_collection_end_with_a_thousand_observations(
    tmp_path: Path,
) -> None:
    limits = {"limits": {"in_flight": 2_000}}
    async with acting(saying(reply(CHAT_ANSWER))) as url, rig(tmp_path, url, candidate=limits) as under:
        for n in range(1_000):
            under.admit(str(n))
            if n % 50 == 0:
                gc.collect()
                await asyncio.sleep(0)
        await under.settled()
        assert candidates(await under.finish()) == {("ok", ""): 1_000}


async def hang(_: bytes, reader: asyncio.StreamReader, __: asyncio.StreamWriter) -> None:
    await reader.read()


async def reset(_: bytes, __: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.transport.abort()


async def flood(_: bytes, __: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
    while True:
        writer.write(b"\xff" * 65_536)
        await writer.drain()


@pytest.mark.parametrize(
    ("act", "outcome", "reason"),
    [
        (hang, "timeout", "timeout"),
        (reset, "protocol_error", "reset"),
        (flood, "protocol_error", "malformed"),
        (saying(reply(b"<html>no</html>")), "protocol_error", "malformed"),
        (saying(reply(b'{"error":{"message":"boom"}}', status="500 X")), "http_error", "server_error"),
    ],
)
async def test_a_bad_candidate_is_an_observation_like_any_other(
    tmp_path: Path, act: Callable[..., Any], outcome: str, reason: str
) -> None:
    timeouts = {"timeouts": {"connect": 0.5, "first_byte": 0.3, "total": 1}}
    shadow = {"max_answer": 1_000_000}
    async with acting(act) as url, rig(tmp_path, url, candidate=timeouts, shadow=shadow) as under:
        under.admit("a")
        await under.settled()
        assert candidates(await under.finish()) == {(outcome, reason): 1}


async def test_the_breaker_opens_and_what_it_withholds_is_said(tmp_path: Path) -> None:
    async with acting(reset) as url, rig(tmp_path, url) as under:
        for n in range(12):
            under.admit(str(n))
            await under.settled()
            await asyncio.sleep(0.02)
        assert under.mirror.status()["breaker"] == "open"
        assert candidates(await under.finish()) == {
            ("protocol_error", "reset"): 5,
            ("not_sent", "breaker_open"): 7,
        }


async def test_copies_beyond_the_limit_in_flight_are_counted_not_queued(tmp_path: Path) -> None:
    config = {"limits": {"in_flight": 3}, "timeouts": {"first_byte": 0.3, "total": 0.5}}
    async with acting(hang) as url, rig(tmp_path, url, candidate=config) as under:
        for n in range(10):
            under.admit(str(n))
        await under.settled()
        assert candidates(await under.finish()) == {
            ("timeout", "timeout"): 3,
            ("not_sent", "in_flight_limit"): 7,
        }


async def test_the_kill_switch_cancels_copies_in_flight_at_once(tmp_path: Path) -> None:
    async with acting(hang) as url, rig(tmp_path, url) as under:
        under.admit("a")
        await asyncio.sleep(0.1)
        start = time.monotonic()
        under.mirror.take(Control(mirroring=False))
        await under.settled()
        assert time.monotonic() - start < 0.5
        under.admit("b")
        exchanges = await under.finish()
    assert candidates(exchanges) == {("not_sent", "paused"): 2}
    assert all(exchange.baseline is not None for exchange in exchanges)


async def test_a_message_that_cannot_be_handled_ends_no_other_copy(tmp_path: Path) -> None:
    async with acting(saying(reply(CHAT_ANSWER))) as url, rig(tmp_path, url) as under:
        under.admit("bad", body=b"{")  # the gateway lets no such request through
        under.admit("good")
        await under.settled()
        exchanges = {exchange.request.id: exchange for exchange in await under.finish()}
    assert under.mirror.counters["mirror_failed"] == 1
    good, bad = exchanges["good"].candidate, exchanges["bad"].candidate
    assert good is not None and good.outcome is Outcome.OK
    assert bad is not None and bad.reason == "mirror_failed"


async def test_a_mirror_that_goes_on_with_a_run_goes_on_counting(tmp_path: Path) -> None:
    before = {"admitted": 3, "copies": 2, "not_sent.breaker_open": 1, "passed": 7}
    async with acting(saying(reply(CHAT_ANSWER))) as url, rig(tmp_path, url, counted=before) as under:
        under.admit("a")
        await under.settled()
        await under.finish()
        counters = under.store.counters(under.run)
    tokens = counters.pop(next(name for name in counters if name.startswith("tokens.")))
    assert tokens == 10
    assert counters == {
        "admitted": 4,
        "copies": 3,
        "not_sent.breaker_open": 1,
    }  # "passed" is the gateway's own


async def test_copies_in_flight_at_the_end_are_not_lost(tmp_path: Path) -> None:
    async with acting(hang) as url, rig(tmp_path, url) as under:
        under.admit("a")
        await asyncio.sleep(0.1)
        assert candidates(await under.finish()) == {("not_sent", "shutdown"): 1}


async def test_a_retry_waits_as_asked_and_never_becomes_a_clean_success(tmp_path: Path) -> None:
    asked: list[float] = []

    async def act(_: bytes, __: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(time.monotonic())
        busy = reply(b"{}", status="429 Too Many Requests", headers=b"Retry-After: 0.3\r\n")
        writer.write(busy if len(asked) == 1 else reply(CHAT_ANSWER))

    async with acting(act) as url, rig(tmp_path, url, shadow={"retry": {"attempts": 2}}) as under:
        under.admit("a")
        await under.settled()
        (exchange,) = await under.finish()
    assert 0.25 < asked[1] - asked[0] < 1.0
    assert exchange.candidate is not None and exchange.candidate.outcome is Outcome.OK
    assert exchange.candidate.attempts == 2 and exchange.candidate.earlier[0].status == 429


async def test_a_bad_request_is_not_tried_again(tmp_path: Path) -> None:
    seen: list[bytes] = []

    async def act(asked: bytes, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(asked)
        writer.write(reply(b'{"error":"no"}', status="400 Bad Request"))

    async with acting(act) as url, rig(tmp_path, url, shadow={"retry": {"attempts": 3}}) as under:
        under.admit("a")
        await under.settled()
        await under.finish()
    assert len(seen) == 1


async def test_the_candidate_gets_its_own_key_and_host_and_the_same_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CANDIDATE_KEY", "candidates-own")
    seen: list[bytes] = []

    async def act(asked: bytes, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(asked)
        writer.write(reply(CHAT_ANSWER))

    async with acting(act) as url, rig(tmp_path, url, candidate={"api_key_env": "CANDIDATE_KEY"}) as under:
        under.admit("a")
        await under.settled()
        await under.finish()
        host = url.removeprefix("http://").encode()
    head, _, body = seen[0].partition(b"\r\n\r\n")
    assert body == BODY
    assert b"Authorization: Bearer candidates-own" in head and b"Host: " + host in head
    assert b"X-A" not in head


PII = b'{"model":"m","messages":[{"role":"user","content":"write to ada@example.org"}]}'


@pytest.mark.parametrize(
    ("shadow", "sent", "reason"),
    [({}, 0, "not_comparable.redaction"), ({"send_redacted": True}, 1, "not_comparable.redacted_copy")],
)
async def test_a_third_party_never_sees_what_redaction_would_hide(
    tmp_path: Path, shadow: dict[str, Any], sent: int, reason: str
) -> None:
    seen: list[bytes] = []

    async def act(asked: bytes, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(asked)
        writer.write(reply(CHAT_ANSWER))

    async with acting(act) as url, rig(tmp_path, url, candidate={"kind": "relay"}, shadow=shadow) as under:
        under.admit("a", body=PII)
        await under.settled()
        (exchange,) = await under.finish()
    assert len(seen) == sent and not any(b"ada@" in asked for asked in seen)
    assert exchange.candidate is not None and exchange.candidate.reason == reason


async def test_secrets_are_nowhere_in_the_file_not_even_when_the_answer_repeats_them(tmp_path: Path) -> None:
    echo = CHAT_ANSWER.replace(b"high at four", b"ada@example.org has sk-live-0123456789abcdef")
    async with acting(saying(reply(echo))) as url, rig(tmp_path, url) as under:
        under.admit("a", body=PII)
        await under.settled()
        await under.finish()
    with sqlite3.connect(tmp_path / "m.db") as connection:
        held = [codec.unpack(data) for (data,) in connection.execute("select data from bodies")]
        texts = repr(connection.execute("select * from observations").fetchall())
    connection.close()
    assert held and not any(b"ada@" in data or b"sk-live" in data for data in held)
    assert "ada@" not in texts


async def test_baseline_repeats_measure_the_noise_and_go_with_the_baselines_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[bytes] = []

    async def act(asked: bytes, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(asked)
        writer.write(reply(CHAT_ANSWER))

    async with (
        acting(act) as old,
        acting(saying(reply(CHAT_ANSWER))) as new,
        rig(tmp_path, new, old, shadow={"repeat_baseline": 1}) as under,
    ):
        under.admit("a")
        await under.settled()
        await asyncio.sleep(0.2)
        (exchange,) = await under.finish()
    assert len(seen) == 1 and exchange.repeat is not None and exchange.repeat.outcome is Outcome.OK


@pytest.mark.parametrize("status", [429, 503])
async def test_an_overloaded_baseline_gets_no_repeats(tmp_path: Path, status: int) -> None:
    async with (
        acting(saying(reply(CHAT_ANSWER))) as old,
        acting(saying(reply(CHAT_ANSWER))) as new,
        rig(tmp_path, new, old, shadow={"repeat_baseline": 1}) as under,
    ):
        under.admit("busy", status=status)
        for n in range(5):
            under.admit(str(n))
        await under.settled()
        await asyncio.sleep(0.2)
        assert under.mirror.counters["repeats_skipped.baseline_busy"] == 5
        assert sum(exchange.repeat is not None for exchange in await under.finish()) == 0


async def test_a_repeat_that_has_no_key_is_not_held_against_the_baseline(tmp_path: Path) -> None:
    refused = saying(reply(b'{"error":"Unauthorized"}', status="401 Unauthorized"))
    async with (
        acting(refused) as old,
        acting(saying(reply(CHAT_ANSWER))) as new,
        rig(tmp_path, new, old, shadow={"repeat_baseline": 1}) as under,
    ):
        for n in range(3):
            under.admit(str(n))
            await under.settled()
            await asyncio.sleep(0.1)
        assert all(exchange.repeat is None for exchange in await under.finish())
        assert under.mirror.counters["repeats_skipped.no_key"] == 3


async def test_the_gateways_counters_reach_the_store(tmp_path: Path) -> None:
    async with rig(tmp_path, "http://127.0.0.1:1") as under:
        under.mirror.take(Counted(counters={"passed": 10, "not_sampled": 9}))
        await under.finish()
        assert under.store.counters(under.run) == {"passed": 10, "not_sampled": 9}


async def test_a_store_that_refuses_is_counted_and_the_mirror_goes_on(tmp_path: Path) -> None:
    async with acting(saying(reply(CHAT_ANSWER))) as url, rig(tmp_path, url) as under:
        await asyncio.to_thread(under.writer.close, 5)
        for n in range(3):
            under.admit(str(n))
        await under.settled()
        await asyncio.sleep(0.1)
        assert under.mirror.counters["store_refused"] == 9
        assert under.mirror.status()["store"]["refused"] == 9


async def test_an_answer_to_an_unknown_request_is_counted(tmp_path: Path) -> None:
    async with rig(tmp_path, "http://127.0.0.1:1") as under:
        under.mirror.take(Answered(request_id="0", at=1.0, recording=answered()))
        await under.finish()
        assert under.mirror.counters["answers_without_request"] == 1
