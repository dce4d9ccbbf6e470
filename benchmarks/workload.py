"""A real workload through the gateway: ``python -m benchmarks.workload [--requests 1000] [--candidate simulator|vllm]``.

Arrival times come from a public trace, prompts from public prompt sets, the baseline is a real vLLM on the CPU with the tiny
model of ``make test-vllm``. Both kinds of data lie outside of the project: ``LLM_MIGRATE_DATA`` names their folder
(``traces/azure_llm_2023_conv.csv``, ``prompts/*.jsonl``). The run ends with ``migrate report``; its exit code is not judged here.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import itertools
import json
import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import aiohttp

from tests.shadowing import MODEL, shadowing
from tests.vllm.server import vllm_servers

ROOT = Path(__file__).parents[1]
DATA = Path(os.environ.get("LLM_MIGRATE_DATA", ROOT.parent / "shared" / "data"))
OUT = ROOT / "bench-output" / "workload"
_WARMUP = "policy:\n  rehearsal: true\n  minimum_span: 60s\n  minimum_pairs: 500\n  warmup: 5s\n"


def main() -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.workload", description=__doc__)
    parser.add_argument("--requests", type=int, default=1_000)
    parser.add_argument(
        "--rate", type=float, default=8.0, help="mean requests a second; the trace is sped up to it"
    )
    parser.add_argument("--candidate", choices=["simulator", "vllm"], default="simulator")
    options = parser.parse_args()
    if not (DATA / "traces").is_dir():
        print(
            f"no data at {DATA}; set LLM_MIGRATE_DATA to a folder with traces/ and prompts/", file=sys.stderr
        )
        return 2
    folder = OUT / options.candidate
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("m.db*"):
        old.unlink()
    with ExitStack() as stack:
        urls = stack.enter_context(vllm_servers(2 if options.candidate == "vllm" else 1, folder))
        candidate = urls[1] if options.candidate == "vllm" else stack.enter_context(simulator(folder))
        shadow = stack.enter_context(shadowing(folder, baseline=urls[0], candidate=candidate, policy=_WARMUP))
        due = list(itertools.islice(arrivals(options.rate), options.requests))
        outcome = asyncio.run(play(shadow.url, due, calls()))
    print(f"clients: {dict(outcome)}; {len(due)} requests over {due[-1]:.0f} s")
    words = [
        "report",
        "--store",
        shadow.store,
        "--format",
        "terminal,html",
        "--output",
        str(folder / "report.html"),
    ]
    return (
        0
        if subprocess.run([sys.executable, "-m", "migrate", *words], check=False).returncode in (0, 3, 4)
        else 1
    )


def arrivals(rate: float) -> Iterator[float]:
    """Seconds after the start at which requests are due: the trace's own bursts and gaps, at ``rate`` in the mean."""
    with (DATA / "traces" / "azure_llm_2023_conv.csv").open() as lines:
        times = [datetime.fromisoformat(row["TIMESTAMP"][:26]).timestamp() for row in csv.DictReader(lines)]
    own = len(times) / (times[-1] - times[0])
    return ((at - times[0]) * own / rate for at in times)


def calls() -> Iterator[dict[str, Any]]:
    """Request bodies without end: chats, arithmetic and tool calls, two thirds of them streamed."""
    chance = random.Random(5)
    texts = [row["turns"][0] for row in rows("mt_bench")] + [
        row["question"] for row in rows("gsm8k_test")[:400]
    ]
    tools = [(row["question"][0], [_tool(f) for f in row["function"]]) for row in rows("bfcl_live_simple")]
    for number in itertools.count():
        body: dict[str, Any] = {
            "model": MODEL,
            "temperature": 0,
            "seed": 1,
            "max_tokens": chance.choice((8, 16, 32)),
        }
        body["user"] = f"visitor-{number // 2}"
        if chance.random() < 0.2:
            messages, offered = chance.choice(tools)
            body |= {"messages": messages, "tools": offered}
        else:
            body["messages"] = [{"role": "user", "content": chance.choice(texts)}]
        if chance.random() < 0.66:
            body |= {"stream": True, "stream_options": {"include_usage": True}}
        yield body


def rows(name: str) -> list[dict[str, Any]]:
    """The rows of a prompt file."""
    with (DATA / "prompts" / f"{name}.jsonl").open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def _tool(function: dict[str, Any]) -> dict[str, Any]:
    """A tool in OpenAI's form; the prompt set writes its types as Python does."""
    text = (
        json.dumps(function)
        .replace('"dict"', '"object"')
        .replace('"float"', '"number"')
        .replace('"tuple"', '"array"')
    )
    return {"type": "function", "function": json.loads(text)}


async def play(url: str, due: list[float], bodies: Iterator[dict[str, Any]]) -> Counter[str]:
    """Sends open loop: each request when it is due, whatever became of those before. Counts what clients saw."""
    outcome: Counter[str] = Counter()
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        start = asyncio.get_running_loop().time()

        async def one(at: float, body: dict[str, Any]) -> None:
            await asyncio.sleep(max(0.0, start + at - asyncio.get_running_loop().time()))
            try:
                async with session.post(f"{url}/v1/chat/completions", json=body) as answer:
                    await answer.read()
                    outcome[str(answer.status)] += 1
            except aiohttp.ClientError as error:
                outcome[type(error).__name__] += 1

        await asyncio.gather(*(one(at, body) for at, body in zip(due, bodies, strict=False)))
    return outcome


@contextmanager
def simulator(folder: Path) -> Iterator[str]:
    """A simulated TensorRT-LLM in a process of its own."""
    words = [
        "simulate",
        "--dialect",
        "tensorrt-llm",
        "--port",
        "0",
        "--ttft",
        "60ms",
        "--itl",
        "10ms",
        "--model",
        MODEL,
    ]
    log = folder / "simulator.log"
    with log.open("w") as out:
        process = subprocess.Popen([sys.executable, "-m", "migrate", *words], stderr=out)
    try:
        while "listening on" not in (text := log.read_text()):
            assert process.poll() is None, text
        yield text.split("listening on ")[1].split()[0]
    finally:
        process.terminate()
        process.wait(timeout=10)


if __name__ == "__main__":
    sys.exit(main())
