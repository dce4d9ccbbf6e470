"""What a verdict costs: ``python -m benchmarks.report [--pairs N] [--strict]``.

The pure judgement over two days of pairs, from columns, beside a yardstick: NumPy sorting the six latency columns once, in turns.
Then ``migrate report --format json`` as its user runs it, on a SQLite store of so many pairs whose vectors are in the store's
cache: the first report on the run, which compares every answer, and one more, which has the comparisons too. The first takes
half a millisecond a pair: ``--pairs 20000`` does in half a minute what a million does in a quarter of an hour. Processor time
stands beside wall time, because a machine may have other things to do.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median

import numpy as np

from benchmarks.calibration.generator import START, TIMEOUT_S, Harm, Traffic, made
from benchmarks.importing import _processor_time, _said, _sentence, told
from migrate.embedder import DEFAULT_MODEL, cache_key
from migrate.store import Store, codec, schema
from migrate.store.inserting import insert_new
from migrate.vectors import text_hash
from replay.exchange import (
    Answer,
    Arm,
    Choice,
    ErrorClass,
    Failure,
    Observation,
    Outcome,
    Request,
    Timing,
    Usage,
)
from reports.columns import RATES, Answers, Columns
from reports.compare import compare, resolve
from reports.compare.model import Vectors
from reports.judge import judge_columns
from reports.policy import Policy

HOURS = 48.0
ROUNDS = 5
SIZES = ((86_400, 0.05), (1_000_000, 1.0))
"""Pairs, and the seconds that one judgement may take."""
MOST_S, MOST_MB = 10.0, 500.0
"""For the whole command on a million pairs."""
_AT_ONCE = 5_000
_CHUNKS = 12
"""Of an answer; vLLM under load puts several tokens into one."""
_OUTCOMES = tuple(Outcome)
_CUT_OFF = RATES.index("truncation")
_HEADERS = (("Content-Type", "text/event-stream; charset=utf-8"),)


def main() -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.report", description=__doc__)
    parser.add_argument("--pairs", type=int, default=1_000_000, help="of the store [default: 1000000]")
    parser.add_argument("--strict", action="store_true", help="exit 1 when a target is missed")
    words = parser.parse_args()
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    kept = [judging(size, most) for size, most in SIZES]
    with tempfile.TemporaryDirectory() as name:
        kept.append(reporting(Path(name) / "store.db", words.pairs))
    return int(words.strict and not all(kept))


def run_of(pairs: int) -> Columns:
    """About so many pairs of two days."""
    traffic = Traffic(hours=HOURS, per_minute=pairs / HOURS / 60, steady=True)
    return made(traffic, Harm(), np.random.SeedSequence(1))


def judging(pairs: int, most: float) -> bool:
    """One judgement from columns: the verdict alone, and with all that a report shows of it."""
    table = run_of(pairs)
    taken: dict[str, list[float]] = {"sorting": [], "verdict": [], "all of it": []}

    def judge(*, verdict_only: bool) -> None:
        judge_columns(
            table,
            Policy(),
            now=START + HOURS * 3600,
            final=True,
            timeout_s=TIMEOUT_S,
            verdict_only=verdict_only,
        )

    def sort() -> None:
        for arm in (table.baseline, table.candidate):
            for seconds in (arm.e2e, arm.ttft, arm.tpot):
                np.sort(seconds)

    for _ in range(ROUNDS):
        taken["sorting"].append(spent(sort))
        taken["verdict"].append(spent(lambda: judge(verdict_only=True)))
        taken["all of it"].append(spent(lambda: judge(verdict_only=False)))
    middle = {name: median(seconds) for name, seconds in taken.items()}
    print(f"\n{len(table):,} pairs, processor time, medians of {ROUNDS} rounds")
    for name, seconds in middle.items():
        print(f"  {name:10}{seconds * 1e3:9.1f} ms{seconds / middle['sorting']:7.1f} times sorting")
    return told(
        middle["verdict"] <= most, f"a verdict in {middle['verdict'] * 1e3:.0f} ms (at most {most * 1e3:.0f})"
    )


def spent(work: Callable[[], None]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def reporting(path: Path, pairs: int) -> bool:
    """The command on a store: the first report on a run, which compares all answers, and one more."""
    start = time.perf_counter()
    url = f"sqlite:///{path}"
    count = fill(url, pairs)
    print(
        f"\n{count:,} pairs in a store of {path.stat().st_size / 1e9:.2f} GB, made in {time.perf_counter() - start:.0f} s"
    )
    report_of(url, "first report")
    wall, peak = report_of(url, "one more")
    return all(
        [
            told(
                wall <= MOST_S, f"one more report on {count:,} pairs in {wall:.1f} s (at most {MOST_S:.0f})"
            ),
            told(peak <= MOST_MB, f"{peak:.0f} MB of memory (at most {MOST_MB:.0f})"),
        ]
    )


def report_of(url: str, name: str) -> tuple[float, float]:
    """Wall seconds and peak MB of the command; prints them."""
    command = (*(sys.executable, "-m", "migrate", "report"), *("--store", url, "--format", "json", "--quiet"))
    start, before, peak = time.perf_counter(), _processor_time(), 0.0
    with tempfile.TemporaryFile() as out:
        with subprocess.Popen(command, stdout=out, stderr=subprocess.DEVNULL) as running:
            while running.poll() is None:
                peak = max(peak, _peak_rss(running.pid))
                time.sleep(0.02)
        wall, processor = time.perf_counter() - start, _processor_time() - before
        out.seek(0)
        verdict = json.load(out)["verdict"]
    print(
        f"  {name:13}{wall:8.1f} s, {processor:.1f} s of processor time, {peak:,.0f} MB at most: {verdict}",
        flush=True,
    )
    return wall, peak


def _peak_rss(pid: int) -> float:
    """The most resident memory that a process had, MB; 0 when it is gone. Unlike that of ``wait4`` without its parent's."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    return 0.0


