"""What recording costs an application: ``python -m benchmarks.recording [--calls N] [--strict]``.

The real OpenAI client against ``migrate simulate``, which answers at once, with and without the recording transport: call by
call in turn, in this one run. A streamed answer has 100 tokens. Then 16 asynchronous streams at a time, in alternating rounds.
Medians, and the ratio and difference of medians. Target: a ratio of at most 1.05.
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
from statistics import median, quantiles
from typing import Any

import openai

import migrate
from migrate.store import Store

ASK = [{"role": "user", "content": "When does the harbour open, and what does the tide do by then? " * 20}]
TARGET = 1.05
_AT_ONCE = 16
_ROUNDS = 20


def main() -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.recording", description=__doc__)
    parser.add_argument("--calls", type=int, default=400, help="of each kind, with and without")
    parser.add_argument("--strict", action="store_true", help="exit 1 when the target is missed")
    words = parser.parse_args()
    logging.disable(logging.INFO)
    print(
        f"{platform.machine()}, Python {platform.python_version()}, openai {openai.__version__}; times in milliseconds"
    )
    with tempfile.TemporaryDirectory() as folder, simulated() as url:
        store = f"sqlite:///{folder}/migrate.db"
        plain, recorded = client(openai.OpenAI, url), migrate.record(client(openai.OpenAI, url), store)
        print(f"{'':24}{'without':>9}{'with':>9}{'ratio':>8}{'more':>8}{'p95 without':>13}{'p95 with':>10}")
        with plain, recorded:
            for turn in (recorded, plain):  # the first call starts the companion, and opens connections
                whole(turn)
            time.sleep(2)
            ratios = [
                row("whole answer", *alternating(whole, plain, recorded, words.calls)),
                row("streamed, 100 tokens", *alternating(streamed, plain, recorded, words.calls)),
            ]
        ratios.append(row(f"{_AT_ONCE} streams at a time", *asyncio.run(rounds(url, store))))
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


def client(kind: Any, url: str) -> Any:
    return kind(base_url=f"{url}/v1", api_key="none", max_retries=0)


def whole(one: Any) -> None:
    assert one.chat.completions.create(model="m", messages=ASK).choices


def streamed(one: Any) -> None:
    assert sum(1 for _ in one.chat.completions.create(model="m", messages=ASK, stream=True)) > 50


def alternating(
    call: Callable[[Any], None], plain: Any, recorded: Any, calls: int
) -> tuple[list[float], list[float]]:
    """Seconds of each call without and with, in turn; who is first alternates, too."""
    times: dict[int, list[float]] = {id(plain): [], id(recorded): []}
    for number in range(calls):
        pair = (plain, recorded) if number % 2 else (recorded, plain)
        for one in pair:
            start = time.perf_counter()
            call(one)
            times[id(one)].append(time.perf_counter() - start)
    return times[id(plain)], times[id(recorded)]


async def rounds(url: str, store: str) -> tuple[list[float], list[float]]:
    """Seconds of each round of streams at a time, without and with."""
    times: tuple[list[float], list[float]] = ([], [])
    plain = client(openai.AsyncOpenAI, url)
    recorded = migrate.record(client(openai.AsyncOpenAI, url), store)

    async def one(turn: Any) -> None:
        stream = await turn.chat.completions.create(model="m", messages=ASK, stream=True)
        assert len([part async for part in stream]) > 50

    async with plain, recorded:
        for number in range(2 * (_ROUNDS + 1)):
            turn, kept = ((plain, times[0]), (recorded, times[1]))[number % 2]
            start = time.perf_counter()
            await asyncio.gather(*(one(turn) for _ in range(_AT_ONCE)))
            if number > 1:
                kept.append(time.perf_counter() - start)
    return times


def row(name: str, without: list[float], with_: list[float]) -> float:
    """Prints one line. Returns the ratio of the medians."""
    before, after = median(without) * 1e3, median(with_) * 1e3
    p95 = [quantiles(times, n=20)[-1] * 1e3 for times in (without, with_)]
    print(
        f"{name:24}{before:9.3f}{after:9.3f}{after / before:8.3f}{after - before:8.3f}{p95[0]:13.3f}{p95[1]:10.3f}"
    )
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
