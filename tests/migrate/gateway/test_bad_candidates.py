"""Whatever the candidate does, no client of the baseline sees it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from migrate.store import Store
from tests.migrate.gateway.raw import Peer, baseline, chat, client
from tests.migrate.gateway.test_shadow import ANSWER, Command, command

CLIENTS, TURNS = 8, 25
CONFIG = """
baseline: {{kind: vllm, url: 'http://127.0.0.1:{baseline}'}}
candidate: {{kind: vllm, url: 'http://127.0.0.1:{candidate}', timeouts: {{first_byte: 1s, total: 2s}}}}
gateway: {{listen: '127.0.0.1:0', admin: 'localhost:0', grace: 1s}}
shadow: {{percent: 100, max_answer: 64 KiB, repeat_baseline: 50 %, retry: {{attempts: 2}}}}
store: {{url: 'sqlite:///{store}'}}
"""


async def hang(peer: Peer, request: bytes) -> None:
    await peer.left()


async def reset(peer: Peer, request: bytes) -> None:
    peer.reset()
    raise ConnectionError


async def flood(peer: Peer, request: bytes) -> None:
    await peer.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
    while True:
        await peer.send(b"\xff{]garbage\n" * 6000)


async def nonsense(peer: Peer, request: bytes) -> None:
    await peer.send(b"\x00\x01\x02 this is not HTTP\r\n\r\n")


async def one_client(running: Command, number: int) -> int:
    """How many of a client's requests were answered exactly as the baseline answered them."""
    right = 0
    async with client(running.port) as peer:
        for turn in range(TURNS):
            await peer.send(chat(f"{number} {turn}"))
            right += await peer.reader.readexactly(len(ANSWER)) == ANSWER
    return right


@pytest.mark.parametrize(
    "serve", [hang, reset, flood, nonsense, None], ids=["hangs", "resets", "floods", "nonsense", "absent"]
)
async def test_no_client_sees_an_error(serve: object, tmp_path: Path) -> None:
    async with baseline(ANSWER) as backend, baseline(serve if callable(serve) else ANSWER) as candidate:
        path, store = tmp_path / "migrate.yaml", tmp_path / "store.db"
        other = candidate.port if callable(serve) else 9
        path.write_text(CONFIG.format(baseline=backend.port, candidate=other, store=store))
        async with command("shadow", "--config", str(path)) as running:
            clients = (one_client(running, number) for number in range(CLIENTS))
            right = await asyncio.wait_for(asyncio.gather(*clients), 10)
            assert right == [TURNS] * CLIENTS
            running.process.terminate()
            assert await running.ended() == 0
    with Store.open(f"sqlite:///{store}") as recorded:
        counters = recorded.counters(recorded.run().id)
        assert counters["passed"] == counters["mirrored"] == CLIENTS * TURNS
        assert counters["gateway_errors"] == counters["tap_failed"] == 0
