"""``migrate plan``: how long a verdict will take, before anything runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import orjson

from migrate.commands.options import SEED, Between, duration, rate, share
from migrate.commands.output import printed, screen
from migrate.config import load_any
from migrate.errors import ConfigError, StoreError
from migrate.planning import Recorded, planned
from migrate.store import Store
from reports.plan import plan as make_plan
from reports.render.plan import render_json, render_terminal

_EPILOG = """\b
Examples:
  migrate plan --requests-per-minute 300
  migrate plan --config migrate.yaml --pairs-per-minute 5 --error-rate 1% --latency-median 2s
  migrate plan --run 20261201-081500-4f2a --format json | jq .verdict
\b
Exit codes: 0 a plan was made, 2 wrong use, 1 our own failure."""


def _hourly(ctx: click.Context, param: click.Parameter, value: str | None) -> float | None:
    try:
        found = None if value is None else rate(value)
    except ValueError:
        raise click.BadParameter(f"{value!r} is no number above 0, such as 30") from None
    if found is not None and found > _MOST_A_MINUTE:
        raise click.BadParameter(f"{value} is more than {_MOST_A_MINUTE:,} a minute")
    return None if found is None else 60 * found


_MOST_A_MINUTE = 10_000_000


def _median(ctx: click.Context, param: click.Parameter, value: str | None) -> float | None:
    seconds = duration(ctx, param, value)
    if seconds == 0:
        raise click.BadParameter("a median is above 0, such as 800ms")
    return seconds


def _rare(ctx: click.Context, param: click.Parameter, value: str | None) -> float | None:
    found = share(ctx, param, value)
    if found is not None and found > _MOST_FAILURES:
        raise click.BadParameter(
            f"{value} of the requests cannot fail before anything is compared; at most 50 %"
        )
    return found


_MOST_FAILURES = 0.5


@click.command(epilog=_EPILOG)
@click.option(
    "--config",
    "path",
    type=click.Path(path_type=Path),
    envvar="MIGRATE_CONFIG",
    help="Its policy and shadow settings are planned for. [default: migrate.yaml, when it is there]",
)
@click.option(
    "--requests-per-minute",
    "requests",
    metavar="N",
    callback=_hourly,
    help="Of production; shadow.percent of them become pairs.",
)
@click.option("--pairs-per-minute", "pairs", metavar="N", callback=_hourly, help="Instead: what is mirrored.")
@click.option(
    "--run",
    "run_id",
    help="A recorded run (see migrate runs) that traffic, errors and latencies are taken from.",
)
@click.option("--store", "url", help="Database URL of --run; default: store.url of the configuration.")
@click.option("--error-rate", callback=_rare, metavar="SHARE", help="Of each arm. [default: 0.5 %]")
@click.option(
    "--latency-median", "latency_s", callback=_median, metavar="TIME", help="End to end. [default: 800ms]"
)
@click.option(
    "--latency-spread",
    "spread",
    type=Between(0, 3),
    help="Standard deviation of the logarithm of latency. [default: 0.6, two thirds within 0.55 and 1.8 times the median]",
)
@click.option(
    "--ttft-median", "ttft_s", callback=_median, metavar="TIME", help="[default: a quarter of the latency]"
)
@click.option(
    "--noise",
    callback=share,
    metavar="SHARE",
    help="How often the baseline differs from its repeat. [default: 6 %]",
)
@click.option(
    "--turns",
    type=Between(1, 30),
    help="Requests of one conversation within an hour; together they count as one. [default: 1]",
)
@click.option("--seed", type=SEED, default=0, show_default=True)
@click.option(
    "--format", "form", type=click.Choice(["terminal", "json"]), default="terminal", show_default=True
)
def plan(
    path: Path | None,
    requests: float | None,
    pairs: float | None,
    run_id: str | None,
    url: str | None,
    seed: int,
    form: str,
    **given: Any,
) -> None:
    """Say how many hours GO and ROLLBACK will take, by each required rule and as a whole, before anything runs.

    Runs are drawn by chance and judged as the policy says. What is not given is taken from --run, else assumed; the output
    names what was. It sends nothing.
    """
    if pairs is not None and requests is not None:
        raise ConfigError("--pairs-per-minute and --requests-per-minute say the same: give one of them")
    config = load_any(path)
    recorded = (
        _recorded(url or (config.store.url if config else "sqlite:///migrate.db"), run_id) if run_id else None
    )
    told = {name: value for name, value in given.items() if value is not None}
    traffic, asked = planned(config, recorded, told, pairs=pairs, requests=requests)
    found = make_plan(asked.policy, traffic, seed=seed)
    if form == "json":
        printed(orjson.dumps(render_json(found, asked), option=orjson.OPT_INDENT_2).decode() + "\n")
    else:
        printed(render_terminal(found, asked, width=screen()[0]))


def _recorded(url: str, run_id: str) -> Recorded:
    """Raises ConfigError for a store or a run that is not there: nothing was started."""
    try:
        with Store.open(url) as store:
            return Recorded(store, store.run(run_id))
    except StoreError as error:
        raise ConfigError(str(error)) from None
