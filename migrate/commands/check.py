"""``migrate check``: both backends, side by side, before a run depends on them."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Mapping
from dataclasses import asdict
from io import StringIO
from pathlib import Path
from time import monotonic

import click
import orjson
from rich.console import Console
from rich.table import Table
from rich.text import Text

from migrate.commands.output import printed, screen
from migrate.config import Config, load
from migrate.errors import StoreError
from migrate.preflight import Line, Result, preflight
from migrate.preflight.beside import Row, beside
from migrate.preflight.traffic import Uses, basis, uses
from migrate.store import Store

SCHEMA = {"name": "llm-migrate.check", "version": 1}
_AGAIN_S = 2.0
_SAY_AGAIN_S = 30.0
_CAPTURED = ("import", "capture", "shadow")
_LOOKED_AT = 2_000
_STYLES = {Result.OK: "green", Result.DIFFERS: "yellow", Result.FAIL: "bold red", Result.NOT_CHECKED: "dim"}
Arms = dict[str, tuple[Line, ...]]


@click.command(
    epilog="\b\nExit codes: 0 a run may start (also where a line says DIFFERS), 2 a line says FAIL, 130 interrupted."
)
@click.option(
    "--config",
    "path",
    type=click.Path(path_type=Path),
    default="migrate.yaml",
    envvar="MIGRATE_CONFIG",
    show_default=True,
)
@click.option("--watch", is_flag=True, help="Wait until both are healthy, as long as waiting can help.")
@click.option(
    "--format", "form", type=click.Choice(["terminal", "json"]), default="terminal", show_default=True
)
def check(path: Path, watch: bool, form: str) -> int:
    """Check both backends: name, TLS, key, health, model, an answer, and what each can do. Takes at most 10 seconds.

    About a dozen requests of a few tokens go to each backend. Exits 2 when something would make a run fail.
    """
    config = load(path)
    traffic = _traffic(config.store.url)
    arms = asyncio.run((_watched if watch else _both)(config, traffic))
    rows = beside(arms, traffic)
    said = basis(traffic, most=_LOOKED_AT)
    printed(_json(rows, traffic) if form == "json" else _screen(rows, list(arms), said))
    return 0 if all(row.result is not Result.FAIL for row in rows) else 2


async def _both(config: Config, traffic: Uses | None) -> Arms:
    model, fields = config.baseline.model, traffic.fields if traffic else {}
    arms = {"baseline": preflight(config.baseline, model=model, fields=fields)}
    if config.candidate:
        named = config.candidate.models.get(model or "", config.candidate.model or model)
        arms["candidate"] = preflight(config.candidate, model=named, fields=fields)
    return dict(zip(arms, await asyncio.gather(*arms.values()), strict=True))


async def _watched(config: Config, traffic: Uses | None) -> Arms:
    """Checks again and again, until nothing fails that time may heal."""
    start, said, said_at = monotonic(), "", 0.0
    while True:
        arms = await _both(config, traffic)
        failing = [(arm, line) for arm, lines in arms.items() for line in lines if not line.passed]
        if not failing or not all(line.passing for _, line in failing):
            return arms
        words = "; ".join(f"{arm}: {line.detail}" for arm, line in failing)
        if words != said or monotonic() - said_at > _SAY_AGAIN_S:
            click.echo(f"waiting ({monotonic() - start:.0f} s): {words}", err=True)
            said, said_at = words, monotonic()
        await asyncio.sleep(_AGAIN_S)


def _traffic(url: str) -> Uses | None:
    """What the latest captured requests use; ``None`` without a store on this machine to look into."""
    if not url.startswith("sqlite:"):
        return None  # a check waits for no database
    try:
        with Store.open(url) as store:
            for run in reversed(store.runs()):
                if run.kind in _CAPTURED and store.count(run.id):
                    found = itertools.islice(store.captured(run.id), _LOOKED_AT)
                    return uses(request.body for request, _ in found)
    except StoreError:
        pass  # a store that is not there yet has none
    return uses(())


def _json(rows: tuple[Row, ...], traffic: Uses | None) -> str:
    data = {
        "schema": SCHEMA,
        "passed": all(row.result is not Result.FAIL for row in rows),
        "captured_requests": None if traffic is None else traffic.requests,
        "checks": [
            {
                "check": row.check,
                "result": row.result,
                "changes": row.changes,
                "backends": {arm: _side(line) for arm, line in row.sides.items()},
            }
            for row in rows
        ],
    }
    return orjson.dumps(data, option=orjson.OPT_INDENT_2).decode() + "\n"


def _side(line: Line) -> Mapping[str, object]:
    return {name: value for name, value in asdict(line).items() if name not in ("check", "passing")}


def _screen(rows: tuple[Row, ...], arms: list[str], said: str) -> str:
    """The table, below it what to change, and what was ``said`` of its basis."""
    width, colours = screen()
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), width=width)
    table.add_column("check", no_wrap=True)
    table.add_column("result", no_wrap=True)
    for arm in arms:
        table.add_column(arm, ratio=1, overflow="fold")
    for row in rows:
        sides = [Text(row.sides[arm].detail if arm in row.sides else "not checked") for arm in arms]
        table.add_row(row.check, Text(row.result, style=_STYLES[row.result]), *sides)
    console = Console(
        file=StringIO(), width=width, force_terminal=colours, no_color=not colours, highlight=False
    )
    console.print(table)
    changes = [(row, change) for row in rows for change in row.changes]
    for row, change in changes:
        console.print(Text(f"{row.result} {row.check}", style=_STYLES[row.result]), Text(f"→ {change}"))
    console.print(Text(said))
    assert isinstance(console.file, StringIO)  # noqa: S101 - it was made above
    return "".join(f"{line.rstrip()}\n" for line in console.file.getvalue().splitlines())
