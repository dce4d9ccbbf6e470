"""Whether a replay sends when it should and times what it gets: ``python -m benchmarks.fidelity [--rounds 3] [--strict]``.

``migrate replay`` as its user runs it, everything recorded and stored, on the cores that the server
(``benchmarks.peers_server``) and everything else share. The server notes when each request arrived and when each token was
written, on the same clock. Send error: from a request's moment to its hand-over to the socket, a new connection's time
included. Arrivals: how late each request reached the server on the same schedule, relative to the least late. Chunk error: how
much later than the server wrote it a token was timed, both counted from the start of their request. Every figure is the
median of the rounds. ``busy``: two processes that do nothing but turn keep both cores at work all the while.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from statistics import median

import numpy as np
import numpy.typing as npt

from benchmarks import parts
from migrate.store import Store
from replay import schedule
from replay.exchange import Observation

Times = npt.NDArray[np.float64]
_CONFIG = """\
baseline: {{kind: vllm, url: 'http://127.0.0.1:{port}', model: m}}
store: {{url: 'sqlite:///{folder}/store.db'}}
"""
_TURN = "import os\nparent = os.getppid()\nwhile os.getppid() == parent: pass"
"""Ends with whom it was started by, however that one ended."""
_STREAMS, _TOKENS, _ITL = 1_000, 240, 0.05
_OPENING_S = 5.0
"""Seconds in which the streams are opened; all are open from then until the first ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """One replay: what was stored, in the order of leaving, and what the server knows, in the order of arrival."""

    seen: list[Observation]
    arrived: Times
    written: Times
    counters: dict[str, int]

    @property
    def lag(self) -> Times:
        """Seconds from its moment to the socket, for each request."""
        return np.array([one.timing.lag_s for one in self.seen])


def main() -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.fidelity", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=15.0, help="of schedule at each rate (default 15)")
    parser.add_argument("--strict", action="store_true", help="exit 1 when a target is missed")
    words = parser.parse_args()
    print(
        f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, load {os.getloadavg()[0]:.1f}"
    )
    kept: list[bool] = []
    for busy in (False, True):
        with turning(2 if busy else 0):
            when = "both cores busy" if busy else "nothing else"
            for rate in (500, 1_000):
                found = [sent(rate, words.seconds) for _ in range(words.rounds)]
                kept += told(f"{rate:,}/s, {when}", found, {} if busy and rate == 500 else _SEND[busy])
            found = [streamed() for _ in range(words.rounds)]
            kept += told(f"{_STREAMS:,} streams of {1 / _ITL:.0f} tokens/s, {when}", found, _CHUNKS[busy])
    kept += told("50/s for 60 s, a freeze of 5 s", [frozen()], {})
    print(f"\n{sum(kept)} of {len(kept)} targets kept")
    return int(words.strict and not all(kept))


_SEND: dict[bool, dict[str, float]] = {
    False: {"send error p50": 0.5, "send error p99": 3.0},
    True: {"send error p99": 6.0},
}
_CHUNKS: dict[bool, dict[str, float]] = {False: {"chunk error p99": 10.0}, True: {"chunk error p99": 20.0}}
"""Milliseconds, at most."""


def told(title: str, found: list[dict[str, float]], targets: dict[str, float]) -> list[bool]:
    """Prints the medians of the rounds; whether each target was kept."""
    middle = {name: median(one[name] for one in found) for name in found[0]}
    print(f"\n{title}")
    kept = []
    for name, value in middle.items():
        most = targets.get(name)
        mark = "" if most is None else f"   at most {most:g}: {'kept' if value <= most else 'MISSED'}"
        kept += [] if most is None else [value <= most]
        each = ", ".join(f"{one[name]:,.2f}" for one in found)
        print(f"  {name:24}{value:>12,.2f}   ({each}){mark}", flush=True)
    return kept


def sent(rate: int, seconds: float) -> dict[str, float]:
    """A Poisson schedule; milliseconds."""
    count = round(rate * seconds)
    with parts.process("benchmarks.peers_server") as port:
        played = replayed(port, count, ["--rate", str(rate)])
    due = np.array(list(islice(schedule.steady(rate), count)))
    late = np.sort(played.arrived) - due[: len(played.arrived)]
    return {
        "send error p50": _ms(played.lag, 0.5),
        "send error p99": _ms(played.lag, 0.99),
        "arrivals p50": _ms(late - late.min(), 0.5),
        "arrivals p99": _ms(late - late.min(), 0.99),
        "answered %": 100 * len(played.seen) / count,
        "sender, % of a core": played.counters["replay_cpu_permille"] / 10,
    }


