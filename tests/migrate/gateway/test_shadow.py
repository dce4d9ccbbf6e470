"""The command as its user runs it: a process of its own, its real mirror beside it, signals from outside."""

from __future__ import annotations

import asyncio
import contextlib
import re
import signal
import socket
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

import orjson
import pytest

from migrate.shadow import _address, _bound, _everywhere
from migrate.store import Store
from tests.migrate.gateway.raw import Peer, ask, baseline, chat, client, once, until

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"


def written(
    folder: Path, port: int, *, candidate: bool = True, listen: str = "127.0.0.1:0", store: str = ""
) -> Path:
    path = folder / "migrate.yaml"
    second = "candidate: {kind: vllm, url: 'http://127.0.0.1:7'}" if candidate else ""
    path.write_text(
        f"""
baseline: {{kind: vllm, url: 'http://127.0.0.1:{port}'}}
{second}
gateway: {{listen: '{listen}', admin: 'localhost:0', grace: 5s}}
shadow: {{percent: 100, repeat_baseline: 0}}
store: {{url: 'sqlite:///{store or folder / "store.db"}'}}
"""
    )
    return path


@dataclass(kw_only=True)
class Command:
    """A running command, what it printed, and where it listens."""

    process: Process
    lines: list[str]
    port: int = 0
    admin: int = 0
    stop_reading: Callable[[], object] | None = None

    async def ended(self) -> int:
        code = await asyncio.wait_for(self.process.wait(), 20)
        await until(lambda: self.process.stderr is None or self.process.stderr.at_eof())
        return code


@contextlib.asynccontextmanager
async def command(*words: str, wait: bool = True) -> AsyncIterator[Command]:
    process = await asyncio.create_subprocess_exec(sys.executable, "-m", "migrate", *words, stderr=PIPE)
    running = Command(process=process, lines=[])

    async def read() -> None:
        assert process.stderr is not None
        while line := await process.stderr.readline():
            running.lines.append(line.decode().rstrip())

    reading = asyncio.create_task(read())
    running.stop_reading = reading.cancel
    try:
        if wait:
            await asyncio.wait_for(_listening(running), 20)
        yield running
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
        await asyncio.gather(reading, return_exceptions=True)


async def _listening(running: Command) -> None:
    while not any("/status" in line for line in running.lines):
        assert running.process.returncode is None, running.lines
        await asyncio.sleep(0.02)
    text = "\n".join(running.lines)
    running.port, running.admin = (
        int(re.findall(pattern, text)[0])
        for pattern in (r"gateway on http://.*?:(\d+)", r"http://\S*?:(\d+)/status")
    )


async def test_it_passes_mirrors_records_and_ends_in_order(tmp_path: Path) -> None:
    more = asyncio.Event()

    async def serve(peer: Peer, request: bytes) -> None:
        if b"slow" not in request:
            await peer.send(ANSWER)
            return
        await peer.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n")
        await more.wait()
        await peer.send(b"1\r\nb\r\n0\r\n\r\n")

    async with baseline(serve) as backend:
        path = written(tmp_path, backend.port)
        async with command("shadow", "--config", str(path)) as running, client(running.port) as peer:
            for n in range(5):
                await peer.send(chat(f"question {n}"))
                assert await peer.reader.readexactly(len(ANSWER)) == ANSWER
            async with client(running.port) as streaming:
                await streaming.send(chat("slow", stream=True))
                assert await streaming.until(b"a\r\n")
                await asyncio.sleep(0.05)
                status = await once(
                    running.admin, b"GET /status HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
                )
                document = orjson.loads(status.partition(b"\r\n\r\n")[2])
                assert document["counters"]["passed"] == document["counters"]["mirrored"] == 6
                assert document["open_requests"] == 1 and document["mirror"]["up"] is True
                running.process.terminate()
                await until(lambda: any("stopping: 1 open" in line for line in running.lines))
                with pytest.raises(ConnectionRefusedError):
                    await asyncio.open_connection("127.0.0.1", running.port)
                more.set()
                assert await streaming.until(b"0\r\n\r\n") == b"1\r\nb\r\n0\r\n\r\n"
            assert await running.ended() == 0
    with Store.open(f"sqlite:///{tmp_path / 'store.db'}") as store:
        run = store.run()
        assert run.id == document["run"]
        counters = store.counters(run.id)
        assert counters["passed"] == 6 and counters["mirror_ppm"] == 1_000_000
        exchanges = list(store.exchanges(run.id))
        assert len(exchanges) == 6
        assert all(one.baseline is not None and one.baseline.status == 200 for one in exchanges)
    assert b"sk-secret" not in b"".join(file.read_bytes() for file in tmp_path.glob("store.db*"))


