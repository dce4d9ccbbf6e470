"""What a cost is reckoned from: a run in a store, the prices that it was started with or that are given, and benchmarks."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
from pydantic import ValidationError

from migrate.config import Config, Price
from migrate.errors import ConfigError
from migrate.store import Run, Store
from replay.exchange import Arm
from reports.benchmark import SCHEMA as BENCH
from reports.costing import DAY_S
from reports.doubts import Side, Terms
from reports.gathered import Gathered
from reports.outlook import Outlook, outlook
from reports.pairing import measure
from reports.spending import Throughput, Used, Using, measured_throughput, spent, used_of

_SAMPLED = ("shadow", "capture")
"""Kinds of runs that recorded a share of the requests, and others all."""
_MOST = 1e9
"""Answers, and seconds, of one step of a benchmark."""
ARMS = (Arm.BASELINE, Arm.CANDIDATE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a person said beside the run."""

    config: Config | None = None
    """Of which the prices are taken; ``None``: those of the run."""
    traffic_per_day: float | None = None
    """``None``: that of the run."""
    peak: float = 1.0
    migration: float = 0.0
    overlap_days: float = 0.0
    stale_days: float = 90.0
    benches: Mapping[Arm, Path | None] = field(default_factory=dict)
    engineering: Mapping[Arm, float] = field(default_factory=dict)
    """USD a month."""


def stored_price(run: Run, arm: Arm) -> Price | None:
    """The price that a run was started with. Raises ConfigError when this version no longer reads it."""
    stored = (run.config.get(arm.value) or {}).get("price")
    try:
        return None if stored is None else Price.model_validate(stored)
    except ValidationError as error:
        raise ConfigError(
            f"run {run.id}: the price of its {arm.value} cannot be read ({error.errors()[0]['msg']}); give one with --config"
        ) from None


def of_run(store: Store, run: Run, asked: Asked, *, now: float) -> Outlook:
    """What the run says of costs. Raises ConfigError for a price or a benchmark that cannot be read."""
    benches = {arm: bench_throughput(path) for arm, path in asked.benches.items() if path is not None}
    using = {arm: Using() for arm in Arm}
    first, last, requests = math.inf, -math.inf, 0
    for exchange in store.exchanges(run.id):
        session, at = exchange.request.conversation, exchange.request.at
        first, last, requests = min(first, at), max(last, at), requests + 1
        using[Arm.BASELINE].add(session, measure(exchange.baseline))
        using[Arm.CANDIDATE].add(session, measure(exchange.candidate))
        using[Arm.BASELINE_REPEAT].add(session, measure(exchange.repeat))
    traffic = traffic_of(run, store.counters(run.id), requests, last - first)
    uses = {arm: one.done() for arm, one in using.items()}
    return _outlook(run, uses, traffic, last - first, asked, benches, now=now)


def of_report(run: Run, seen: Gathered, counters: Mapping[str, int], *, now: float) -> Outlook | None:
    """The same for a report, of the pairs that it judged; ``None`` when no price is known."""
    asked, at = Asked(), seen.columns.at
    if not any(_price(run, arm, asked) for arm in ARMS):
        return None
    arms = {Arm.BASELINE: seen.columns.baseline, Arm.CANDIDATE: seen.columns.candidate}
    arms[Arm.BASELINE_REPEAT] = seen.columns.repeat
    uses = {arm: used_of(one, seen.prompt_tokens[arm], seen.columns.session) for arm, one in arms.items()}
    span = float(at[-1] - at[0]) if at.size else 0.0
    return _outlook(run, uses, traffic_of(run, counters, at.size, span), span, asked, {}, now=now)


_SHORTEST_S = 1.0


def traffic_of(run: Run, counters: Mapping[str, int], requests: int, span_s: float) -> float | None:
    """Requests of production a day: those of the run over the time in which they were admitted, and over the share that
    was recorded. ``None`` with fewer than two, or within a second: an import without times is no traffic."""
    seconds = counters.get("captured_span_s", span_s)
    if requests < 2 or not _SHORTEST_S <= seconds < math.inf:
        return None
    percent = run.config.get("shadow", {}).get("percent") if run.kind in _SAMPLED else None
    return requests / seconds * DAY_S / (float(percent) / 100 if percent else 1.0)


def _outlook(
    run: Run,
    uses: Mapping[Arm, Used],
    recorded: float | None,
    span_s: float,
    asked: Asked,
    benches: Mapping[Arm, Throughput],
    *,
    now: float,
) -> Outlook:
    arms = ARMS if run.config.get(Arm.CANDIDATE.value) else ARMS[:1]
    given = asked.traffic_per_day
    terms = Terms(
        traffic_per_day=recorded if given is None else given,
        traffic_recorded=given is None,
        run_s=max(0.0, (run.ended_at or now) - run.started_at),
        recorded_s=max(0.0, span_s),
        peak=asked.peak,
        migration=asked.migration,
        overlap_days=asked.overlap_days,
        stale_days=asked.stale_days,
    )
    sides = tuple(_side(run, arm, uses, asked, benches.get(arm)) for arm in arms)
    return outlook(sides, terms, now=now)


def _side(run: Run, arm: Arm, uses: Mapping[Arm, Used], asked: Asked, bench: Throughput | None) -> Side:
    price = _price(run, arm, asked)
    tokens = price.tokens if price else None
    backend = run.config.get(arm.value) or {}
    repeats = spent(uses[Arm.BASELINE_REPEAT], tokens) if arm is Arm.BASELINE else None
    return Side(
        arm=arm.value,
        name=f"{backend.get('kind')} at {backend.get('url')}",
        quote=price.quote if price else None,
        spent=spent(uses[arm], tokens),
        repeats=repeats,
        throughput=bench,
        usd_per_month=asked.engineering.get(arm, 0.0),
    )


def _price(run: Run, arm: Arm, asked: Asked) -> Price | None:
    """Of the configuration that was named, where it has one, else of the run."""
    config = asked.config
    backend = None if config is None else config.candidate if arm is Arm.CANDIDATE else config.baseline
    return backend.price if backend and backend.price else stored_price(run, arm)


def bench_throughput(path: Path) -> Throughput:
    """Requests a second within the limits of goodput: the best valid step of ``migrate bench --format json``.

    Raises ConfigError for anything else, and for a benchmark without limits.
    """
    try:
        data = orjson.loads(path.read_bytes())
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror})") from None
    except orjson.JSONDecodeError:
        data = None
    if not isinstance(data, dict) or data.get("schema") != BENCH:
        raise ConfigError(
            f"{path}: is no benchmark; write one with: migrate bench --format json --output {path}"
        )
    try:
        good = [found for step in data["steps"] if (found := _good(step)) is not None]
    except (LookupError, TypeError, ValueError, AttributeError):
        raise ConfigError(f"{path}: is damaged; measure again with migrate bench") from None
    if not good:
        raise ConfigError(
            f"{path}: has no valid step with a good answer; measure with migrate bench --goodput ttft=500ms,e2e=5s"
        )
    met, window = max(good, key=lambda one: one[0] / one[1])
    return measured_throughput(met, window, path.name)


def _good(step: Mapping[str, Any]) -> tuple[int, float] | None:
    """Answers that met every limit, and in how many seconds; ``None`` where none did, or the step is no evidence."""
    goodput, window = step["goodput"], step["window_s"]
    if step["invalid"] or goodput is None or window is None or not goodput["met"]:
        return None
    met, seconds = int(goodput["met"]), float(window)
    if not (0 < met < _MOST and 0 < seconds < _MOST):
        raise ValueError(met, seconds)
    return met, seconds
