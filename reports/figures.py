"""From what was observed under one load to its figures, as ``reports.benchmark.DEFINITIONS`` has them. Pure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from replay.exchange import Observation, Outcome
from replay.prometheus import Reading
from reports.benchmark import Client, Figures, Goodput, Latency, Load, Server, Steady
from reports.stats import Floats

LEVELS = (0.50, 0.90, 0.95, 0.99)
_FEWEST = 10
"""Answers in the steady part; fewer are no rate."""


def figures(
    load: Load,
    observations: Iterable[Observation | None],
    *,
    client: Client,
    readings: Sequence[Reading] = (),
    limits: Mapping[str, float] | None = None,
) -> Figures:
    """One step from what was observed; ``None`` is a request of which nothing came back.

    ``limits``: seconds by name of ``LIMITS``. ``readings``: the server's metrics, the first from before and the last from
    after the step.
    """
    every = [None if seen is None or seen.outcome.missing else _Seen.of(seen) for seen in observations]
    seen = [one for one in every if one is not None]
    answered = [one for one in seen if one.ok]
    window = max(one.ended for one in seen) - min(one.sent for one in seen) if seen else None
    output, prompt = (_total(answered, name) for name in ("output", "prompt"))
    lag = _quantile(np.sort([one.lag for one in seen]), 0.99, fewest=1)
    return Figures(
        load=load,
        sent=len(every),
        answered=len(answered),
        failed=len(seen) - len(answered),
        missing=len(every) - len(seen),
        errors=dict(Counter(one.error for one in seen if not one.ok).most_common()),
        finish_reasons=dict(Counter(one.finish for one in answered).most_common()),
        window_s=window,
        achieved_rate_per_s=_rate(seen),
        requests_per_s=_per(len(answered), window),
        output_tokens_per_s=_per(output, window),
        prompt_tokens_per_s=_per(prompt, window),
        output_tokens=output,
        prompt_tokens=prompt,
        cached_share=_cached(answered),
        tokens_per_chunk=_tokens_per_chunk(answered),
        in_flight_mean=_per(sum(one.e2e for one in seen), window),
        in_flight_max=_most_at_once(seen),
        steady=_steady(seen, answered),
        goodput=_goodput(load, seen, limits, window) if limits else None,
        latency=_latencies(load, seen),
        server=server(readings),
        send_lag_p99_s=lag,
        loop_lag_p99_s=client.loop_lag_p99_s,
        client_cpu_share=client.cpu_share,
        notes=tuple(_notes(every, answered, readings)),
        invalid=tuple(_invalid(answered, lag, client)),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """What the figures need of one answer. ``sent`` and ``ended`` in epoch seconds."""

    ok: bool
    error: str
    finish: str
    sent: float
    ended: float
    e2e: float
    ttft: float | None
    tpot: float | None
    lag: float
    """After its moment, a new connection's time not counted."""
    late: float
    """After its moment, connecting included."""
    times: Floats
    output: int | None
    prompt: int | None
    cached: int | None

    @classmethod
    def of(cls, seen: Observation) -> _Seen:
        timing, answer = seen.timing, seen.answer
        usage = answer.usage if answer else None
        times = np.asarray(timing.content_times, dtype=np.float64)
        late, e2e = timing.lag_s or 0.0, timing.e2e_s or 0.0
        return cls(
            ok=seen.outcome is Outcome.OK,
            error=seen.failure.error_class.value if seen.failure else seen.outcome.value,
            finish=(answer.first.finish_reason if answer else None) or "none",
            sent=seen.at,
            ended=seen.at + e2e,
            e2e=e2e,
            ttft=timing.ttft_s,
            tpot=_tpot(times, seen.output_tokens),
            lag=max(0.0, late - (timing.connect_s or 0.0)),
            late=late,
            times=times,
            output=seen.output_tokens,
            prompt=usage.prompt_tokens if usage else None,
            cached=usage.cached_tokens if usage else None,
        )


def _tpot(times: Floats, tokens: int | None) -> float | None:
    if tokens is None or tokens < 2 or times.size < 2:
        return None
    return float(times[-1] - times[0]) / (tokens - 1)


def _per(amount: float | None, seconds: float | None) -> float | None:
    return None if amount is None or not seconds else amount / seconds


def _rate(seen: Sequence[_Seen]) -> float | None:
    if len(seen) < 2:
        return None
    return _per(len(seen) - 1, max(one.sent for one in seen) - min(one.sent for one in seen))


def _total(answered: Sequence[_Seen], name: str) -> int | None:
    found = [getattr(one, name) for one in answered]
    return sum(found) if found and None not in found else None


def _cached(answered: Sequence[_Seen]) -> float | None:
    found = [(one.cached, one.prompt) for one in answered if one.cached is not None and one.prompt]
    return sum(cached for cached, _ in found) / sum(prompt for _, prompt in found) if found else None


def _tokens_per_chunk(answered: Sequence[_Seen]) -> float | None:
    found = [(one.output, one.times.size) for one in answered if one.output is not None and one.times.size]
    return sum(tokens for tokens, _ in found) / sum(chunks for _, chunks in found) if found else None


def _most_at_once(seen: Sequence[_Seen]) -> int | None:
    """At one and the same moment an answer ends before a request begins."""
    if not seen:
        return None
    edges = sorted([(one.sent, 1) for one in seen] + [(one.ended, -1) for one in seen])
    return int(np.cumsum([step for _, step in edges]).max())


