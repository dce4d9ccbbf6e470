"""``migrate bench``: one server, one workload, several loads; the figures that people compare servers with."""

from __future__ import annotations

import contextlib
import math
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
from pydantic import ValidationError

from migrate.bench import Bench, Measured, backend_of, measure, only_model, probe, without_retries
from migrate.commands.options import SEED, Between, duration, fields, rate
from migrate.config import Backend, Config, GatewaySection, load
from migrate.errors import ConfigError, MigrateError, StoreError
from migrate.files import room_for
from migrate.store import Store
from migrate.workload import from_demo, from_file, from_run, workload
from replay.exchange import Arm, Request
from replay.units import parse_duration
from reports.benchmark import LIMITS, Benchmark, Load
from reports.document import iso
from reports.render.benchmark import render_json, render_terminal
from reports.render.plot import svg

_EPILOG = """\b
Examples:
  migrate bench --url http://127.0.0.1:8000 --rates 1,2,4,8 --time 30s
  migrate bench --url http://127.0.0.1:8000 --concurrency 1,8,32 --requests 200
  migrate bench --config migrate.yaml --to candidate --rates 5 --goodput ttft=500ms,tpot=50ms
  migrate bench --config migrate.yaml --store sqlite:///migrate.db --run 20261201-101500-ab12 --rates 2,4
  migrate bench --url http://127.0.0.1:8000 --prompts mine.jsonl --rates 4 --format json --plot bench.svg
\b
Every figure is defined in docs/bench.md and in the JSON output.
Exit codes: 0 done, 2 wrong use, 4 a step is INVALID, 130 interrupted (what was done is shown)."""
_WIDEST = 120
_MOST = 10_000_000
"""Requests of a step: their moments are drawn before it begins."""
_LOOPS = {"rates": ("time", "burstiness"), "concurrency": ("requests",)}
"""Which options belong to which loop."""


