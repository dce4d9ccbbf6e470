"""What a server counts about itself, and its Prometheus text under the dialect's names."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from replay.exchange import JSON


def _bounds(text: str) -> tuple[float, ...]:
    return tuple(map(float, text.split()))


_REQUEST = _bounds(
    "0.3 0.5 0.8 1 1.5 2 2.5 5 10 15 20 30 40 50 60 120 240 480 960 1920 7680",
)
_FIRST = _bounds(
    "0.001 0.005 0.01 0.02 0.04 0.06 0.08 0.1 0.25 0.5 0.75 1 2.5 5 7.5 10 20 40 80 160 640 2560",
)
_TOKEN = _bounds("0.01 0.025 0.05 0.075 0.1 0.15 0.2 0.3 0.4 0.5 0.75 1 2.5 5 7.5 10 20 40 80")
FINISHES = ("stop", "length", "abort", "error", "repetition")


@dataclass(slots=True)
class Histogram:
    """Counts by upper bound in seconds."""

    bounds: tuple[float, ...]
    counts: list[int] = field(default_factory=list)
    total: float = 0.0

    def observe(self, value: float, times: int = 1) -> None:
        """Counts ``value``, as often as ``times`` says."""
        if not self.counts:
            self.counts = [0] * (len(self.bounds) + 1)
        self.counts[bisect_left(self.bounds, value)] += times
        self.total += value * times

    def lines(self, name: str, labels: str) -> Iterator[str]:
        """The histogram's samples in Prometheus text."""
        running = 0
        for bound, count in zip(
            (*self.bounds, "+Inf"), self.counts or [0] * (len(self.bounds) + 1), strict=True
        ):
            running += count
            yield f'{name}_bucket{{{labels},le="{bound}"}} {running}'
        yield f"{name}_count{{{labels}}} {running}"
        yield f"{name}_sum{{{labels}}} {self.total}"


@dataclass(slots=True)
class Meter:
    """The counters of one running simulator; times in seconds."""

    running: int = 0
    prompt_tokens: int = 0
    generation_tokens: int = 0
    errors: int = 0
    finished: dict[str, int] = field(default_factory=lambda: dict.fromkeys(FINISHES, 0))
    ttft: Histogram = field(default_factory=lambda: Histogram(_FIRST))
    itl: Histogram = field(default_factory=lambda: Histogram(_TOKEN))
    tpot: Histogram = field(default_factory=lambda: Histogram(_TOKEN))
    e2e: Histogram = field(default_factory=lambda: Histogram(_REQUEST))
    queue: Histogram = field(default_factory=lambda: Histogram(_REQUEST))
    decode: Histogram = field(default_factory=lambda: Histogram(_REQUEST))
    iterations: deque[JSON] = field(default_factory=lambda: deque(maxlen=1000))

    def done(self, *, finish: str, prompt: int, tokens: int, first: float, last: float) -> None:
        """Counts one answer: finish reason, tokens, and when its first and last token left."""
        reason = "stop" if finish == "tool_calls" else finish
        self.finished[reason] = self.finished.get(reason, 0) + 1
        self.prompt_tokens += prompt
        self.generation_tokens += tokens
        self.ttft.observe(first)
        self.e2e.observe(last)
        self.queue.observe(0.0)
        self.decode.observe(last - first)
        if tokens > 1:
            gap = (last - first) / (tokens - 1)
            self.itl.observe(gap, tokens - 1)
            self.tpot.observe(gap)
        self.iterations.append({"iter": sum(self.finished.values()), "iterLatencyMS": round(last * 1e3, 3)})

    def drained(self) -> list[JSON]:
        """Iteration statistics since the last call, each given once."""
        taken = [item | self._state() for item in self.iterations]
        self.iterations.clear()
        return taken

    def _state(self) -> JSON:
        blocks = {"maxNumBlocks": 1000, "usedNumBlocks": self.running, "freeNumBlocks": 1000 - self.running}
        return {"numActiveRequests": self.running, "numQueuedRequests": 0, "kvCacheStats": blocks}


def vllm(meter: Meter, model: str) -> str:
    """Prometheus text as vLLM 0.33 names it."""
    labels = f'engine="0",model_name="{model}"'
    histograms = {
        "inter_token_latency_seconds": meter.itl,
        "request_time_per_output_token_seconds": meter.tpot,
        "request_prefill_time_seconds": meter.ttft,
    }
    gauges = {
        "kv_cache_usage_perc": _load(meter),
        "num_preemptions_total": 0,
        "prompt_tokens_cached_total": 0,
    }
    counters = {"prefix_cache_queries_total": meter.prompt_tokens, "prefix_cache_hits_total": 0}
    waiting = [
        f'vllm:num_requests_waiting_by_reason{{{labels},reason="{why}"}} 0'
        for why in ("capacity", "deferred")
    ]
    return _text("vllm:", labels, meter, histograms, gauges | counters) + "\n".join([*waiting, ""])


def tensorrt_llm(meter: Meter, model: str) -> str:
    """Prometheus text as TensorRT-LLM names it; its server labels every model ``undefined``."""
    histograms = {"time_per_output_token_seconds": meter.tpot, "request_prefill_time_seconds": meter.ttft}
    gauges = {
        "kv_cache_utilization": _load(meter),
        "kv_cache_hit_rate": 0.0,
        "kv_cache_used_blocks": meter.running,
        "kv_cache_max_blocks": 1000,
        "request_error_total": meter.errors,
    }
    return _text("trtllm_", 'model_name="undefined"', meter, histograms, gauges)


def _load(meter: Meter) -> float:
    return min(1.0, meter.running / 1000)


def _text(
    prefix: str, labels: str, meter: Meter, histograms: dict[str, Histogram], numbers: dict[str, float]
) -> str:
    shared = {
        "time_to_first_token_seconds": meter.ttft,
        "e2e_request_latency_seconds": meter.e2e,
        "request_queue_time_seconds": meter.queue,
        "request_decode_time_seconds": meter.decode,
        "request_inference_time_seconds": meter.e2e,
    }
    counted = {
        "num_requests_running": meter.running,
        "num_requests_waiting": 0,
        "prompt_tokens_total": meter.prompt_tokens,
        "generation_tokens_total": meter.generation_tokens,
    }
    lines: list[str] = []
    for name, histogram in (shared | histograms).items():
        lines += [f"# TYPE {prefix}{name} histogram", *histogram.lines(prefix + name, labels)]
    for name, number in (counted | numbers).items():
        kind = "counter" if name.endswith("_total") else "gauge"
        lines += [f"# TYPE {prefix}{name} {kind}", f"{prefix}{name}{{{labels}}} {float(number)}"]
    name = f"{prefix}request_success_total"
    lines.append(f"# TYPE {name} counter")
    lines += [f'{name}{{{labels},finished_reason="{why}"}} {count}' for why, count in meter.finished.items()]
    return "\n".join([*lines, ""])
