"""``migrate runs``: what has been recorded."""

from __future__ import annotations

from datetime import UTC, datetime

import click
import orjson

from migrate.store import Run, Store


@click.command()
@click.option("--store", "url", default="sqlite:///migrate.db", show_default=True, help="Database URL.")
@click.option(
    "--format", "form", type=click.Choice(["terminal", "json"]), default="terminal", show_default=True
)
def runs(url: str, form: str) -> None:
    """List recorded runs, the oldest first."""
    with Store.open(url) as store:
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
