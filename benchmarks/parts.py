"""The processes of a measurement: started, watched and ended by the measurement alone."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import re
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CONFIG = """\
baseline: {{kind: vllm, url: 'http://127.0.0.1:{baseline}', model: m}}
candidate: {{kind: vllm, url: 'http://127.0.0.1:{candidate}', model: m, timeouts: {{first_byte: 10s, total: 20s}}}}
gateway: {{listen: '127.0.0.1:0', admin: 'localhost:0', grace: 1s}}
shadow: {{percent: {percent}, repeat_baseline: 10 %}}
store: {{url: 'sqlite:///{store}'}}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gateway:
    """A running ``migrate shadow``."""

    pid: int
    port: int
    admin: int

    def status(self) -> dict[str, Any]:
        """Its status document."""
        with urllib.request.urlopen(f"http://localhost:{self.admin}/status", timeout=10) as answer:
            document: dict[str, Any] = json.load(answer)
        return document

    @contextlib.contextmanager
    def looked_at(self) -> Iterator[None]:
        """What an open live page asks, as often as it does."""
        closed = threading.Event()
        asked = threading.Thread(target=self._look, args=(closed,), daemon=True)
        asked.start()
        try:
            yield
        finally:
            closed.set()
            asked.join(10)

    def _look(self, closed: threading.Event) -> None:
        shown: str | None = None
        for turn in itertools.count():
            self.status()
            if turn % 5 in (0, 2):  # every five seconds, the status every two
                with contextlib.suppress(urllib.error.HTTPError):  # 404: no report yet
                    page = f"http://localhost:{self.admin}/report.html"
                    with urllib.request.urlopen(
                        urllib.request.Request(page, method="HEAD"), timeout=10
                    ) as answer:
                        mark = answer.headers["ETag"]
                    if mark != shown:
                        urllib.request.urlopen(page, timeout=10).read()
                        shown = mark
            if closed.wait(2.0):
                return

    def mirror(self, *, on: bool) -> None:
        """Presses the kill switch."""
        url = f"http://localhost:{self.admin}/mirroring/{'start' if on else 'stop'}"
        urllib.request.urlopen(urllib.request.Request(url, method="POST"), timeout=10).close()

    def settle(self, seconds: float = 10.0) -> None:
        """Waits until the mirror has worked off what the last measurement left it, so that the next is not slowed."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            mirror = self.status()["mirror"]
            if not mirror["in_flight"] and not mirror["repeats_in_flight"] and not mirror["store"]["queued"]:
                return
            time.sleep(0.2)

    def rss(self) -> float:
        """Resident memory of the gateway process in MB."""
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


@contextlib.contextmanager
def process(module: str, *words: str, elsewhere: bool = False) -> Iterator[int]:
    """A part that prints its port first. ``elsewhere``: it stands for another machine, so it only gets processor time that
    nobody here wants."""
    command = [*(("nice", "-n", "19") if elsewhere else ()), sys.executable, "-m", module, *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as part:
        try:
            assert part.stdout is not None
            yield int(part.stdout.readline())
        finally:
            part.kill()


@contextlib.contextmanager
def gateway(folder: Path, *, baseline: int, candidate: int, percent: float) -> Iterator[Gateway]:
    """``migrate shadow`` as its user runs it, with the real mirror and a store in ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "migrate.yaml"
    path.write_text(
        CONFIG.format(baseline=baseline, candidate=candidate, percent=percent, store=folder / "store.db")
    )
    command = [sys.executable, "-m", "migrate", "shadow", "--config", str(path)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as running:
        try:
            started = _started(running)
            yield started
            started.mirror(on=False)  # what a bad candidate still owes is not waited for
        finally:
            running.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                running.communicate(timeout=40)
            running.kill()


def _started(running: subprocess.Popen[str]) -> Gateway:
    assert running.stderr is not None
    text = ""
    while "/status" not in text:
        line = running.stderr.readline()
        if not line:
            raise SystemExit(f"the gateway did not start: {text}")
        text += line
    ports = [
        re.findall(pattern, text)[0]
        for pattern in (r"gateway on http://\S*?:(\d+)", r"http://\S*?:(\d+)/status")
    ]
    return Gateway(pid=running.pid, port=int(ports[0]), admin=int(ports[1]))


def load(kind: str, port: int, count: int, amount: float) -> dict[str, float]:
    """Runs the load generator in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.load", kind, str(port), str(count), str(amount)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    if done.returncode:
        raise SystemExit(f"load failed: {done.stderr.strip().splitlines()[-1]}")
    found: dict[str, float] = json.loads(done.stdout)
    return found
