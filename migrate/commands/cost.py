"""``migrate cost``: what a run says of the money, at today's traffic or another."""

from __future__ import annotations

import math
import re
import time
from functools import partial
from pathlib import Path
from typing import Any

import click

from migrate.commands.options import Between, duration, of_a_run
from migrate.commands.output import printed, screen
from migrate.config import load, load_any
from migrate.costing import Asked, of_run
from migrate.errors import ConfigError, StoreError
from migrate.store import Store
from replay.exchange import Arm
from replay.units import parse_count
from reports.costing import DAY_S, MOST_REQUESTS
from reports.render.costs import render_json, render_terminal
from reports.render.json import indented

_EPILOG = """\b
Examples:
  migrate cost
  migrate cost --run 20261201-081500-4f2a --traffic 50k/day
  migrate cost --traffic 300/min --peak 3 --candidate-bench bench.json --migration 40000 --candidate-engineering 3000
  migrate cost --config prices-of-today.yaml --format json | jq .joint
\b
Exit codes: 0 done, 2 wrong use, 1 our own failure."""

_TRAFFIC = re.compile(r"([^/]+)(?:/(s|min|h|day))?")
_DAYS = {None: 1.0, "day": 1.0, "h": 24.0, "min": 1440.0, "s": DAY_S}
_DOLLARS = Between(0, 1e9)


def _traffic(ctx: click.Context, param: click.Parameter, value: str | None) -> float | None:
    """``50k/day`` as requests a day."""
    if value is None:
        return None
    match = _TRAFFIC.fullmatch(value.strip())
    try:
        found = parse_count(match[1]) * _DAYS[match[2]] if match else 0.0
    except ValueError:
        found = 0.0
    if found <= 0 or not math.isfinite(found):
        raise click.BadParameter(f"{value!r} is no traffic above 0, such as 50k/day, 2000/h, 300/min or 5/s")
    if found > MOST_REQUESTS:
        raise click.BadParameter(f"{value} is more than {MOST_REQUESTS:,.0f} requests a day")
    return found


@click.command(epilog=_EPILOG)
@partial(
    of_a_run,
    named="Its prices go before those that the run was started with. [default: the run's; the store of migrate.yaml]",
)
@click.option(
    "--traffic",
    callback=_traffic,
    metavar="N/day",
    help="Requests of production: 50k/day, 2000/h, 300/min or 5/s. [default: as the run recorded]",
)
@click.option(
    "--peak",
    type=Between(1, 1000),
    default=1.0,
    show_default=True,
    help="The busiest moment's traffic over the day's mean, which GPUs have to carry.",
)
@click.option(
    "--baseline-bench",
    type=click.Path(dir_okay=False, path_type=Path),
    help="migrate bench --goodput --format json of one replica: what it carries. [default: price.throughput]",
)
@click.option("--candidate-bench", type=click.Path(dir_okay=False, path_type=Path), help="The same.")
@click.option(
    "--baseline-engineering", type=_DOLLARS, default=0.0, metavar="USD", help="A month, to keep it running."
)
@click.option("--candidate-engineering", type=_DOLLARS, default=0.0, metavar="USD", help="The same.")
@click.option("--migration", type=_DOLLARS, default=0.0, metavar="USD", help="Once, to move.")
@click.option(
    "--overlap",
    callback=duration,
    default="7d",
    show_default=True,
    metavar="TIME",
    help="How long the baseline is kept ready after the move; what a rollback costs is for its end.",
)
@click.option(
    "--stale-after",
    callback=duration,
    default="90d",
    show_default=True,
    metavar="TIME",
    help="Prices older than this are said.",
)
@click.option(
    "--format", "form", type=click.Choice(["terminal", "json"]), default="terminal", show_default=True
)
def cost(path: Path | None, url: str | None, run_id: str | None, form: str, **given: Any) -> None:
    """Say what both backends of a run cost: a request, a day, a month, 12 and 36 months, and the traffic at which one
    becomes the cheaper.

    Each figure comes low, expected and high. Prices are taken from price: of the configuration; what is missing or old is
    said, and never taken as 0. docs/cost.md works each figure by hand.
    """
    config = load_any(path)
    asked = _asked(path, given)
    try:
        with Store.open(url or (config.store.url if config else "sqlite:///migrate.db")) as store:
            run = store.run(run_id)
            found = of_run(store, run, asked, now=time.time())
    except StoreError as error:
        raise ConfigError(str(error)) from None
    if form == "json":
        printed(indented(render_json(found, run.id)))
    else:
        printed(render_terminal(found, run.id, width=screen()[0]))


def _asked(path: Path | None, given: dict[str, Any]) -> Asked:
    return Asked(
        config=load(path) if path else None,
        traffic_per_day=given["traffic"],
        peak=given["peak"],
        migration=given["migration"],
        overlap_days=given["overlap"] / DAY_S,
        stale_days=given["stale_after"] / DAY_S,
        benches={Arm.BASELINE: given["baseline_bench"], Arm.CANDIDATE: given["candidate_bench"]},
        engineering={
            Arm.BASELINE: given["baseline_engineering"],
            Arm.CANDIDATE: given["candidate_engineering"],
        },
    )
