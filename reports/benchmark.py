"""What a benchmark states: the figures that people compare servers with, each with its definition.

Latencies are readings of a monotonic clock, in seconds. ``None`` is what was not measured, or cannot be said; never 0.
"""

from __future__ import annotations

from dataclasses import dataclass

from replay.exchange import JSON

LIMITS = ("ttft", "tpot", "e2e")
"""What goodput may ask for."""

DEFINITIONS = {
    "sent": "requests dispatched; warm-up requests are not among them",
    "answered": "requests whose answer was whole: status below 400, no error inside a stream, ended with [DONE] or a finish "
    "reason",
    "failed": "requests that the server did not answer: errors of any status or inside a stream, cut streams, time-outs, "
    "connections refused; none is sent a second time, but where a server had closed an idle connection before it could read",
    "missing": "requests of which nothing is known because the client was stopped, had no file or port for them, or could not "
    "keep the answer; they are in no other figure",
    "errors": "failed requests by class, whatever the envelope of the server",
    "finish_reasons": "answered requests by the finish reason of their first choice",
    "window_s": "first dispatch to the last byte of the last answer, failures included; one straggler makes it long",
    "achieved_rate_per_s": "(sent - 1) / (last dispatch - first dispatch); beside rate_per_s it shows what chance drew for "
    "the arrivals, and whether the client kept up",
    "requests_per_s": "answered / window_s",
    "output_tokens_per_s": "output_tokens / window_s",
    "prompt_tokens_per_s": "prompt_tokens / window_s",
    "output_tokens": "completion tokens of answered requests as the server's usage states them; None unless it does for each",
    "prompt_tokens": "prompt tokens of answered requests as the server's usage states them; None unless it does for each",
    "cached_share": "cached tokens / prompt tokens over the answers whose usage states both",
    "tokens_per_chunk": "output tokens / chunks that carry tokens, over streamed answers with usage",
    "in_flight_mean": "sum of all end-to-end times / window_s",
    "in_flight_max": "most requests in flight at one moment, seen by the client",
    "steady": "the part in which the load neither builds up nor drains: from one median end-to-end time after the first "
    "dispatch to the last dispatch; None with fewer than 10 answers in it",
    "steady.requests_per_s": "answers that ended in the steady part / its time_s",
    "steady.output_tokens_per_s": "tokens that came in the steady part / its time_s; the tokens of an answer are spread evenly "
    "over its chunks",
    "goodput": "answered requests that meet every limit; in an open loop TTFT and end to end count from the intended moment; "
    "a value that was not measured does not meet its limit",
    "goodput.per_s": "met / window_s",
    "goodput.share": "met / (sent - missing)",
    "ttft_s": "time to first token: request handed to the socket to the first chunk with a non-empty token of content, "
    "reasoning or tool arguments; a chunk with a role alone has no token; streamed answers only",
    "itl_s": "inter-token latency: gaps between successive chunks that carry tokens, pooled over answered requests; a gap is "
    "one chunk's, not one token's (see tokens_per_chunk)",
    "tpot_s": "time per output token of a request: (last token - first token) / (output tokens - 1), tokens from the server's "
    "usage; None without usage, below two tokens, and when all came in one chunk",
    "e2e_s": "end to end: request handed to the socket to the last byte, or to [DONE] of a stream; making a connection is not "
    "part of it",
    "ttft_from_due_s": "the same, from the moment at which the schedule meant the request to leave, connecting included; open "
    "loops only",
    "e2e_from_due_s": "the same, from the moment at which the schedule meant the request to leave, connecting included; open "
    "loops only",
    "latency.samples": "values behind the quantiles of answered requests",
    "latency.answered": "quantiles of answered requests by nearest rank; None with fewer than 1 / (1 - level) values: 2 for "
    "p50, 10 for p90, 20 for p95, 100 for p99",
    "latency.with_failures": "the same with each failed request as infinitely slow; None where that is the quantile; a gap "
    "between tokens belongs to no failed request, so ITL has none",
    "send_lag_p99_s": "how late requests left after their moment, connecting not counted, 99th percentile by nearest rank "
    "over all",
    "loop_lag_p99_s": "how late the client's event loop woke up, 99th percentile",
    "client_cpu_share": "processor time of the sending process / its time; 1 is a whole core",
    "server": "the server's own /metrics, asked for before, once a second during, and after; what it does not state is None",
    "server.running_mean": "requests that the server was working on, mean of the readings during the step",
    "server.running_max": "the same, largest reading",
    "server.waiting_mean": "requests in the server's queue, mean of the readings during the step",
    "server.waiting_max": "the same, largest reading",
    "server.kv_cache_max": "share of the KV cache in use, largest reading; 1 is all of it",
    "server.prefix_hit_share": "prefix cache hits / queries, both counted from before to after, in tokens",
    "server.queue_mean_s": "mean time in the server's queue of the requests that ended from before to after",
    "server.preemptions": "requests that were taken out of the batch for want of KV cache, from before to after",
}
"""Every figure that a benchmark states, by its key."""


