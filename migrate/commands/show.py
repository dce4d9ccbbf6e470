"""``migrate show``: one recorded pair, side by side."""

from __future__ import annotations

from pathlib import Path

import click

from migrate.commands.options import of_a_run
from migrate.commands.output import for_a_log, printed, screen
from migrate.commands.recorded import Recorded, recorded
from migrate.errors import ConfigError, StoreError
from migrate.gathering import compared
from migrate.store.nearest import closest, holders
from replay.exchange import Exchange
from reports.render.json import indented
from reports.render.pair import as_json, render_terminal

_EPILOG = """\b
Examples:
  migrate pairs --finding 'tools.*'
  migrate show 8035b72a4b1e976d7aa8ab807292ca48
  migrate show 8035b72a4b1e976d7aa8ab807292ca48 --format json | jq .findings
\b
In both answers [-these words-] are only the baseline's and {+these+} only the candidate's.
Exit codes: 0 done, 2 wrong use, 1 our own failure."""


@click.command(epilog=_EPILOG)
@click.argument("pair")
@of_a_run
@click.option(
    "--format", "form", type=click.Choice(["terminal", "json"]), default="terminal", show_default=True
)
@click.option("--quiet", is_flag=True, help="No progress.")
def show(pair: str, path: Path | None, url: str | None, run_id: str | None, form: str, quiet: bool) -> None:
    """Show one PAIR of a run: what was asked, both answers side by side, what differs, and when each part came.

    PAIR is an id as migrate pairs, migrate report and every other document name it.
    """
    with recorded(path, url, run_id, quiet=quiet) as found:
        exchange = _exchange(found, pair)
        (item,) = compared(found.store, found.run, found.rules, found.embed, found.second, [pair])
    if form == "json":
        printed(indented(as_json(item, exchange, found.run.id)))
    else:
        width, colour = screen()
        printed(for_a_log(render_terminal(item, exchange, found.run.id, width=width, colour=colour)))


def _exchange(found: Recorded, pair: str) -> Exchange:
    """Raises ConfigError that names the run which has it, else the closest ids."""
    try:
        return found.store.exchange(found.run.id, pair)
    except StoreError as error:
        if others := holders(found.store, pair):
            raise ConfigError(f"{error}; another run does: --run {others[0]}") from None
        near = closest(found.store, found.run.id, pair)
        hint = f"did you mean {' or '.join(near)}?" if near else "migrate pairs lists some"
        raise ConfigError(f"{error}; {hint}") from None