def _rates(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[float, ...] | None:
    try:
        return None if value is None else tuple(rate(one) for one in value.split(","))
    except ValueError:
        raise click.BadParameter(f"{value!r} is not RATE,RATE,…, such as 1,2,4,8") from None


def _counts(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[int, ...] | None:
    try:
        found = None if value is None else tuple(int(one) for one in value.split(","))
    except ValueError:
        found = (0,)
    if found is not None and min(found) < 1:
        raise click.BadParameter(f"{value!r} is not COUNT,COUNT,…, such as 1,8,32")
    return found


def _limits(ctx: click.Context, param: click.Parameter, value: str | None) -> dict[str, float]:
    found: dict[str, float] = {}
    for part in value.split(",") if value else ():
        name, equals, text = part.strip().partition("=")
        if name not in LIMITS or not equals:
            raise click.BadParameter(
                f"{part!r} is not one of {', '.join(LIMITS)} with a time, such as ttft=500ms"
            )
        try:
            found[name] = parse_duration(text)
        except ValueError as error:
            raise click.BadParameter(str(error)) from None
    return found


@click.command(epilog=_EPILOG)
@click.option("--url", metavar="URL", help="The server's address; or a configuration:")
@click.option(
    "--config",
    "path",
    type=click.Path(path_type=Path),
    envvar="MIGRATE_CONFIG",
    help="[default: migrate.yaml, without --url]",
)
@click.option(
    "--to",
    type=click.Choice(["baseline", "candidate"]),
    default="baseline",
    show_default=True,
    help="Whose server of the configuration.",
)
@click.option(
    "--model", metavar="NAME", help="[default: the configuration's, or the only one that is served]"
)
@click.option("--api-key-env", metavar="NAME", help="Environment variable with the key of --url.")
@click.option(
    "--rates", callback=_rates, metavar="RATE,…", help="Open loop: so many requests a second, one step each."
)
@click.option(
    "--time",
    callback=duration,
    default="30s",
    show_default=True,
    metavar="TIME",
    help="Of each step of --rates.",
)
@click.option(
    "--burstiness",
    type=Between(min=0, max=100),
    default=1.0,
    show_default=True,
    help="Of --rates: 1 Poisson, above in bursts, 0 constant.",
)
@click.option(
    "--concurrency", callback=_counts, metavar="COUNT,…", help="Closed loop: so many at once, one step each."
)
@click.option(
    "--requests",
    type=click.IntRange(min=1),
    default=200,
    show_default=True,
    help="Of each step of --concurrency.",
)
@click.option(
    "--prompts",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Requests, one JSON object a line, as import reads them. [default: 32 of the demo]",
)
@click.option("--run", "source", metavar="ID", help="A captured run of --store, instead.")
@click.option(
    "--store", "store_url", metavar="URL", help="Keep what was observed there. [default: nothing is kept]"
)
@click.option(
    "--set",
    "overrides",
    multiple=True,
    callback=fields,
    metavar="NAME=VALUE",
    help="A field of every body, such as max_tokens=256; repeatable.",
)
@click.option(
    "--nonce/--no-nonce",
    default=True,
    show_default=True,
    help="A few letters before each prompt, so that no prefix cache helps.",
)
@click.option(
    "--warmup",
    type=click.IntRange(min=0),
    default=8,
    show_default=True,
    help="Requests before each step that are not counted, with prompts of their own.",
)
@click.option(
    "--goodput",
    "limits",
    callback=_limits,
    metavar="ttft=TIME,…",
    help="Count the requests within all of these limits: ttft, tpot, e2e.",
)
@click.option(
    "--lag-limit",
    callback=duration,
    default="10ms",
    show_default=True,
    metavar="TIME",
    help="How late the 99th percentile may leave; beyond it a step is INVALID.",
)
@click.option("--seed", type=SEED, default=0, show_default=True, help="Of the arrivals.")
@click.option(
    "--format", "form", type=click.Choice(["terminal", "json"]), default="terminal", show_default=True
)
@click.option(
    "--output",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    help="[default: standard output]",
)
@click.option(
    "--plot",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    help="Latency against throughput, SVG.",
)
@click.option("--quiet", is_flag=True, help="Say only what goes wrong.")
@click.pass_context
def bench(
    ctx: click.Context,
    /,
    store_url: str | None,
    form: str,
    output: Path | None,
    plot: Path | None,
    **options: Any,
) -> int:
    """Measure one server under several loads, one after the other.

    An open loop (--rates) sends when a request is due, as independent users do; a closed loop (--concurrency) when an
    earlier one has ended, so that a slow server is asked less. Streams and usage are asked for.
    """
    loads = _loads(ctx, options)
    for file in (output, plot):
        if file is not None and not file.parent.is_dir():
            raise ConfigError(f"{file}: there is no folder {file.parent}")
    config, arm = _target(ctx, options)
    room_for(max(load.concurrency or 0 for load in loads))
    started = datetime.now(UTC)
    with _store(store_url, create=options["source"] is None) as store:
        plan = _bench(store, config, arm, loads, options)
        probe(plan)
        measured = measure(store, plan)
    document = _document(plan, measured, options, started, kept=store_url is not None)
    _emit(render_json(document) if form == "json" else _screen(document, output), output)
    if plot is not None:
        _emit(svg(document), plot)
    if measured.code:
        many = f"{len(measured.steps)} of {len(loads)} steps were measured"
        click.echo(f"{'interrupted' if measured.code == 130 else measured.why}; {many}", err=True)
    return measured.code or (4 if any(step.figures.invalid for step in measured.steps) else 0)


def _loads(ctx: click.Context, options: dict[str, Any]) -> list[Load]:
    if (options["rates"] is None) == (options["concurrency"] is None):
        raise ConfigError("give --rates 1,2,4,8 for an open loop or --concurrency 1,8,32 for a closed one")
    other = "rates" if options["rates"] is None else "concurrency"
    for name in _LOOPS[other]:
        if ctx.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE:
            raise ConfigError(f"--{name} belongs to --{other}")
    if options["rates"] is None:
        return [Load(concurrency=many, requests=options["requests"]) for many in options["concurrency"]]
    if not options["time"]:
        raise ConfigError("--time has to be above 0")
    if max(options["rates"]) * options["time"] > _MOST:
        raise ConfigError(f"a step of more than {_MOST:,} requests: lower --rates or --time")
    shared = {"time_s": options["time"], "burstiness": options["burstiness"]}
    return [Load(rate_per_s=one, **shared) for one in options["rates"]]


def _target(ctx: click.Context, options: dict[str, Any]) -> tuple[Config, Arm]:
    """The configuration, and whose server of it is meant."""
    url, key = options["url"], options["api_key_env"]
    if url is None:
        if key is not None:
            raise ConfigError("--api-key-env belongs to --url; a configuration names its keys itself")
        config = load(options["path"] or "migrate.yaml")
        arm = Arm(options["to"])
        backend_of(config, arm)
        return without_retries(config), arm
    for name in ("path", "to"):
        if ctx.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE:
            raise ConfigError("--url and a configuration are two servers; give one")
    try:
        backend = Backend(kind="vllm", url=url, api_key_env=key)
    except ValidationError as error:
        raise ConfigError(f"--url: {error.errors()[0]['msg'].removeprefix('Value error, ')}") from None
    # Nothing listens here: an address is not refused for being the gateway's usual one.
    config = Config(baseline=backend, gateway=GatewaySection(listen="127.0.0.1:0"))
    return without_retries(config), Arm.BASELINE


@contextlib.contextmanager
def _store(url: str | None, *, create: bool) -> Iterator[Store]:
    """The store that was named, or one that is gone afterwards."""
    if url is not None:
        with Store.open(url, create=create) as store:
            yield store
        return
    if not create:
        raise ConfigError("--run is looked for in a store; name it with --store")
    with (
        tempfile.TemporaryDirectory(prefix="migrate-bench-") as folder,
        Store.open(f"sqlite:///{folder}/bench.db", create=True) as store,
    ):
        yield store


def _bench(store: Store, config: Config, arm: Arm, loads: Sequence[Load], options: dict[str, Any]) -> Bench:
    """Raises ConfigError for a workload that cannot be had."""
    most = max(load.requests or math.ceil((load.rate_per_s or 0) * (load.time_s or 0)) for load in loads)
    name, prompts, model = _prompts(store, config, arm, options)
    found = workload(
        name,
        prompts,
        options["overrides"] | ({"model": options["model"]} if options["model"] else {}),
        most=most + options["warmup"],
        warmup=options["warmup"],
        nonce=options["nonce"],
    )
    kept = {name: options[name] for name in ("limits", "warmup", "nonce", "seed", "lag_limit", "quiet")}
    return Bench(config=config, arm=arm, model=model, workload=found, loads=loads, **kept)


def _prompts(
    store: Store, config: Config, arm: Arm, options: dict[str, Any]
) -> tuple[str, Iterator[Request], str | None]:
    """Where the requests are from, the requests, and the model that is asked for; a captured run names its own."""
    path, source, model = options["prompts"], options["source"], options["model"]
    if path is not None and source is not None:
        raise ConfigError("--prompts and --run are two workloads; give one")
    if source is not None:
        try:
            run = store.run(source).id
        except StoreError as error:
            raise ConfigError(str(error)) from None
        return f"run {run}", from_run(store, run), model
    backend = backend_of(config, arm)
    model = model or config.baseline.model or backend.model or only_model(backend)
    return ("demo", from_demo(model), model) if path is None else (str(path), from_file(path, model), model)


def _document(
    bench: Bench, measured: Measured, options: dict[str, Any], started: datetime, *, kept: bool
) -> Benchmark:
    return Benchmark(
        url=backend_of(bench.config, bench.arm).url,
        model=bench.model,
        started_at=iso(started.timestamp()),
        workload=bench.workload.name,
        prompts=len(bench.workload.measured),
        warmup=bench.warmup,
        nonce=bench.nonce,
        fields=options["overrides"],
        seed=bench.seed,
        runs=tuple(step.run for step in measured.steps) if kept else (),
        steps=tuple(step.figures for step in measured.steps),
    )


def _screen(document: Benchmark, output: Path | None) -> str:
    """For where it goes; what the encoding of a terminal does not know becomes ``?``."""
    if output is not None:
        return render_terminal(document, width=_WIDEST)
    text = render_terminal(document, width=min(_WIDEST, shutil.get_terminal_size((80, 24)).columns))
    encoding = sys.stdout.encoding or "utf-8"
    return text.encode(encoding, "replace").decode(encoding)


def _emit(text: str, target: Path | None) -> None:
    if target is None:
        click.echo(text, nl=False)
        return
    try:
        target.write_text(text, encoding="utf-8")
    except OSError as error:
        raise MigrateError(f"{target}: cannot be written: {error.strerror}") from None
    click.echo(f"wrote {target}", err=True)
