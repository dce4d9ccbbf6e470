"""``migrate notify``: are those who are to be told reached?"""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from migrate.commands.output import printed
from migrate.config import load
from migrate.errors import ConfigError
from migrate.notifying.receivers import Receiver, receivers
from migrate.notifying.section import Notify
from migrate.notifying.telling import rehearse

_EPILOG = """\b
Example:
  migrate notify --test
\b
Exit codes: 0 all were reached, 2 one was not, or wrong use."""


@click.command(epilog=_EPILOG)
@click.option(
    "--config",
    "path",
    type=click.Path(path_type=Path),
    default="migrate.yaml",
    envvar="MIGRATE_CONFIG",
    show_default=True,
)
@click.option("--test", is_flag=True, help="Send each receiver one message that says it is a test.")
def notify(path: Path, test: bool) -> None:
    """Try the receivers that notify: names in the configuration.

    They are told by migrate shadow while it runs, and by migrate report --notify.
    """
    if not test:
        raise ConfigError(
            "say --test to try the receivers; to tell them a run's verdict: migrate report --notify"
        )
    told = asyncio.run(rehearse(named(load(path).notify, path)))
    width = max(map(len, told))
    printed(
        "".join(
            f"{'FAIL' if why else 'OK':<5} {name:<{width}}  {why or 'was told'}\n"
            for name, why in told.items()
        )
    )
    if any(told.values()):
        raise click.exceptions.Exit(2)


def named(section: Notify | None, path: Path | None) -> tuple[Receiver, ...]:
    """The receivers of a configuration. Raises ConfigError where it names none."""
    found = receivers(section) if section is not None else ()
    if not found:
        raise ConfigError(
            f"{path or 'the configuration'}: notify: names nobody; add one, such as notify: {{slack_env: SLACK_WEBHOOK}}"
        )
    return found
