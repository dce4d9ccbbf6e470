"""``migrate replay`` side by side with guidellm and aiperf: who sends when it should, and who measures what happened.

``python -m benchmarks.peers [--seconds 8] [--only NAME] [--strict]``. Same server, same workload: constant arrivals, one short
prompt each, 20 tokens streamed. The server (``benchmarks.peers_server``) has a core of its own and notes when each request
arrived and when each token was written; the tool, with everything it starts, has another.

A tool climbs its ladder of rates until it loses its schedule twice at one rate, and is then overloaded once. It *keeps its
schedule* when every request is answered, the achieved rate is at least 99.5 % of the asked, and p99 of lateness is at most
10 ms. Lateness is arrival at the server minus the moment on the schedule, relative to the least late request, so that nobody
pays for starting up; the first second is left out for all. Beside it: TTFT and ITL as the tool reports them and as the server
knows them (first token written minus request arrived; gaps between tokens, or their average a request where the tool reports
only that).
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import shutil
import tempfile
import urllib.request
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path

import numpy as np

from benchmarks import parts
from benchmarks.peers_server import ITL, TOKENS, TTFT
from benchmarks.peers_tools import ROOT, TOOLS, Times, Tool, ToolFailed

RATE_SHARE = 0.995
LATE_P99 = 0.010
START = 1.0
"""Seconds at the beginning that are not judged."""
TRIES = 2
"""Another process that wakes up amid a run must not decide."""
AT_LEAST = 5
"""Times the highest rate of each peer."""
TRUE_WITHIN = 0.001
OUTPUT = Path("bench-output/peers.json")


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """A latency in seconds as the tool said it and as it was; ``None`` when the tool said nothing."""

    said_p50: float | None
    true_p50: float
    said_p99: float | None
    true_p99: float

    @property
    def apart(self) -> float:
        """Seconds between the two medians."""
        return float("inf") if self.said_p50 is None else abs(self.said_p50 - self.true_p50)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One tool at one rate, as the server saw it; durations in seconds."""

    tool: str
    rate: int
    asked: int
    answered: int
    achieved: float
    late_p50: float
    late_p99: float
    late_max: float
    kept: bool
    ttft: Agreement
    itl: Agreement
    server_late_p99: float
    """By how much the server's own tokens left after their moment: large means that this machine was disturbed."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.peers", description=__doc__)
    parser.add_argument("--seconds", type=float, default=8.0, help="of schedule at each rate (default 8)")
    parser.add_argument("--only", choices=[tool.name for tool in TOOLS], action="append")
    parser.add_argument("--strict", action="store_true", help="exit 1 when a target is missed")
    words = parser.parse_args()
    client, server = two_cores()
    print(
        f"{platform.machine()}, Python {platform.python_version()}, the server and the tool with one core each"
    )
    runs: list[Run] = []
    with on_core(server), parts.process("benchmarks.peers_server") as port, on_core(client):
        print(f"\n{_HEAD}")
        for tool in TOOLS:
            if not words.only or tool.name in words.only:
                runs += climbed(tool, port, words.seconds)
    kept = verdicts(runs)
    OUTPUT.parent.mkdir(exist_ok=True)
    OUTPUT.write_text(json.dumps({"versions": versions(), "runs": [asdict(run) for run in runs]}, indent=1))
    print(f"\neverything is in {OUTPUT}")
    return int(words.strict and not all(kept))


def two_cores() -> tuple[int, int]:
    """A core for the tool and one for the server."""
    if not hasattr(os, "sched_getaffinity"):
        raise SystemExit("this bench pins processes to cores, which needs Linux")
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        raise SystemExit("this bench needs two cores: one for the server, one for the tool")
    return cores[0], cores[1]


@contextlib.contextmanager
def on_core(core: int) -> Iterator[None]:
    """What is started within stays on this core."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def climbed(tool: Tool, port: int, seconds: float) -> Iterator[Run]:
    """The tool at rising rates up to the first at which no try keeps the schedule, then at twice the last that it kept: what
    does it say when it is overloaded?"""
    kept = 0
    for rate in tool.rates:
        runs = tried(tool, port, rate, seconds, TRIES)
        yield from runs
        if not any(run.kept for run in runs):
            break
        kept = rate
    if kept:
        yield from tried(tool, port, 2 * kept, seconds, 1)


def tried(tool: Tool, port: int, rate: int, seconds: float, tries: int) -> list[Run]:
    """One rate, up to ``tries`` times until the schedule is kept. Prints as it goes; a run that failed is only told."""
    runs: list[Run] = []
    for _ in range(tries):
        try:
            run = measured(tool, port, rate, round(rate * (seconds + START)))
        except ToolFailed as failed:
            print(f"{tool.name:15}{rate:>7}  {failed}", flush=True)
            continue
        print(_row(run), flush=True)
        runs.append(run)
        if run.kept:
            break
    return runs