def streamed() -> dict[str, float]:
    """Many streams open at once; milliseconds."""
    with parts.process("benchmarks.peers_server", str(_TOKENS), str(_ITL)) as port:
        words = ["--rate", str(_STREAMS / _OPENING_S), "--burstiness", "0"]
        played = replayed(port, _STREAMS, words)
    error = []
    for one, arrived, written in zip(played.seen, played.arrived, played.written, strict=True):
        timed = np.array(one.timing.content_times)
        true = (written - arrived)[: len(timed)]
        if len(timed) == len(true):  # tokens that were read in one go are one chunk
            error.append(np.abs(timed - true))
    first_end, last_start = (
        (played.arrived + (played.written[:, -1] - played.arrived)).min(),
        played.arrived.max(),
    )
    every = np.concatenate(error)
    return {
        "chunk error p50": _ms(every, 0.5),
        "chunk error p99": _ms(every, 0.99),
        "all open for, s": float(first_end - last_start),
        "chunks timed %": 100 * every.size / (_STREAMS * _TOKENS),
        "sender, % of a core": played.counters["replay_cpu_permille"] / 10,
    }


def frozen() -> dict[str, float]:
    """A server that stands still once: what an open loop sees, in milliseconds."""
    with parts.process("benchmarks.peers_server") as port, _later(20.0, lambda: _freeze(port, 5.0)):
        played = replayed(port, 3_000, ["--rate", "50", "--burstiness", "0"])
    e2e = np.array([one.timing.e2e_s for one in played.seen])
    return {
        "end to end p50": _ms(e2e, 0.5),
        "end to end p99": _ms(e2e, 0.99),
        "end to end max": _ms(e2e, 1.0),
    }


def replayed(port: int, count: int, words: list[str]) -> Played:
    """Import and replay in a new store."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "migrate.yaml").write_text(_CONFIG.format(port=port, folder=folder))
        with Path(folder, "requests.jsonl").open("w") as out:
            for number in range(count):
                ask = [{"role": "user", "content": f"{number}: when is high tide at the old harbour?"}]
                out.write(json.dumps({"model": "m", "stream": True, "messages": ask}) + "\n")
        for command in (
            ["import", "requests.jsonl", "--quiet"],
            ["replay", "--to", "baseline", "--repeat", "0", *words, "--quiet"],
        ):
            subprocess.run([sys.executable, "-m", "migrate", *command], cwd=folder, check=True)
        with Store.open(f"sqlite:///{folder}/store.db") as store:
            run = store.run().id
            seen = [one.baseline for one in store.exchanges(run) if one.baseline is not None]
            counters = store.counters(run)
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/truth", timeout=60) as answer:
        truth = np.array(json.load(answer), dtype=np.float64)
    truth = truth[np.argsort(truth[:, 0])]
    seen.sort(key=lambda one: one.at + (one.timing.lag_s or 0.0))
    return Played(seen=seen, arrived=truth[:, 0], written=truth[:, 1:], counters=counters)


@contextlib.contextmanager
def turning(count: int) -> Iterator[None]:
    """So many processes that keep a core busy."""
    with contextlib.ExitStack() as stack:
        for _ in range(count):
            process = stack.enter_context(subprocess.Popen([sys.executable, "-c", _TURN]))
            stack.callback(process.kill)
        yield


@contextlib.contextmanager
def _later(seconds: float, act: Callable[[], None]) -> Iterator[None]:
    timer = threading.Timer(seconds, act)
    timer.start()
    try:
        yield
    finally:
        timer.join()


def _freeze(port: int, seconds: float) -> None:
    """Stops the server that listens there, and lets it go on."""
    table = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    inode = next(row[9] for row in table if row[1].endswith(f":{port:04X}") and row[3] == "0A")
    for place in Path("/proc").glob("[0-9]*/fd/*"):
        with contextlib.suppress(OSError):
            if place.readlink() == Path(f"socket:[{inode}]"):
                pid = int(place.parts[2])
                os.kill(pid, signal.SIGSTOP)
                time.sleep(seconds)
                os.kill(pid, signal.SIGCONT)
                return


def _ms(values: Times, share: float) -> float:
    return float(np.quantile(values, share, method="nearest")) * 1e3


if __name__ == "__main__":
    sys.exit(main())
