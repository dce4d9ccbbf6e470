"""One benchmark from beginning to end: each load is a replay into a run of its own, then figures from what was stored."""

from __future__ import annotations

import asyncio
import itertools
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx

from migrate.config import Backend, Config
from migrate.errors import ConfigError
from migrate.presets import facts_of
from migrate.redact import Redactor
from migrate.replaying.plan import Plan
from migrate.replaying.play import INTERRUPTED, Ending, Play, Work
from migrate.replaying.prepare import Prepare
from migrate.store import Store
from migrate.workload import Workload
from replay.client import Call
from replay.client import Client as Sending
from replay.decoding import observe
from replay.exchange import Arm, Failure, Fault, Observation, Request
from replay.prometheus import Reading, reading
from replay.scraper import UNKNOWN, scraping
from reports.benchmark import Client, Figures, Load
from reports.figures import figures
from reports.render.benchmark import asked

_TRIES = 3
_WITHIN_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """What is measured, and how."""

    config: Config
    arm: Arm
    """Whose server: the baseline's or the candidate's."""
    model: str | None
    """What is asked for; ``None``: what each request names."""
    workload: Workload
    loads: Sequence[Load]
    limits: Mapping[str, float] = field(default_factory=dict)
    """Of goodput, seconds."""
    warmup: int = 0
    """Requests before each step."""
    nonce: bool = True
    seed: int = 0
    lag_limit: float = 0.01
    """Seconds."""
    quiet: bool = False

    def plan(self, number: int) -> Plan:
        """The replay that is one step. Chance is another one in each."""
        load = self.loads[number]
        shared: dict[str, Any] = {
            "source": self.workload.name,
            "to": self.arm.value,
            "nonce": self.nonce,
            "seed": self.seed + number,
            "lag_limit": self.lag_limit,
        }
        if load.rate_per_s is None:
            return Plan(concurrency=load.concurrency, limit=load.requests, **shared)
        return Plan(sweep=((load.rate_per_s,), load.time_s), burstiness=load.burstiness, **shared)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One load that was measured to its end."""

    run: str
    """In the store."""
    figures: Figures


@dataclass(slots=True)
class Measured:
    """The steps so far, and why there are no more."""

    steps: list[Step] = field(default_factory=list)
    code: int = 0
    """0, 130 after Ctrl-C, 4 when a day's budget had no room for the rest."""
    why: str = ""


def backend_of(config: Config, arm: Arm) -> Backend:
    """The server of an arm. Raises ConfigError when there is none."""
    found = config.candidate if arm is Arm.CANDIDATE else config.baseline
    if found is None:
        raise ConfigError("the configuration has no candidate:; add one, or measure --to baseline")
    return found


def without_retries(config: Config) -> Config:
    """Nothing is sent a second time: what a client meets is what is measured."""
    once = config.shadow.retry.model_copy(update={"attempts": 1})
    return config.model_copy(update={"shadow": config.shadow.model_copy(update={"retry": once})})


def only_model(backend: Backend) -> str:
    """The model that a server lists. Raises ConfigError when it lists none, or several."""
    key = backend.api_key()
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    try:
        answer = httpx.get(f"{backend.url}/v1/models", headers=headers, timeout=_WITHIN_S, trust_env=False)
        found = [entry["id"] for entry in answer.json()["data"]]
    except httpx.HTTPError as error:
        raise ConfigError(f"{backend.url} cannot be reached: {error}; is it running?") from None
    except (ValueError, LookupError, TypeError):
        raise ConfigError(f"{backend.url} does not say which models it has; name one with --model") from None
    if len(found) != 1:
        raise ConfigError(
            f"{backend.url} has {', '.join(map(str, found)) or 'no models'}; name one with --model"
        )
    return str(found[0])


def probe(bench: Bench) -> None:
    """One request, a few times if need be, so that what fails always fails before anything is measured.

    Raises ConfigError with what the server said.
    """
    redactor = Redactor(bench.config.redact, secrets.token_bytes(32))
    prepare = Prepare(bench.config, bench.plan(0), redactor, known={})
    prompts = itertools.islice(bench.workload.probes(secrets.token_hex(4)), _TRIES)
    ready = [one for prompt in prompts if (one := prepare.ready(prompt)) is not None]
    if not ready:
        raise ConfigError(f"{bench.workload.name}: cannot be sent ({', '.join(prepare.unusable)})")
    failure = asyncio.run(_failure([(one.request.path, one.calls[bench.arm]) for one in ready]))
    if failure is not None:
        raise ConfigError(f"{backend_of(bench.config, bench.arm).url} did not answer: {failure.message}")


