"""What clients get while the traffic moves: whichever server answers, hangs, refuses or dies. Raw sockets on both sides."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass

import pytest

from migrate.canary.gateway import Shifting
from migrate.canary.section import CanarySection
from migrate.channel import Admitted, Answered, Message
from migrate.config import Backend, Shadow, Timeouts
from migrate.tap import Tap
from migrate.upstream import Upstream
from replay.exchange import Arm, Ending
from tests.migrate.gateway.raw import Baseline, Peer, ask, baseline, chat, client, once, until

OURS = b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nbaseline"
THEIRS = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\ncandidate"
STREAM = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@dataclass(kw_only=True)
class Moving:
    """A canary's gateway between a baseline and a candidate, and what it said."""

    port: int
    gateway: Shifting
    old: Baseline
    new: Baseline
    messages: list[Message]
    halts: list[str]

    async def asks(self, text: str = "hello", **more: object) -> bytes:
        return await once(self.port, chat(text, **more).replace(b"Host:", b"Connection: close\r\nHost:", 1))

    def answered(self) -> list[Answered]:
        return [one for one in self.messages if isinstance(one, Answered)]


@contextlib.asynccontextmanager
async def moving(
    candidate: bytes | Callable[[Peer, bytes], Awaitable[None]],
    *,
    old: bytes | Callable[[Peer, bytes], Awaitable[None]] = OURS,
    share: float = 1.0,
    first_byte: float = 2.0,
    names: dict[str, str] | None = None,
    **section: object,
) -> AsyncIterator[Moving]:
    messages: list[Message] = []
    halts: list[str] = []
    async with baseline(old) as before, baseline(candidate) as after:
        tap = Tap(Shadow.model_validate({"percent": 100}), messages.append)
        ups = [
            Upstream(
                Backend(
                    kind="vllm", url=f"http://127.0.0.1:{side.port}", timeouts=Timeouts(first_byte=first_byte)
                ),
                name,
            )
            for name, side in (("baseline", before), ("candidate", after))
        ]
        handler = Shifting(
            *ups,
            tap,
            section=CanarySection.model_validate(section),
            names=names or {},
            key="its-own",
            max_body=2**20,
            first_byte=first_byte,
            halted=halts.append,
        )
        handler.move(share)
        server = handler.server()
        listener = await asyncio.get_running_loop().create_server(server, "127.0.0.1", 0)
        port = listener.sockets[0].getsockname()[1]
        try:
            yield Moving(port=port, gateway=handler, old=before, new=after, messages=messages, halts=halts)
        finally:
            listener.close()
            server.pre_shutdown()
            await server.shutdown(0.5)
            for up in ups:
                await up.close()


def body(answer: bytes) -> bytes:
    return answer.partition(b"\r\n\r\n")[2]


async def test_the_candidate_gets_its_own_model_and_key_and_nothing_that_lets_a_client_in() -> None:
    secret = (
        b"Cookie: a=letmein",
        b"X-Amzn-Oidc-Data: letmein",
        b"X-Goog-IAP-JWT-Assertion: letmein",
        b"X-Forwarded-Client-Cert: letmein",
        b"Connection: close",
    )
    request = chat(temperature=0.5).replace(b"/completions", b"/completions?key=letmein", 1)
    async with moving(THEIRS, names={"m": "m-fp8"}) as now:
        answer = await once(now.port, request.replace(b"Host:", b"\r\n".join((*secret, b"Host:")), 1))
        assert body(answer) == b"candidate"
        (asked,) = now.new.requests
    head, _, text = asked.partition(b"\r\n\r\n")
    assert (
        b"sk-secret" not in head
        and b"letmein" not in head
        and head.count(b"Authorization: Bearer its-own") == 1
    )
    assert json.loads(text)["model"] == "m-fp8" and json.loads(text)["temperature"] == 0.5
    assert b"Content-Length: %d" % len(text) in head


async def test_a_conversation_stays_where_it_is_and_growing_moves_nobody_back() -> None:
    async def sides(now: Moving, share: float) -> list[bytes]:
        now.gateway.move(share)
        return [body(await now.asks(f"conversation {n}")) for n in range(60)]

    async with moving(THEIRS) as now:
        small, again, large = [await sides(now, share) for share in (0.3, 0.3, 0.6)]
        none = await sides(now, 0.0)
    assert small == again
    assert 8 <= small.count(b"candidate") <= 30 < 24 + large.count(b"candidate")
    assert all(
        later == b"candidate" for early, later in zip(small, large, strict=True) if early == b"candidate"
    )
    assert set(none) == {b"baseline"}


