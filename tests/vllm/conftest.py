"""Two real vLLM servers for the whole session, and a gateway in front of the first."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from migrate.store import Store
from replay.exchange import Exchange
from tests.vllm.server import MODEL, ROOT, vllm_servers


@dataclass(frozen=True, slots=True, kw_only=True)
class Shadow:
    """A running ``migrate shadow``."""

    url: str
    admin: str
    store: str

    def exchanges(self, count: int) -> list[Exchange]:
        """What was recorded, once ``count`` exchanges have both arms."""
        deadline = time.monotonic() + 20
        while True:
            with Store.open(self.store) as store:
                found = list(store.exchanges(store.run().id))
            done = [one for one in found if one.baseline and one.candidate]
            if len(done) >= count or time.monotonic() > deadline:
                return done
            time.sleep(0.2)


@pytest.fixture(scope="session")
def vllm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    with vllm_servers(2, tmp_path_factory.mktemp("vllm")) as urls:
        yield urls


@pytest.fixture
def shadow(vllm: list[str], tmp_path: Path) -> Iterator[Shadow]:
    with shadowing(tmp_path, baseline=vllm[0], candidate=vllm[1]) as running:
        yield running


@contextmanager
def shadowing(
    folder: Path, *, baseline: str, candidate: str, repeat: str = "100 %", policy: str = ""
) -> Iterator[Shadow]:
    """``migrate shadow`` as a real process that mirrors everything; it has to end with 0 on SIGTERM."""
    port, admin = _free_port(), _free_port()
    store = f"sqlite:///{folder}/m.db"
    config = folder / "migrate.yaml"
    config.write_text(
        f"baseline: {{kind: vllm, url: '{baseline}', model: {MODEL}}}\n"
        f"candidate: {{kind: vllm, url: '{candidate}', model: {MODEL}}}\n"
        f"gateway: {{listen: '127.0.0.1:{port}', admin: '127.0.0.1:{admin}'}}\n"
        f"shadow: {{percent: 100, repeat_baseline: {repeat}}}\nstore: {{url: '{store}'}}\n"
        f"{policy}"
    )
    command = [sys.executable, "-m", "migrate", "shadow", "--config", str(config)]
    with (folder / "shadow.log").open("w") as log:
        process = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log)
    try:
        _ready(f"http://127.0.0.1:{admin}/readyz", process, folder / "shadow.log")
        yield Shadow(url=f"http://127.0.0.1:{port}", admin=f"http://127.0.0.1:{admin}", store=store)
    finally:
        process.send_signal(signal.SIGTERM)
        code = process.wait(timeout=60)
    assert code == 0, (folder / "shadow.log").read_text()


@contextmanager
def simulator() -> Iterator[str]:
    """``migrate simulate`` as a real process that answers for the tiny model."""
    port = _free_port()
    command = [sys.executable, "-m", "migrate", "simulate", "--port", str(port), "--model", MODEL]
    process = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None and str(port) in process.stderr.readline()
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.communicate(timeout=20)


def _ready(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(300):
        assert process.poll() is None, log.read_text()
        try:
            with urllib.request.urlopen(url, timeout=2) as answer:
                assert json.load(answer)
                return
        except OSError:
            time.sleep(0.1)
    raise AssertionError(log.read_text())


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as sock:
        port: int = sock.getsockname()[1]
        return port
