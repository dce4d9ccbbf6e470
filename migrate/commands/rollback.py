"""``migrate rollback``: the baseline answers everybody, from now on."""

from __future__ import annotations

from pathlib import Path

import click

from migrate.canary.shift import Shift, rolled_back
from migrate.commands.output import printed
from migrate.commands.steering import BY_HAND, of_a_canary, steered

_EPILOG = """\b
Examples:
  migrate rollback
  migrate rollback 'tickets about empty answers' --store postgresql://migrate@db/migrate
\b
Exit codes: 0 the share is 0, 2 wrong use, also where there is no canary, 1 our own failure."""


@click.command(epilog=_EPILOG)
@click.argument("why", default=BY_HAND)
@of_a_canary
def rollback(why: str, path: Path | None, url: str | None) -> None:
    """Take the canary's share to 0, saying WHY: the baseline answers everybody.

    Works from any host that reaches the store, and needs nothing else. Every gateway follows within a second. It stays so until
    somebody calls migrate canary resume, after a cool-down.
    """
    with steered(path, url) as found:
        said, cool_down = found.said(why), found.surely().cool_down

        def back(now: Shift) -> Shift | None:
            return rolled_back(now, at=found.at, who=found.who, why=said, cool_down=cool_down)

        after, changed = found.moved(back)
    if not changed:
        printed(f"canary {after.canary} is rolled back already, by {after.who}: the share is 0\n")
        return
    printed(f"canary {after.canary} is rolled back by {after.who}: the share is 0\n")
    click.echo("gateways follow within a second; then: migrate canary status", err=True)