async def _failure(calls: Sequence[tuple[str, Call]]) -> Failure | None:
    """Why none of the calls was answered; ``None`` when one was. A fault of ours is the same each time."""
    failure = None
    async with Sending() as sending:
        for path, call in calls:
            seen = observe(
                await sending.send(call), request_id="", arm=Arm.BASELINE, at=time.time(), path=path
            )
            failure = seen.failure
            if failure is None or failure.error_class.fault is Fault.CLIENT:
                break
    return failure


def measure(store: Store, bench: Bench) -> Measured:
    """One step after the other, each on a server that is idle again. A step that was cut is left out."""
    measured = Measured()
    try:
        for number in range(len(bench.loads)):
            run, ending, seen = _played(store, bench, number)
            if ending.code:
                measured.code, measured.why = ending.code, ending.why
                break
            measured.steps.append(Step(run=run, figures=_figures(store, run, bench, number, seen)))
    except KeyboardInterrupt:
        measured.code = INTERRUPTED
    return measured


@dataclass(frozen=True, slots=True)
class Repeated:
    """The workload's requests, so many, under ids that ``mark`` makes new."""

    workload: Workload
    mark: str
    count: int

    def __call__(self, store: Store) -> Iterator[tuple[Request, float | None]]:
        return zip(
            itertools.islice(self.workload.requests(self.mark), self.count),
            itertools.repeat(None),
            strict=False,
        )


class Readings:
    """What a server said beside a load, read when that is over."""

    def __init__(self) -> None:
        self._taken: list[tuple[float, bytes]] = []

    async def keep(self, lines: bytes) -> None:
        """One look's lines."""
        self._taken.append((time.monotonic(), lines))

    def read(self) -> list[Reading]:
        """In order."""
        return [reading(at, lines) for at, lines in self._taken]


def _played(store: Store, bench: Bench, number: int) -> tuple[str, Ending, Readings]:
    load, plan, mark = bench.loads[number], bench.plan(number), secrets.token_hex(4)
    total = load.requests or sum(1 for _ in plan.times(()))  # chance has drawn them beforehand
    run = store.begin_run(
        kind="bench",
        config=bench.config.model_dump(mode="json", by_alias=True) | {"bench": plan.model_dump(mode="json")},
        policy={},
        seed=plan.seed,
        at=time.time(),
    )
    backend, readings = backend_of(bench.config, bench.arm), Readings()
    pages = facts_of(backend.kind, backend.preset).metrics if backend.kind == "tensorrt-llm" else UNKNOWN
    work = Work(
        title=f"step {number + 1} of {len(bench.loads)}: {asked(load)}",
        captured=Repeated(bench.workload, mark, total),
        total=total,
        warmup=bench.workload.warmup(mark, bench.warmup),
        beside=scraping(backend.url, readings.keep, pages=pages),
    )
    ending = Play(store, bench.config, run, plan, work, grace=0.0, quiet=bench.quiet).run()
    return run, ending, readings


def _figures(store: Store, run: str, bench: Bench, number: int, seen: Readings) -> Figures:
    counters = store.counters(run)
    return figures(
        bench.loads[number],
        _observations(store, run, bench.arm),
        client=Client(
            lag_limit_s=bench.lag_limit,
            loop_lag_p99_s=counters.get("replay_loop_lag_p99_us", 0) / 1e6,
            cpu_share=counters.get("replay_cpu_permille", 0) / 1e3,
            held_s=counters.get("replay_held_ms", 0) / 1e3,
        ),
        readings=seen.read(),
        limits=bench.limits,
    )


def _observations(store: Store, run: str, arm: Arm) -> Iterator[Observation | None]:
    for exchange in store.exchanges(run):
        yield exchange.candidate if arm is Arm.CANDIDATE else exchange.baseline