async def test_both_sides_are_recorded_with_the_side_that_was_drawn() -> None:
    async with moving(THEIRS, share=0.5) as now:
        for n in range(20):
            await now.asks(f"conversation {n}")
        await until(lambda: len(now.messages) == 40)
    sides = {one.request.id: one.request.side for one in now.messages if isinstance(one, Admitted)}
    assert set(sides.values()) == {Arm.BASELINE, Arm.CANDIDATE}
    assert all(one.arm is sides[one.request_id] and one.last for one in now.answered())


async def hangs(peer: Peer, request: bytes) -> None:
    await peer.left()


async def closes(peer: Peer, request: bytes) -> None:
    peer.writer.close()


async def breaks_after_its_head(peer: Peer, request: bytes) -> None:
    await peer.send(STREAM)
    await asyncio.sleep(0.02)
    peer.reset()


FAILING = {
    "closes": closes,
    "hangs": hangs,
    "breaks after its head": breaks_after_its_head,
    "429": b"HTTP/1.1 429 Too Many Requests\r\nContent-Length: 4\r\n\r\nbusy",
    "500": b"HTTP/1.1 500 Oh\r\nContent-Length: 4\r\n\r\noops",
    "404": b"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\n{}",
    "400": b"HTTP/1.1 400 Bad Request\r\nContent-Length: 2\r\n\r\n{}",
    "no HTTP": b"what?\r\n\r\n",
}


@pytest.mark.parametrize("how", FAILING)
async def test_before_its_first_byte_a_client_never_sees_that_the_candidate_failed(how: str) -> None:
    async with moving(FAILING[how], first_byte=0.2, halt={"in_a_row": 3}) as now:
        answers = [body(await now.asks(f"conversation {n}")) for n in range(5)]
        assert answers == [b"baseline"] * 5
        assert len(now.halts) == 1 and "3 requests to the candidate failed in a row" in now.halts[0]
        assert now.gateway.share == 0 and len(now.new.requests) == 3
        await until(lambda: len(now.answered()) == 8)
    counters = now.gateway.tap.counters
    assert counters["candidate_failed"] == counters["failed_over"] == 3 and counters["gateway_errors"] == 0
    first = [one for one in now.answered() if one.arm is Arm.CANDIDATE]
    assert len(first) == 3 and not any(one.last for one in first)
    assert all(
        one.recording.ending is not Ending.COMPLETE or (one.recording.status or 0) >= 400 for one in first
    )


@pytest.mark.parametrize("status", [b"400 Bad Request", b"404 Not Found", b"408 Request Timeout"])
async def test_a_request_that_is_wrong_in_itself_is_no_failure_of_the_candidate(status: bytes) -> None:
    wrong = b"HTTP/1.1 %b\r\nContent-Length: 2\r\n\r\n{}" % status
    async with moving(wrong, old=wrong, halt={"in_a_row": 2}) as now:
        for n in range(6):
            assert (await now.asks(f"conversation {n}")).startswith(b"HTTP/1.1 " + status)
    assert not now.halts and now.gateway.tap.counters["candidate_failed"] == 0


async def test_after_its_first_byte_the_client_sees_what_happened_and_nothing_is_spliced() -> None:
    async def breaks(peer: Peer, request: bytes) -> None:
        await peer.send(STREAM + b"5\r\nhello\r\n")
        await asyncio.sleep(0.05)
        peer.writer.close()

    async with moving(breaks) as now:
        answer = await now.asks()
        await until(now.answered)
    assert answer.endswith(b"5\r\nhello\r\n") and b"baseline" not in answer
    assert not now.old.requests
    (seen,) = now.answered()
    assert seen.arm is Arm.CANDIDATE and seen.recording.ending is Ending.RESET
    assert now.gateway.tap.counters["candidate_failed"] == 1


async def test_a_request_whose_answer_has_a_head_and_nothing_else_is_taken_back_too() -> None:
    async def stalls(peer: Peer, request: bytes) -> None:
        await peer.send(STREAM)
        await peer.left()

    async with moving(stalls, first_byte=60.0) as now:
        waiting = asyncio.create_task(now.asks())
        await until(lambda: now.new.requests)
        await asyncio.sleep(0.05)
        now.gateway.halt("by hand")
        assert body(await asyncio.wait_for(waiting, 1)) == b"baseline"


async def test_at_a_safety_stop_those_who_wait_get_the_baselines_answer_at_once() -> None:
    async with moving(hangs, first_byte=60.0) as now:
        waiting = [asyncio.create_task(now.asks(f"conversation {n}")) for n in range(10)]
        await until(lambda: len(now.new.requests) == 10)
        now.gateway.halt("by hand")
        answers = await asyncio.wait_for(asyncio.gather(*waiting), 1)
        await until(lambda: len(now.answered()) == 20)
    assert {body(one) for one in answers} == {b"baseline"} and now.halts == ["by hand"]
    assert now.gateway.tap.counters["candidate_failed"] == 0 and now.gateway.at_candidate == 0
    ours = [one for one in now.answered() if one.arm is Arm.CANDIDATE]
    assert {one.recording.ending for one in ours} == {
        Ending.CLIENT_LEFT
    }  # it says nothing about the candidate


