"""``migrate check``: both backends, side by side, before a run depends on them."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click
import orjson

from migrate.config import Config, load
from migrate.preflight import Line, preflight


@click.command()
@click.option(
    "--config",
    "path",
    type=click.Path(path_type=Path),
    default="migrate.yaml",
    envvar="MIGRATE_CONFIG",
    show_default=True,
)
@click.option(
    "--format", "form", type=click.Choice(["terminal", "json"]), default="terminal", show_default=True
)
def check(path: Path, form: str) -> None:
    """Check both backends: reachable, healthy, model known, one token answered. Exits 2 when one fails."""
    results = asyncio.run(_both(load(path)))
    if form == "json":
        data = {
            arm: [{"check": x.check, "passed": x.passed, "detail": x.detail} for x in lines]
            for arm, lines in results.items()
        }
        click.echo(orjson.dumps(data, option=orjson.OPT_INDENT_2).decode())
    else:
        for arm, lines in results.items():
            for line in lines:
                click.echo(f"{arm:<10} {line.check:<7} {'OK' if line.passed else 'FAIL':<5} {line.detail}")
    if not all(line.passed for lines in results.values() for line in lines):
        raise click.exceptions.Exit(2)


async def _both(config: Config) -> dict[str, tuple[Line, ...]]:
    model = config.baseline.model
    arms = {"baseline": preflight(config.baseline, model=model)}
    if config.candidate:
        named = config.candidate.models.get(model or "", config.candidate.model or model)
        arms["candidate"] = preflight(config.candidate, model=named)
    return dict(zip(arms, await asyncio.gather(*arms.values()), strict=True))
