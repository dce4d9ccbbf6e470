"""``migrate pairs``: those pairs of a run that somebody asks for."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import click

from migrate.commands.options import duration, of_a_run
from migrate.commands.output import for_a_log, printed, screen
from migrate.commands.recorded import recorded
from migrate.report import Look, look_at
from replay.exchange import Outcome
from reports.gathered import Gathered
from reports.judgement import Severity
from reports.render.json import indented
from reports.render.listed import as_json, render_terminal
from reports.shown import Item
from reports.slicing import DIMENSIONS
from reports.tabular import pairs_csv
from reports.wanted import Wanted, causes, fits, ids, shares

_AT_ONCE = 64
"""Pairs that are looked at together."""
_EPILOG = """\b
Examples:
  migrate pairs --finding 'tools.*' --limit 20
  migrate pairs --severity BLOCK --format json | jq -r '.pairs[].id'
  migrate pairs --slower 2s
  migrate pairs --outcome timeout --format csv
\b
Exit codes: 0 done, also where no pair fits, 2 wrong use, 1 our own failure."""


@click.command(epilog=_EPILOG)
@click.option(
    "--finding",
    metavar="PATTERN",
    help="A finding's category, or a pattern such as 'tools.*' (docs/findings.md has all of them).",
)
@click.option(
    "--severity",
    type=click.Choice([one.value for one in Severity], case_sensitive=False),
    help="Of the pair's gravest finding; INVALID is what could not be scored.",
)
@click.option(
    "--outcome",
    type=click.Choice([one.value for one in Outcome], case_sensitive=False),
    help="Of the candidate's request.",
)
@click.option(
    "--slower",
    callback=duration,
    metavar="TIME",
    help="The candidate took longer, end to end, by more than this (500ms, 2s); the slowest first.",
)
@click.option("--limit", type=click.IntRange(1, 10_000), default=20, show_default=True, help="Most pairs.")
@of_a_run
@click.option(
    "--format", "form", type=click.Choice(["terminal", "json", "csv"]), default="terminal", show_default=True
)
@click.option("--quiet", is_flag=True, help="No progress.")
def pairs(
    finding: str | None,
    severity: str | None,
    outcome: str | None,
    slower: float | None,
    limit: int,
    path: Path | None,
    url: str | None,
    run_id: str | None,
    form: str,
    quiet: bool,
) -> None:
    """List the pairs of a run of which all that is asked for holds, the gravest first.

    migrate show has each of them side by side. All pairs, and all their findings: migrate report --format csv.
    """
    wanted = Wanted(
        finding=finding,
        severity=Severity(severity) if severity else None,
        outcome=Outcome(outcome) if outcome else None,
        slower_s=slower,
    )
    with recorded(path, url, run_id, quiet=quiet) as found:
        seen, look = look_at(found.store, found.run, found.rules, found.embed, found.second)
        more = list(islice(_fitting(seen, look, wanted), limit + 1))
    items = more[:limit]
    if form == "json":
        printed(indented(as_json(items, found.run.id, complete=len(more) <= limit)))
    elif form == "csv":
        printed(pairs_csv(items, DIMENSIONS))
    else:
        width, colour = screen()
        printed(for_a_log(render_terminal(items, pattern=finding, width=width, colour=colour)))
    _told(seen, wanted, len(items), more=len(more) > limit)


def _fitting(seen: Gathered, look: Look, wanted: Wanted) -> Iterator[Item]:
    """Looked at until no other can fit."""
    candidates = ids(seen, wanted)
    left = None if wanted.finding is None else sum(one.count for one in causes(seen, wanted.finding))
    while (left is None or left > 0) and (some := list(islice(candidates, _AT_ONCE))):
        items = look(some)
        if wanted.finding is not None and left is not None:
            left -= sum(shares(item, wanted.finding) for item in items)
        yield from (item for item in items if fits(item, wanted))


def _told(seen: Gathered, wanted: Wanted, count: int, *, more: bool) -> None:
    """What the list alone does not say."""
    if more:
        click.echo(f"migrate: the first {count}; more fit (--limit)", err=True)
    elif not count and wanted.finding is not None:
        known = ", ".join(sorted({cause.category for cause in seen.causes})) or "none at all"
        click.echo(f"migrate: none of {len(seen):,} pairs fits; findings of this run: {known}", err=True)
    elif not count:
        click.echo(f"migrate: none of {len(seen):,} pairs fits", err=True)
