"""What recording costs an application: ``python -m benchmarks.recording [--rounds N] [--strict]``.

The real OpenAI client against ``migrate simulate``, which answers at once, with and without the recording transport, in turn, in
this one run: calls one after the other, whole and streamed with 100 tokens, then 16 asynchronous streams at a time. The time of a
call is its median. Processor time is that of this process with all its threads, also what recording does after the answer;
look at it where the machine has other things to do. The companion process has its own, at the lowest priority.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import logging
import platform
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from statistics import median, quantiles
from typing import Any

import openai

import migrate
from migrate.store import Store

ASK = [{"role": "user", "content": "When does the harbour open, and what does the tide do by then? " * 20}]
TARGET = 1.05
"""Ratio of medians, with and without."""
_CALLS = 20
_AT_ONCE = 16
_AFTERWARDS_S = 0.3
"""Recording hands over a few times a second."""


@dataclass(slots=True)
class Cost:
    """What calls of one client took."""

    seconds: list[float] = field(default_factory=list)
    """Each call, or each bunch of calls at a time."""
    processor: float = 0.0
    calls: int = 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.recording", description=__doc__)
    parser.add_argument(
        "--rounds", type=int, default=20, help=f"of {_CALLS} calls of each kind, with and without"
    )
    parser.add_argument("--strict", action="store_true", help="exit 1 when the target is missed")
    words = parser.parse_args()
    logging.disable(logging.INFO)
    print(
        f"{platform.machine()}, Python {platform.python_version()}, openai {openai.__version__}; milliseconds"
    )
    print(f"{'':22}{'call: without':>14}{'with':>9}{'ratio':>8}{'p95: without':>14}{'with':>9}", end="")
    print(f"{'processor: without':>20}{'with':>9}{'ratio':>8}")
    with tempfile.TemporaryDirectory() as folder, simulated() as url:
        store = f"sqlite:///{folder}/migrate.db"
        ratios = [
            row("whole answer", *one_by_one(whole, url, store, words.rounds)),
            row("streamed, 100 tokens", *one_by_one(streamed, url, store, words.rounds)),
            row(f"{_AT_ONCE} streams at a time", *asyncio.run(at_once(url, store, words.rounds))),
        ]
        complete = finished(store)
    return int(words.strict and (max(ratios) > TARGET or not complete))


@contextlib.contextmanager
def simulated() -> Iterator[str]:
    """``migrate simulate`` in a process of its own."""
    command = [sys.executable, "-m", "migrate", "simulate", "--port", "0", "--tokens", "100"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            found = re.search(r"http://\S+", process.stderr.readline())
            assert found is not None
            yield found[0]
        finally:
            process.terminate()


def clients(kind: Any, url: str, store: str) -> tuple[Any, Any]:
    """One without and one with."""
    words = {"base_url": f"{url}/v1", "api_key": "none", "max_retries": 0}
    return kind(**words), migrate.record(kind(**words), store)


def whole(client: Any) -> None:
    assert client.chat.completions.create(model="m", messages=ASK).choices


def streamed(client: Any) -> None:
    assert sum(1 for _ in client.chat.completions.create(model="m", messages=ASK, stream=True)) > 50


def one_by_one(call: Callable[[Any], None], url: str, store: str, rounds: int) -> tuple[Cost, Cost]:
    """Rounds of calls without and with, in turn; the first round only warms up."""
    costs = Cost(), Cost()
    without, with_ = clients(openai.OpenAI, url, store)
    with without, with_:
        for number in range(rounds + 1):
            for client, cost in zip((without, with_), costs, strict=True):
                one = Cost()
                began = time.process_time()
                for _ in range(_CALLS):
                    start = time.perf_counter()
                    call(client)
                    one.seconds.append(time.perf_counter() - start)
                time.sleep(_AFTERWARDS_S)
                add(cost, one.seconds, time.process_time() - began, _CALLS, counts=number > 0)
    return costs


async def at_once(url: str, store: str, rounds: int) -> tuple[Cost, Cost]:
    """The same with streams at a time; the time is that of all together."""
    costs = Cost(), Cost()
    without, with_ = clients(openai.AsyncOpenAI, url, store)

    async def one(client: Any) -> None:
        stream = await client.chat.completions.create(model="m", messages=ASK, stream=True)
        assert len([part async for part in stream]) > 50

    async with without, with_:
        for number in range(rounds + 1):
            for client, cost in zip((without, with_), costs, strict=True):
                began, start = time.process_time(), time.perf_counter()
                await asyncio.gather(*(one(client) for _ in range(_AT_ONCE)))
                took = time.perf_counter() - start
                await asyncio.sleep(_AFTERWARDS_S)
                add(cost, [took], time.process_time() - began, _AT_ONCE, counts=number > 0)
    return costs


def add(cost: Cost, seconds: list[float], processor: float, calls: int, *, counts: bool) -> None:
    if counts:
        cost.seconds += seconds
        cost.processor += processor
        cost.calls += calls


def row(name: str, without: Cost, with_: Cost) -> float:
    """Prints one line. Returns the ratio of the medians."""
    before, after = (median(cost.seconds) * 1e3 for cost in (without, with_))
    slow = [quantiles(cost.seconds, n=20)[-1] * 1e3 for cost in (without, with_)]
    busy = [cost.processor / cost.calls * 1e3 for cost in (without, with_)]
    print(f"{name:22}{before:14.3f}{after:9.3f}{after / before:8.3f}{slow[0]:14.3f}{slow[1]:9.3f}", end="")
    print(f"{busy[0]:20.3f}{busy[1]:9.3f}{busy[1] / busy[0]:8.3f}", flush=True)
    return after / before


def finished(store: str) -> bool:
    """Says whether everything was stored."""
    stopped = migrate.stop_recording(60)
    with Store.open(store) as opened:
        run = opened.run().id
        passed, kept = opened.counters(run)["passed"], opened.count(run)
    print(f"{passed:,} calls recorded, {kept:,} stored" + ("" if stopped else "; not all in time"))
    return stopped and passed == kept


if __name__ == "__main__":
    sys.exit(main())
