"""A canary as it runs: processes, sockets, signals. What kill -9 leaves, and how soon a rollback reaches everybody."""

from __future__ import annotations

import asyncio
import contextlib
import re
import signal
import socket
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from pathlib import Path
from time import monotonic

import pytest

from migrate.canary.shift import Phase
from migrate.store import Store, shifts
from tests.migrate.gateway.raw import Peer, baseline, chat, once

OURS = b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nbaseline"
THEIRS = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\ncandidate"


def written(folder: Path, old: int, new: int, canary: str) -> Path:
    path = folder / "migrate.yaml"
    path.write_text(
        f"""
baseline: {{kind: relay, third_party: false, url: 'http://127.0.0.1:{old}'}}
candidate: {{kind: relay, third_party: false, url: 'http://127.0.0.1:{new}'}}
gateway: {{listen: '127.0.0.1:0', admin: 'localhost:0', grace: 2s}}
canary: {canary}
store: {{url: 'sqlite:///{folder / "store.db"}'}}
"""
    )
    return path


@contextlib.asynccontextmanager
async def gateway(path: Path) -> AsyncIterator[tuple[Process, int]]:
    """A canary's gateway in a process of its own, and its port."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "migrate", "canary", "--config", str(path), "--force", "a test", stderr=PIPE
    )
    lines: list[str] = []

    async def read() -> None:
        assert process.stderr is not None
        while line := await process.stderr.readline():
            lines.append(line.decode())

    reading = asyncio.create_task(read())
    try:
        async with asyncio.timeout(30):
            while not (found := re.findall(r"gateway on http://[^:]+:(\d+)", "".join(lines))):
                assert process.returncode is None, lines
                await asyncio.sleep(0.02)
        yield process, int(found[0])
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
        await asyncio.gather(reading, return_exceptions=True)


async def asked(port: int, text: str) -> bytes:
    request = chat(text).replace(b"Host:", b"Connection: close\r\nHost:", 1)
    return (await once(port, request)).partition(b"\r\n\r\n")[2]


async def moved(port: int, to: bytes) -> float:
    """Seconds until ten conversations in a row are answered by this side alone."""
    start = monotonic()
    async with asyncio.timeout(10):
        while {await asked(port, f"{n}") for n in range(10)} != {to}:
            await asyncio.sleep(0.02)
    return monotonic() - start


def state(folder: Path) -> tuple[Phase, float, list[str]]:
    with Store.open(f"sqlite:///{folder / 'store.db'}") as store:
        now = shifts.latest(store)
        assert now is not None
        rows = shifts.log(store, now.canary)
        assert [row.number for row in rows] == list(range(1, len(rows) + 1))
        return now.phase, now.share, [row.action for row in rows]


@pytest.mark.timeout(90)
async def test_a_rollback_reaches_two_gateways_and_a_killed_one_comes_back_no_higher(tmp_path: Path) -> None:
    async with baseline(OURS) as old, baseline(THEIRS) as new:
        path = written(tmp_path, old.port, new.port, "{steps: [100]}")
        async with gateway(path) as (first, port), gateway(path) as (_, other):
            await moved(port, b"candidate")
            await moved(other, b"candidate")
            rollback = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "migrate",
                "rollback",
                "a test",
                "--store",
                f"sqlite:///{tmp_path / 'store.db'}",
            )
            assert await rollback.wait() == 0
            assert await moved(port, b"baseline") < 3 and await moved(other, b"baseline") < 3
            first.send_signal(signal.SIGKILL)
            await first.wait()
            async with gateway(path) as (_, back):
                assert {await asked(back, f"{n}") for n in range(10)} == {b"baseline"}
    phase, share, actions = state(tmp_path)
    assert (phase, share) == (Phase.ROLLED_BACK, 0.0)
    assert actions == ["start", "join", "rollback", "join"]


@pytest.mark.timeout(90)
async def test_a_candidate_that_dies_is_left_at_once_and_it_is_in_the_log(tmp_path: Path) -> None:
    dead = False

    async def serve(peer: Peer, request: bytes) -> None:
        if dead:
            peer.reset()
        else:
            await peer.send(THEIRS)

    async with baseline(OURS) as old, baseline(serve) as new:
        path = written(tmp_path, old.port, new.port, "{steps: [50, 100], halt: {in_a_row: 3}}")
        async with gateway(path) as (process, port):
            before = {await asked(port, f"{n}") for n in range(20)}
            assert before == {b"baseline", b"candidate"}
            dead = True
            after = [await asked(port, f"{n}") for n in range(40)]
            assert set(after) == {b"baseline"}  # nobody sees that the candidate failed
            requests = len(new.requests)
            assert {await asked(port, f"{n}") for n in range(20)} == {b"baseline"}
            assert len(new.requests) == requests
            async with asyncio.timeout(5):
                while state(tmp_path)[0] is not Phase.ROLLED_BACK:
                    await asyncio.sleep(0.05)
            process.terminate()
            assert await process.wait() == 0
    assert state(tmp_path)[2] == ["start", "rollback"]


@pytest.mark.timeout(90)
async def test_a_gateway_that_starts_again_goes_on_or_with_zero_takes_the_share_away(tmp_path: Path) -> None:
    async with baseline(OURS) as old, baseline(THEIRS) as new:
        path = written(tmp_path, old.port, new.port, "{steps: [100]}")
        with socket.create_server(("127.0.0.1", 0)) as plug:  # who comes back is known by where it listens
            free = plug.getsockname()[1]
        path.write_text(path.read_text().replace("listen: '127.0.0.1:0'", f"listen: '127.0.0.1:{free}'"))
        async with gateway(path) as (_, port):
            await moved(port, b"candidate")
        async with gateway(path) as (_, port):
            assert await asked(port, "hello") == b"candidate"
        path.write_text(path.read_text().replace("{steps: [100]}", "{steps: [100], restart: zero}"))
        async with gateway(path) as (_, port):
            assert await asked(port, "hello") == b"baseline"
    assert state(tmp_path)[1:] == (0.0, ["start", "join", "set"])