def fill(url: str, pairs: int) -> int:
    """A store with one run of about so many pairs, and the vectors that its report asks for. Returns how many it holds."""
    table, talk, kept = run_of(pairs), Talk(), Kept()
    with Store.open(url, create=True) as store:
        policy = Policy().model_dump(mode="json", by_alias=True)
        run = store.begin_run(kind="replay", config={}, policy=policy, seed=1, at=START)
        for start in range(0, len(table), _AT_ONCE):
            made = [talk.exchange(at, table) for at in range(start, min(start + _AT_ONCE, len(table)))]
            _write(
                store, codec.encode(run, (record for request, seen in made for record in (request, *seen)))
            )
            resolve([compare(request, seen[0], one) for request, seen in made for one in seen[1:]], kept, 0.0)
        store.put_vectors(cache_key(DEFAULT_MODEL), kept)
        store.end_run(run, at=START + HOURS * 3600)
    return len(table)


def _write(store: Store, rows: codec.Rows) -> None:
    with store.engine.begin() as connection:
        insert_new(
            connection, schema.bodies, [{"hash": key, "data": data} for key, data in rows.bodies.items()]
        )
        insert_new(connection, schema.requests, rows.requests)
        insert_new(connection, schema.observations, rows.observations)


class Kept(dict[str, bytes]):
    """An embedding that finds all texts alike, and keeps what it said for the store's cache."""

    def __call__(self, texts: Sequence[str]) -> Vectors:
        chance = np.random.default_rng(len(self))
        rows = (1 + 0.3 * chance.standard_normal((len(texts), 384))).astype(np.float32)
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        self.update(
            (text_hash(text), row.astype("<f4").tobytes()) for text, row in zip(texts, rows, strict=True)
        )
        return rows


class Talk:
    """Requests and answers out of a seed. Every prompt is another; an answer has a few sentences in a dozen chunks."""

    def __init__(self) -> None:
        self.chance = random.Random(1)
        self.sentences = [_sentence(self.chance) for _ in range(4_000)]

    def exchange(self, at: int, table: Columns) -> tuple[Request, list[Observation]]:
        """The ``at``-th pair. The candidate says the same, or, where the table calls it different, something else."""
        chance, name = self.chance, f"{at:032x}"
        prompt = f"{_said(chance, self.sentences, 1, 3)} Order {at}."
        body = {
            "model": "harbor-7b",
            "stream": True,
            "temperature": 0,
            "messages": [{"role": "user", "content": prompt}],
        }
        request = Request(
            id=name, at=float(table.at[at]), method="POST", path="/v1/chat/completions", headers=_HEADERS,
            body=json.dumps(body).encode(), conversation=f"[conversation:{table.session[at]}]",
        )  # fmt: skip
        text = f"{_said(chance, self.sentences, 2, 5)} That was {at}."
        other = f"{_said(chance, self.sentences, 2, 5)} That was {at}."
        arms = [
            (Arm.BASELINE, table.baseline, text),
            (Arm.CANDIDATE, table.candidate, other if table.differs[at] > 0 else text),
        ]
        if table.repeated[at]:
            arms.append((Arm.BASELINE_REPEAT, table.repeat, other if table.repeat_differs[at] > 0 else text))
        return request, [
            _seen(name, arm, answers, at, float(table.at[at]), said) for arm, answers, said in arms
        ]


def _seen(name: str, arm: Arm, answers: Answers, at: int, when: float, text: str) -> Observation:
    outcome = _OUTCOMES[answers.outcome[at]]
    if outcome is not Outcome.OK:
        failure = None
        if outcome.failed:
            failure = Failure(outcome=outcome, error_class=ErrorClass.SERVER, message="busy")
        e2e = float(answers.e2e[at]) if outcome.failed else None
        return Observation(
            request_id=name, arm=arm, at=when, outcome=outcome, reason="queue_full", failure=failure, timing=Timing(e2e_s=e2e)
        )  # fmt: skip
    ttft, e2e, tokens = (float(column[at]) for column in (answers.ttft, answers.e2e, answers.tokens))
    cut_off = answers.traits[at, _CUT_OFF] > 0
    choice = Choice(text=text, role="assistant", finish_reason="length" if cut_off else "stop")
    usage = Usage(
        prompt_tokens=len(text) // 4, completion_tokens=int(tokens), total_tokens=len(text) // 4 + int(tokens)
    )
    return Observation(
        request_id=name, arm=arm, at=when, outcome=outcome, status=200, headers=_HEADERS,
        answer=Answer(choices=(choice,), usage=usage, model="harbor-7b", streamed=True),
        timing=Timing(head_s=0.9 * ttft, ttft_s=ttft, e2e_s=e2e, content_times=tuple(np.linspace(ttft, e2e, _CHUNKS).tolist())),
    )  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