def _steady(seen: Sequence[_Seen], answered: Sequence[_Seen]) -> Steady | None:
    if not answered:
        return None
    start = min(one.sent for one in seen) + float(np.median([one.e2e for one in answered]))
    end = max(one.sent for one in seen)
    ended = sum(start < one.ended <= end for one in answered)
    if ended < _FEWEST:
        return None
    tokens = [_tokens_within(one, start, end) for one in answered]
    total = None if None in tokens else sum(token for token in tokens if token is not None)
    return Steady(
        time_s=end - start,
        requests_per_s=ended / (end - start),
        output_tokens_per_s=_per(total, end - start),
    )


def _tokens_within(one: _Seen, start: float, end: float) -> float | None:
    if one.output is None:
        return None
    came = one.sent + one.times if one.times.size else np.array([one.ended])
    return one.output * float(((start < came) & (came <= end)).mean())


def _goodput(load: Load, seen: Sequence[_Seen], limits: Mapping[str, float], window: float | None) -> Goodput:
    met = sum(one.ok and all(_meets(load, one, name, most) for name, most in limits.items()) for one in seen)
    return Goodput(
        limits_s=dict(limits), met=met, per_s=_per(met, window), share=met / len(seen) if seen else None
    )


def _meets(load: Load, one: _Seen, name: str, most: float) -> bool:
    value: float | None = getattr(one, name)
    late = one.late if load.open and name != "tpot" else 0.0
    return value is not None and value + late <= most


def _latencies(load: Load, seen: Sequence[_Seen]) -> dict[str, Latency]:
    answered = [one for one in seen if one.ok]
    failed = len(seen) - len(answered)
    first = [(one.ttft, one.late) for one in answered if one.ttft is not None]
    values = {
        "ttft_s": [ttft for ttft, _ in first],
        "tpot_s": [one.tpot for one in answered if one.tpot is not None],
        "e2e_s": [one.e2e for one in answered],
    }
    if load.open:
        values["ttft_from_due_s"] = [ttft + late for ttft, late in first]
        values["e2e_from_due_s"] = [one.e2e + one.late for one in answered]
    gaps = np.concatenate([np.diff(one.times) for one in answered]) if answered else np.array([])
    found = {name: _latency(np.asarray(of, dtype=np.float64), failed) for name, of in values.items()}
    return {"ttft_s": found.pop("ttft_s"), "itl_s": _latency(gaps, None), **found}


def _latency(values: Floats, failed: int | None) -> Latency:
    ordered = np.sort(values)
    return Latency(
        samples=int(ordered.size),
        mean=float(ordered.mean()) if ordered.size else None,
        max=float(ordered[-1]) if ordered.size else None,
        answered=_quantiles(ordered),
        with_failures=None
        if failed is None
        else _quantiles(np.concatenate([ordered, np.full(failed, np.inf)])),
    )


def _quantiles(ordered: Floats) -> dict[str, float | None]:
    return {f"p{level * 100:g}": _quantile(ordered, level) for level in LEVELS}


def _quantile(ordered: Floats, level: float, *, fewest: int | None = None) -> float | None:
    """By nearest rank; ``None`` where it is infinite or rests on too few values. The tolerance is for 0.95 * 20."""
    if ordered.size < (math.ceil(1 / (1 - level) - 1e-9) if fewest is None else fewest):
        return None
    value = float(ordered[math.ceil(level * ordered.size - 1e-9) - 1])
    return value if math.isfinite(value) else None


def server(readings: Sequence[Reading]) -> Server | None:
    """The server's view from readings in order; ``None`` when it stated nothing."""
    if len(readings) < 2:
        return None
    during = readings[1:-1]
    running, waiting, used = (_stated(during, name) for name in ("running", "waiting", "kv_cache"))
    return Server(
        readings=len(readings),
        running_mean=float(np.mean(running)) if running else None,
        running_max=max(running, default=None),
        waiting_mean=float(np.mean(waiting)) if waiting else None,
        waiting_max=max(waiting, default=None),
        kv_cache_max=max(used, default=None),
        prefix_hit_share=_per(_grown(readings, "prefix_hits"), _grown(readings, "prefix_queries")),
        queue_mean_s=_per(_grown(readings, "queued_s"), _grown(readings, "queued")),
        preemptions=_grown(readings, "preemptions"),
    )


def _stated(readings: Sequence[Reading], name: str) -> list[float]:
    return [value for reading in readings if (value := getattr(reading, name)) is not None]


def _grown(readings: Sequence[Reading], name: str) -> float | None:
    """From before to after; ``None`` when the server did not say, or was started again in between."""
    first, last = getattr(readings[0], name), getattr(readings[-1], name)
    return last - first if first is not None and last is not None and last >= first else None


def _notes(
    every: Sequence[_Seen | None], answered: Sequence[_Seen], readings: Sequence[Reading]
) -> Iterable[str]:
    silent = sum(one.output is None for one in answered)
    if silent:
        yield f"{silent} of {len(answered)} answers do not state their usage: no figure in tokens, no TPOT for them"
    if whole := sum(not one.times.size for one in answered):
        yield f"{whole} of {len(answered)} answers were not streamed, or held no token: no TTFT and no ITL for them"
    if missing := every.count(None):
        yield f"of {missing} requests nothing is known; they are in no figure"
    if readings and readings[0].running:
        yield f"the server was busy with {readings[0].running:g} other requests before the step began"


def _invalid(answered: Sequence[_Seen], lag: float | None, client: Client) -> Iterable[str]:
    limit = client.lag_limit_s
    if not answered:
        yield "no request was answered"
    for what, late in (("requests left", lag), ("the client's event loop was", client.loop_lag_p99_s)):
        if late is not None and late > limit:
            yield f"{what} {late * 1e3:.1f} ms late (p99), at most {limit * 1e3:g} ms allowed: the client measured itself"
    if client.held_s > 0:
        yield f"limits of the backend stretched the schedule by {client.held_s:.1f} s"
