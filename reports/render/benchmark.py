"""A benchmark for people at a terminal of 80 columns or more, and for programs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict

from reports.benchmark import DEFINITIONS, SCHEMA, Benchmark, Figures, Latency, Load
from reports.render.plot import screen
from reports.render.text import wrap
from reports.render.words import count, quantity

_METRICS = {
    "ttft_s": "TTFT",
    "itl_s": "ITL",
    "tpot_s": "TPOT",
    "e2e_s": "end to end",
    "ttft_from_due_s": "TTFT due",
    "e2e_from_due_s": "e2e due",
}
_NONE = "-"
_ENDLESS = "\u221e"
_BAR = " \u2502"
_FEWEST = {"p95": 20, "p99": 100}
"""Values that a quantile needs."""


def render_json(benchmark: Benchmark) -> str:
    """The whole benchmark with the definition of every figure; finite numbers only."""
    data = {"schema": SCHEMA, **asdict(benchmark), "definitions": DEFINITIONS}
    return json.dumps(data, indent=2, allow_nan=False) + "\n"


def render_terminal(benchmark: Benchmark, *, width: int = 80) -> str:
    """Tables of at most 80 columns, sentences of ``width``, and a plot where there are several steps."""
    parts = (_head, _throughput, _latency, _server, _said)
    blocks = [list(part(benchmark, width)) for part in parts]
    blocks.append(screen(benchmark.steps, width=width))
    return "\n\n".join("\n".join(line.rstrip() for line in block) for block in blocks if block) + "\n"


def asked(load: Load) -> str:
    """What a step asks of the server."""
    if load.rate_per_s is None:
        return f"{load.concurrency} at once, {load.requests} requests"
    return f"{load.rate_per_s:g} requests/s for {load.time_s:g} s"


def label(load: Load) -> str:
    """A step in a table."""
    return f"{load.concurrency} at once" if load.rate_per_s is None else f"{load.rate_per_s:g}/s"


def _head(benchmark: Benchmark, width: int) -> Iterator[str]:
    model = f", model {benchmark.model}" if benchmark.model else ""
    yield from wrap(f"BENCH {benchmark.url}{model}", width)
    nonce = (
        "with a nonce before each, so that no prefix cache helps"
        if benchmark.nonce
        else "as they are, so that a prefix cache helps with what it has seen"
    )
    warmup = f"{benchmark.warmup} warm-up requests before each step" if benchmark.warmup else "no warm-up"
    yield from _sentence(
        f"{count(benchmark.prompts)} prompts ({benchmark.workload}) {nonce}; {warmup}; seed {benchmark.seed}",
        width,
    )
    for step in benchmark.steps[:1]:
        yield from _sentence(_loop(step.load), width)
    if benchmark.runs:
        yield from _sentence(f"kept as run {', '.join(benchmark.runs)}", width)


def _sentence(text: str, width: int) -> list[str]:
    return wrap(text, width, first="  ", rest="  ")


def _loop(load: Load) -> str:
    if not load.open:
        return f"closed loop, {load.requests} requests a step: the next leaves when one has ended"
    known = {1.0: "Poisson arrivals", 0.0: "a constant rate"}
    gaps = known.get(load.burstiness or 0.0, f"gamma arrivals of burstiness {load.burstiness:g}")
    return f"open loop, {load.time_s:g} s a step, {gaps}: a request leaves when it is due"


def _row(first: str, cells: Iterable[str]) -> str:
    return f"  {first:<12}" + "".join(f"{cell:>9}" for cell in cells)


def _number(value: float | None) -> str:
    if value is None:
        return _NONE
    return f"{value:,.0f}" if value >= 1000 else f"{value:,.1f}" if value >= 10 else f"{value:.2f}"


def _whole(value: float | None) -> str:
    return _NONE if value is None else f"{value:,.0f}"


def _time(value: float | None) -> str:
    return _NONE if value is None else quantity(value, "s")


def _share(value: float | None) -> str:
    return _NONE if value is None else f"{value:.1%}".replace("%", " %")


def _throughput(benchmark: Benchmark, width: int) -> Iterator[str]:
    if not benchmark.steps:
        return
    limits = next((step.goodput.limits_s for step in benchmark.steps if step.goodput), None)
    titles = ("sent", "failed", "sent/s", "ok/s", "steady/s", "tokens/s")
    yield _row("LOAD", titles if limits is None else (*titles, "good/s"))
    for step in benchmark.steps:
        rates = [step.achieved_rate_per_s, step.requests_per_s]
        rates += [step.steady.requests_per_s if step.steady else None, step.output_tokens_per_s]
        rates += [step.goodput.per_s] if step.goodput else []
        yield _row(label(step.load), [count(step.sent), count(step.failed), *map(_number, rates)])
    if limits is not None:
        within = ", ".join(f"{name} {quantity(most, 's')}" for name, most in limits.items())
        yield from _sentence(f"good: answered within {within}", width)


def _latency(benchmark: Benchmark, width: int) -> Iterator[str]:
    failed = any(step.failed for step in benchmark.steps)
    for step in benchmark.steps:
        title = _row(label(step.load), ("p50", "p90", "p95", "p99", "max"))
        yield title + (f"{_BAR}{'p95 !':>9}{'p99 !':>9}" if failed else "")
        yield from (_times(name, one, step.failed, wide=failed) for name, one in step.latency.items())
    if failed:
        yield from _sentence("!: each failed request counts as infinitely slow", width)
    if any("e2e_from_due_s" in step.latency for step in benchmark.steps):
        yield from _sentence("due: from the moment at which it was meant to leave", width)
    if any(step.latency["itl_s"].samples for step in benchmark.steps):
        yield from _sentence(_chunks(benchmark), width)


def _times(name: str, one: Latency, failed: int, *, wide: bool) -> str:
    line = _row(_METRICS[name], map(_time, (*one.answered.values(), one.max)))
    return line + _BAR + "".join(f"{cell:>9}" for cell in _with_failures(one, failed)) if wide else line


def _with_failures(one: Latency, failed: int) -> Iterator[str]:
    """A quantile that is not there for want of values is not infinite."""
    if one.with_failures is None:
        return
    for level, fewest in _FEWEST.items():
        value = one.with_failures[level]
        yield _ENDLESS if value is None and one.samples + failed >= fewest else _time(value)


def _chunks(benchmark: Benchmark) -> str:
    found = [step.tokens_per_chunk for step in benchmark.steps if step.tokens_per_chunk is not None]
    ends = " to ".join(dict.fromkeys(map(_number, (min(found), max(found))))) if found else ""
    tokens = f"; {ends} tokens a chunk" if found else ""
    return f"ITL: a gap between chunks that carry tokens{tokens}"


def _server(benchmark: Benchmark, width: int) -> Iterator[str]:
    if not any(step.server for step in benchmark.steps):
        return
    yield _row("SERVER", ("running", "max", "waiting", "max", "KV max", "prefix", "queued"))
    for step in benchmark.steps:
        if (seen := step.server) is not None:
            lines = ((seen.running_mean, seen.running_max), (seen.waiting_mean, seen.waiting_max))
            cells = (cell for mean, most in lines for cell in (_number(mean), _whole(most)))
            shares = map(_share, (seen.kv_cache_max, seen.prefix_hit_share))
            yield _row(label(step.load), (*cells, *shares, _time(seen.queue_mean_s)))
    yield from _sentence("running, waiting: means over the readings; prefix: cache hits; queued: mean", width)
    for step in benchmark.steps:
        if step.server and step.server.preemptions:
            yield from _sentence(f"{label(step.load)}: {step.server.preemptions:,.0f} preemptions", width)


def _said(benchmark: Benchmark, width: int) -> Iterator[str]:
    for step in benchmark.steps:
        for text in _sayings(step):
            yield from wrap(f"{label(step.load)}: {text}", width, first="  ", rest="    ")


def _sayings(step: Figures) -> Iterator[str]:
    yield from (f"INVALID: {reason}" for reason in step.invalid)
    if step.errors:
        errors = ", ".join(f"{count(many)} {name}" for name, many in step.errors.items())
        yield f"{count(step.failed)} of {count(step.sent)} failed: {errors}"
    yield from step.notes