def measured(tool: Tool, port: int, rate: int, count: int) -> Run:
    folder = Path(tempfile.mkdtemp(prefix="peers-"))
    truth(port)
    said = tool.run(folder, port, rate, count)
    seen = truth(port)
    shutil.rmtree(folder)
    if not len(seen):
        raise ToolFailed("no request was answered")
    arrived, tokens = seen[:, 0], seen[:, 1:]
    late = lateness(arrived, rate)
    achieved = (len(late) - 1) / float(np.ptp(arrived[-len(late) :]))
    gaps = np.diff(tokens, axis=1)
    due = arrived[:, None] + TTFT + ITL * np.arange(TOKENS)
    return Run(
        tool=tool.name,
        rate=rate,
        asked=count,
        answered=len(seen),
        achieved=achieved,
        late_p50=quantile(late, 50),
        late_p99=quantile(late, 99),
        late_max=quantile(late, 100),
        kept=len(seen) == count and achieved >= RATE_SHARE * rate and quantile(late, 99) <= LATE_P99,
        ttft=agreement(said.ttft, tokens[:, 0] - arrived),
        itl=agreement(said.itl, gaps.mean(axis=1) if tool.itl_is_mean else gaps.ravel()),
        server_late_p99=quantile((tokens - due).ravel(), 99),
    )


def truth(port: int) -> Times:
    """A row for each finished stream since the last call, by arrival: arrived, then the moment of each token."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/truth", timeout=60) as answer:
        rows = sorted(json.load(answer))
    return np.array(rows, dtype=np.float64).reshape(-1, 1 + TOKENS)


def lateness(arrived: Times, rate: int) -> Times:
    """Seconds after its moment that each request arrived, relative to the least late; the first second is left out.

    The n-th to arrive is held against the n-th moment, whichever request it was.
    """
    due = np.arange(len(arrived)) / rate
    late = (arrived - due)[due >= START]
    relative: Times = late - late.min()
    return relative


def agreement(said: Times, true: Times) -> Agreement:
    p50, p99 = (quantile(said, 50), quantile(said, 99)) if len(said) else (None, None)
    return Agreement(said_p50=p50, true_p50=quantile(true, 50), said_p99=p99, true_p99=quantile(true, 99))


def quantile(values: Times, percent: float) -> float:
    return float(np.percentile(values, percent))


def highest(runs: list[Run], tool: str) -> int | None:
    """The highest rate at which a tool kept its schedule; ``None`` when it never did or was not run."""
    return max((run.rate for run in runs if run.tool == tool and run.kept), default=None)


def verdicts(runs: list[Run]) -> list[bool]:
    """The two promises, said and kept or not."""
    print()
    *peers, us = (tool.name for tool in TOOLS)
    ours = highest(runs, us)
    kept = []
    for peer in peers:
        theirs = highest(runs, peer)
        if ours is None or theirs is None:
            print(f"NOT COMPARED  {us} {ours}/s, {peer} {theirs}/s")
            kept.append(False)
        else:
            kept.append(_told(ours >= AT_LEAST * theirs, _times(us, ours, peer, theirs)))
    for name in (*peers, us):
        on, off = (
            [run for run in runs if run.tool == name and run.kept is kept_it] for kept_it in (True, False)
        )
        for latency in ("ttft", "itl") if on else ():
            worst, lost = (_worst(some, latency) for some in (on, off))
            text = (
                f"{name}: median {latency.upper()} at worst {worst * 1e3:.2f} ms from the truth on schedule"
            )
            text += f", {lost * 1e3:.2f} ms where the schedule is lost" if off else ""
            if name == us:
                kept.append(
                    _told(worst <= TRUE_WITHIN, f"{text} (at most {TRUE_WITHIN * 1e3:g} on schedule)")
                )
            else:
                print(f"        {text}")
    return kept


def versions() -> dict[str, str]:
    """What was compared."""
    locks = {name: (ROOT / f"benchmarks/peers-{name}.lock").read_text() for name in ("guidellm", "aiperf")}
    pinned = {name: text.split(f"\n{name}==", 1)[-1].split("\n", 1)[0] for name, text in locks.items()}
    return pinned | {"migrate": version("llm-migrate"), "python": platform.python_version()}


def _times(us: str, ours: int, peer: str, theirs: int) -> str:
    return f"{us} keeps {ours}/s, {ours / theirs:.1f} times the {theirs}/s of {peer} (at least {AT_LEAST})"


def _worst(runs: list[Run], latency: str) -> float:
    found: list[Agreement] = [getattr(run, latency) for run in runs]
    return max((one.apart for one in found), default=0.0)


def _told(good: bool, text: str) -> bool:
    print(f"{'ok    ' if good else 'MISSED'}  {text}")
    return good


_HEAD = (
    f"{'':15}{'asked':>7}{'achieved':>10}{'late p50':>10}{'p99':>9}{'max':>9}{'kept':>6}"
    f"{'TTFT p50 said/true':>22}{'p99 said/true':>18}{'ITL p50 said/true':>20}{'p99 said/true':>16}{'server':>8}   ms, requests/s"
)


def _row(run: Run) -> str:
    late = "".join(
        f"{value * 1e3:>{width}.1f}"
        for value, width in ((run.late_p50, 10), (run.late_p99, 9), (run.late_max, 9))
    )
    pairs = (
        (run.ttft.said_p50, run.ttft.true_p50, 22),
        (run.ttft.said_p99, run.ttft.true_p99, 18),
        (run.itl.said_p50, run.itl.true_p50, 20),
        (run.itl.said_p99, run.itl.true_p99, 16),
    )
    told = "".join(f"{_ms(said)}/{_ms(true)}".rjust(width) for said, true, width in pairs)
    start = f"{run.tool:15}{run.rate:>7}{run.achieved:>10.1f}{late}{'yes' if run.kept else 'no':>6}"
    return f"{start}{told}{run.server_late_p99 * 1e3:>8.1f}"


def _ms(value: float | None) -> str:
    return "-" if value is None else f"{value * 1e3:.1f}"


if __name__ == "__main__":
    raise SystemExit(main())