async def test_however_many_wait_at_a_safety_stop_none_of_them_counts_as_asked_twice() -> None:
    async with moving(hangs, first_byte=60.0, failover=0) as now:
        waiting = [asyncio.create_task(now.asks(f"conversation {n}")) for n in range(60)]
        await until(lambda: len(now.new.requests) == 60)
        now.gateway.halt("by hand")
        answers = await asyncio.wait_for(asyncio.gather(*waiting), 3)
    assert {body(one) for one in answers} == {b"baseline"}


async def test_a_stop_that_is_not_the_candidates_fault_lets_it_finish_what_it_has() -> None:
    more = asyncio.Event()

    async def thinks(peer: Peer, request: bytes) -> None:
        await more.wait()
        await peer.send(THEIRS)

    async with moving(thinks) as now:
        waiting = asyncio.create_task(now.asks())
        await until(lambda: now.new.requests)
        now.gateway.halt("the mirror is down", failing=False)
        more.set()
        assert body(await asyncio.wait_for(waiting, 2)) == b"candidate"


async def test_a_whole_answer_may_take_longer_than_a_stream_may_take_to_begin() -> None:
    async def slow(peer: Peer, request: bytes) -> None:
        await asyncio.sleep(0.4)
        await peer.send(THEIRS)

    async with moving(slow, first_byte=0.2) as now:
        now.gateway.candidate.silence = 600.0
        assert body(await now.asks()) == b"candidate"
        assert body(await now.asks(stream=True)) == b"baseline"


async def test_clients_that_waited_long_for_nothing_stop_the_candidate(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("migrate.canary.gateway._LONG_S", 0.05)
    async with moving(hangs, first_byte=60.0, halt={"in_a_row": 3}) as now:
        for n in range(3):
            async with client(now.port) as peer:
                await peer.send(chat(f"conversation {n}"))
                await asyncio.sleep(0.1)
            await until(lambda: now.gateway.at_candidate == 0)
        await until(lambda: now.halts)
    assert now.gateway.share == 0


@pytest.mark.parametrize("policy", ["finish", "cut"])
async def test_streams_under_way_finish_or_are_cut_as_the_policy_says(policy: str) -> None:
    more = asyncio.Event()

    async def streams(peer: Peer, request: bytes) -> None:
        await peer.send(STREAM + b"5\r\nhello\r\n")
        await more.wait()
        await peer.send(b"3\r\nend\r\n0\r\n\r\n")

    async with moving(streams, in_flight=policy) as now, client(now.port) as peer:
        await peer.send(chat())
        await peer.until(b"hello\r\n")
        now.gateway.halt("by hand")
        more.set()
        rest = await asyncio.wait_for(peer.until(b"0\r\n\r\n") if policy == "finish" else peer.rest(), 2)
        assert (rest == b"3\r\nend\r\n0\r\n\r\n") is (policy == "finish")
    assert now.gateway.tap.counters["candidate_failed"] == 0


async def test_an_outage_does_not_double_what_the_baseline_carries() -> None:
    refusal = b"HTTP/1.1 503 Down\r\nContent-Length: 4\r\n\r\ndown"
    limits = {"in_a_row": 10_000, "requests": 10_000}
    async with moving(refusal, failover="10 %", halt=limits) as now:
        answers = [await now.asks(f"conversation {n}") for n in range(60)]
        counters = now.gateway.tap.counters
    served = sum(body(one) == b"baseline" for one in answers)
    assert served == counters["failed_over"] == 20  # what is always allowed; 10 % of 60 is less
    assert sum(one.startswith(b"HTTP/1.1 503") for one in answers) == counters["not_failed_over"] == 40


@pytest.mark.parametrize(
    "request_",
    [
        chat(store=True),
        chat(previous_response_id="resp_1"),
        ask("POST", "/v1/chat/completions", b"not JSON"),
        ask("POST", "/v1/embeddings", b"{}"),
        ask("GET", "/v1/models"),
    ],
    ids=["to be stored", "stateful", "not JSON", "another path", "another method"],
)
async def test_what_leans_on_the_baseline_stays_there(request_: bytes) -> None:
    async with moving(THEIRS) as now:
        asked = request_.replace(b"Host:", b"Connection: close\r\nHost:", 1)
        assert body(await once(now.port, asked)) == b"baseline"
    assert not now.new.requests


async def test_a_client_that_leaves_is_no_failure_of_the_candidate() -> None:
    async with moving(hangs, halt={"in_a_row": 1}) as now:
        async with client(now.port) as peer:
            await peer.send(chat())
            await until(lambda: now.new.requests)
        await until(lambda: now.gateway.tap.counters["client_left"] == 1)
        await until(lambda: now.gateway.at_candidate == 0)
    assert not now.halts