async def test_what_changes_is_said_once_and_with_its_time(tmp_path: Path) -> None:
    async with baseline(ANSWER) as backend:
        path = written(tmp_path, backend.port)
        path.write_text(path.read_text() + "policy: {circuit_breaker: {failures: 2, recovery: 3s}}\n")

        async def say(what: str) -> None:
            async with asyncio.timeout(20):
                while not any(what in line for line in running.lines):
                    await asyncio.sleep(0.02)

        async def post(path: str) -> None:
            await once(
                running.admin,
                f"POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode(),
            )

        async with command("shadow", "--config", str(path)) as running, client(running.port) as peer:

            async def send() -> None:
                await peer.send(chat("question"))
                await peer.reader.readexactly(len(ANSWER))

            for _ in range(6):
                await send()
            await say("the circuit breaker opens: ")
            await asyncio.sleep(3)
            await send()
            await say("the circuit breaker probes: ")
            await post("/mirroring/stop")
            await say("mirroring is stopped by hand")
            await post("/mirroring/start")
            await say("mirroring is started by hand")
            running.process.terminate()
            assert await running.ended() == 0
    assert all(re.match(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ \S", line) for line in running.lines)
    for what in ("breaker opens", "breaker probes", "stopped by hand", "started by hand"):
        assert sum(what in line for line in running.lines) == 1, running.lines


async def test_a_second_ctrl_c_ends_at_once(tmp_path: Path) -> None:
    async def serve(peer: Peer, request: bytes) -> None:
        await peer.left()

    async with baseline(serve) as backend:
        path = written(tmp_path, backend.port, candidate=False)
        async with command("capture", "--config", str(path)) as running, client(running.port) as peer:
            await peer.send(chat())
            await until(lambda: backend.requests)
            running.process.send_signal(signal.SIGINT)
            await until(lambda: any("stopping" in line for line in running.lines))
            start = monotonic()
            running.process.send_signal(signal.SIGINT)
            assert await running.process.wait() == 130
            assert monotonic() - start < 1


async def test_it_ends_by_itself_after_its_duration_and_quiet_says_nothing(tmp_path: Path) -> None:
    async with baseline(ANSWER) as backend:
        path = written(tmp_path, backend.port, candidate=False)
        words = ("capture", "--config", str(path), "--duration", "1s", "--quiet", "--percent", "0.5")
        async with command(*words, wait=False) as running:
            assert await running.ended() == 0
            assert running.lines == []


async def test_a_baseline_that_is_not_there_is_a_warning(tmp_path: Path) -> None:
    path = written(tmp_path, 9, candidate=False)
    async with command("capture", "--config", str(path)) as running:
        await until(
            lambda: any("Z warning: baseline http://127.0.0.1:9 refused" in line for line in running.lines)
        )
        ready = await once(running.admin, ask("GET", "/readyz", b"", "Connection: close"))
        assert ready.startswith(b"HTTP/1.1 503")
        running.process.send_signal(signal.SIGINT)
        assert await running.ended() == 130


@pytest.mark.parametrize(
    ("listen", "opened", "everywhere"),
    [("0.0.0.0", "127.0.0.1:{}", True), ("::", "[::1]:{}", True), ("127.0.0.1", "127.0.0.1:{}", False)],
)
def test_the_address_that_is_said_can_be_opened(listen: str, opened: str, everywhere: bool) -> None:
    with _bound(f"[{listen}]:0" if ":" in listen else f"{listen}:0", "gateway.listen") as plug:
        assert _address(plug) == opened.format(plug.getsockname()[1])
        assert _everywhere(plug) is everywhere


async def refused(*words: str) -> tuple[int, list[str]]:
    async with command(*words, wait=False) as running:
        return await running.ended(), running.lines


async def test_a_port_in_use_is_one_line_and_no_run_begins(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        code, lines = await refused("shadow", "--config", str(written(tmp_path, 9, listen=address)))
    assert (code, len(lines)) == (2, 1)
    assert f"gateway.listen: {address} is in use" in lines[0]
    assert not (tmp_path / "store.db").exists()


async def test_a_store_that_cannot_be_opened_stops_it_before_a_client_comes(tmp_path: Path) -> None:
    path = written(tmp_path, 9, store=str(tmp_path / "missing" / "store.db"))
    code, lines = await refused("shadow", "--config", str(path))
    assert code in (1, 2) and len(lines) == 1
    assert lines[0].startswith("migrate: ") and "store.db" in lines[0]


async def test_shadow_without_a_candidate_points_to_capture(tmp_path: Path) -> None:
    code, lines = await refused("shadow", "--config", str(written(tmp_path, 9, candidate=False)))
    assert (code, len(lines)) == (2, 1)
    assert "migrate capture" in lines[0]


@pytest.mark.parametrize("percent", ["101", "-1", "nan", "many"])
async def test_a_percentage_that_is_none_is_refused(tmp_path: Path, percent: str) -> None:
    code, lines = await refused("shadow", "--config", str(written(tmp_path, 9)), f"--percent={percent}")
    assert code == 2
    assert "is not a percentage" in lines[-1]


async def test_a_standard_error_that_nobody_reads_stops_nobody(tmp_path: Path) -> None:
    """Also not a client that fills it, and not the end of a run."""
    more = asyncio.Event()

    async def serve(peer: Peer, request: bytes) -> None:
        if b"slow" not in request:
            await peer.send(ANSWER)
            return
        await peer.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n")
        await more.wait()
        await peer.send(b"0\r\n\r\n")

    async with baseline(serve) as backend:
        path = written(tmp_path, backend.port, candidate=False)
        async with command("capture", "--config", str(path)) as running:
            assert running.stop_reading is not None
            running.stop_reading()
            for _ in range(300):
                got = await once(running.port, b"GET / HTTP/1.1\r\nAuthorization : Bearer sk-secret\r\n\r\n")
                assert got.startswith(b"HTTP/1.") and b" 400 " in got[:20]
            async with client(running.port) as peer:
                await peer.send(chat("slow", stream=True))
                assert await asyncio.wait_for(peer.until(b"a\r\n"), 5)
                running.process.terminate()
                await asyncio.sleep(0.3)
                more.set()
                assert await asyncio.wait_for(peer.until(b"0\r\n\r\n"), 5)
            assert await asyncio.wait_for(running.process.wait(), 20) == 0
    assert not any("sk-secret" in line for line in running.lines)
