"""``migrate shadow`` and ``migrate simulate`` as real processes, beside real servers of the tiny model."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from migrate.store import Store
from replay.exchange import Exchange
from tests.serving import ROOT, free_port

MODEL = "harbor-7b"
"""What the tiny model is served as."""


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


@contextmanager
def shadowing(
    folder: Path,
    *,
    baseline: str,
    candidate: str,
    backend: str = "kind: vllm",
    repeat: str = "100 %",
    policy: str = "",
) -> Iterator[Shadow]:
    """``migrate shadow`` as a real process that mirrors everything; it has to end with 0 on SIGTERM.

    ``backend`` says what both are, as the configuration does: ``kind: vllm``, ``preset: llama-cpp``.
    """
    port, admin = free_port(), free_port()
    store = f"sqlite:///{folder}/m.db"
    config = folder / "migrate.yaml"
    config.write_text(
        f"baseline: {{{backend}, url: '{baseline}', model: {MODEL}}}\n"
        f"candidate: {{{backend}, url: '{candidate}', model: {MODEL}}}\n"
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
    port = free_port()
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
