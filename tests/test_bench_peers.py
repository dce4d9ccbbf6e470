"""The yardstick of ``make bench-peers``: its server's own truth, and what counts as late."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import numpy as np
import pytest

from benchmarks import parts
from benchmarks.peers import lateness, truth
from benchmarks.peers_server import ITL, TOKENS, TTFT
from replay.client import Call, Client
from replay.decoding import observe
from replay.exchange import Arm, Observation, Outcome

PATH = "/v1/chat/completions"


@pytest.fixture
def port() -> Iterator[int]:
    with parts.process("benchmarks.peers_server") as number:
        yield number


def test_what_the_server_says_it_wrote_is_what_arrives(port: int) -> None:
    seen = asyncio.run(asked(port))
    (row,) = truth(port)
    assert seen.outcome is Outcome.OK and seen.output_tokens == TOKENS
    assert len(seen.timing.content_times) == TOKENS == len(row) - 1
    assert seen.timing.ttft_s == pytest.approx(row[1] - row[0], abs=0.04)
    assert seen.timing.content_times[-1] == pytest.approx(row[-1] - row[0], abs=0.04)
    assert row[-1] - row[0] >= TTFT + ITL * (TOKENS - 1) - 0.002


def test_truth_is_told_once(port: int) -> None:
    asyncio.run(asked(port))
    assert len(truth(port)) == 1
    assert len(truth(port)) == 0


async def asked(port: int) -> Observation:
    body = b'{"model": "m", "messages": [{"role": "user", "content": "tide?"}], "stream": true}'
    headers = (("content-type", "application/json"),)
    async with Client() as client:
        recording = await client.send(Call(url=f"http://127.0.0.1:{port}{PATH}", headers=headers, body=body))
    return observe(recording, request_id="1", arm=Arm.BASELINE, at=0.0, path=PATH)


def test_a_constant_delay_is_no_lateness() -> None:
    arrived = 100.0 + 0.7 + np.arange(500) / 100
    assert lateness(arrived, 100) == pytest.approx(0.0)


def test_one_late_request_is_late_by_what_it_is_late() -> None:
    arrived = 100.0 + np.arange(500) / 100
    arrived[250] += 0.004
    assert lateness(arrived, 100).max() == pytest.approx(0.004)


def test_the_first_second_is_not_judged() -> None:
    due = np.arange(500) / 100
    arrived = 100.0 + due + np.maximum(0.0, 0.5 - due)
    assert lateness(arrived, 100) == pytest.approx(np.zeros(400))


def test_a_sender_that_falls_behind_gets_later_and_later() -> None:
    arrived = 100.0 + np.arange(1000) / 99
    late = lateness(arrived, 100)
    assert late[-1] == late.max() == pytest.approx(899 * (1 / 99 - 1 / 100))
