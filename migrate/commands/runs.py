"""``migrate runs``: what has been recorded."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import click
import orjson

from migrate.config import load
from migrate.store import Run, Store


@click.command()
@click.option(
    "--config",
    "path",
    type=click.Path(path_type=Path),
    envvar="MIGRATE_CONFIG",
    help="Names the store. [default: migrate.yaml, when there is one]",
)
@click.option("--store", "url", help="Database URL; default: store.url of the configuration.")
@click.option(
    "--format", "form", type=click.Choice(["terminal", "json"]), default="terminal", show_default=True
)
def runs(path: Path | None, url: str | None, form: str) -> None:
    """List recorded runs, the oldest first."""
    if url is None and (path is not None or Path("migrate.yaml").exists()):
        url = load(path or "migrate.yaml").store.url
    with Store.open(url or "sqlite:///migrate.db") as store:
        found = store.runs()
    if form == "json":
        rows = [
            {"id": r.id, "kind": r.kind, "status": r.status, "started_at": _time(r.started_at)} for r in found
        ]
        click.echo(orjson.dumps(rows, option=orjson.OPT_INDENT_2).decode())
        return
    for run in found:
        click.echo(f"{run.id}  {run.kind:<8} {run.status:<8} {_time(run.started_at)}  {_lasted(run)}")


def _time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _lasted(run: Run) -> str:
    return "not ended" if run.ended_at is None else f"{run.ended_at - run.started_at:.0f} s"