SCHEMA = {"name": "llm-migrate.bench", "version": 1}


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What was asked of the server: an open loop at a rate for a time, or a closed loop of so many at once."""

    rate_per_s: float | None = None
    burstiness: float | None = None
    """Coefficient of variation of the gaps between arrivals: 1 is a Poisson process, 0 a constant rate."""
    time_s: float | None = None
    concurrency: int | None = None
    requests: int | None = None

    @property
    def open(self) -> bool:
        """Requests leave when they are due, whatever became of the earlier ones."""
        return self.rate_per_s is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """How well the client kept its own promises. ``held_s``: by how much limits of a backend stretched the schedule."""

    lag_limit_s: float
    loop_lag_p99_s: float | None = None
    cpu_share: float | None = None
    held_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """One metric, seconds. Quantiles by name, ``p50`` and so on."""

    samples: int
    mean: float | None
    max: float | None
    answered: dict[str, float | None]
    with_failures: dict[str, float | None] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Steady:
    """The part of a step in which the load neither builds up nor drains."""

    time_s: float
    requests_per_s: float
    output_tokens_per_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Goodput:
    """Requests that met every limit."""

    limits_s: dict[str, float]
    met: int
    per_s: float | None
    share: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """The server's own view of a step."""

    readings: int
    running_mean: float | None
    running_max: float | None
    waiting_mean: float | None
    waiting_max: float | None
    kv_cache_max: float | None
    prefix_hit_share: float | None
    queue_mean_s: float | None
    preemptions: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """One step. ``DEFINITIONS`` says what each figure is."""

    load: Load
    sent: int
    answered: int
    failed: int
    missing: int
    errors: dict[str, int]
    finish_reasons: dict[str, int]
    window_s: float | None
    achieved_rate_per_s: float | None
    requests_per_s: float | None
    output_tokens_per_s: float | None
    prompt_tokens_per_s: float | None
    output_tokens: int | None
    prompt_tokens: int | None
    cached_share: float | None
    tokens_per_chunk: float | None
    in_flight_mean: float | None
    in_flight_max: int | None
    steady: Steady | None
    goodput: Goodput | None
    latency: dict[str, Latency]
    server: Server | None
    send_lag_p99_s: float | None
    loop_lag_p99_s: float | None
    client_cpu_share: float | None
    notes: tuple[str, ...]
    """What a reader has to know of the figures."""
    invalid: tuple[str, ...]
    """Why the figures are no evidence; empty when they are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Benchmark:
    """All steps, and what has to be known to repeat them."""

    url: str
    model: str | None
    """``None``: what each request names."""
    started_at: str
    """ISO 8601, UTC."""
    workload: str
    prompts: int
    """Different ones among the measured requests; with fewer than are sent, each is sent again."""
    warmup: int
    """Requests before each step."""
    nonce: bool
    """A few letters before each prompt, new for each request, so that no prefix cache helps."""
    fields: JSON
    """Set in every body."""
    seed: int
    runs: tuple[str, ...]
    """In the store, one a step; empty when they were not kept."""
    steps: tuple[Figures, ...]
