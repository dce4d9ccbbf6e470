"""``migrate notify``: are those who are to be told reached?"""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from migrate.commands.output import printed
from migrate.config import Config, load
from migrate.errors import ConfigError, MigrateError
from migrate.notifying.judged import document as document_on
from migrate.notifying.news import news_of
from migrate.notifying.receivers import Receiver, receivers
from migrate.notifying.telling import rehearse, tell
from migrate.store import Store
from reports.document import Document

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

    They are told by migrate shadow while it runs, by migrate replay when it ends, and by migrate report --notify.
    """
    if not test:
        raise ConfigError(
            "say --test to try the receivers; to tell them a run's verdict: migrate report --notify"
        )
    told = asyncio.run(rehearse(named(load(path), path)))
    width = max(map(len, told))
    printed(
        "".join(
            f"{'FAIL' if why else 'OK':<5} {name:<{width}}  {why or 'was told'}\n"
            for name, why in told.items()
        )
    )
    if any(told.values()):
        raise click.exceptions.Exit(2)


def tell_all(store: Store, document: Document, people: tuple[Receiver, ...]) -> None:
    """Tells of a report; who could not be told is named on standard error, and is told the next time."""
    told = asyncio.run(tell(store, str(document.run["id"]), news_of(document), people)) if people else {}
    for name, why in told.items():
        if why is not None:
            click.echo(f"migrate: {name} could not be told: {why}", err=True)


def tell_end(store: Store, config: Config, run: str, people: tuple[Receiver, ...], *, quiet: bool) -> None:
    """Judges a run that has ended, and tells of it. What goes wrong is said on standard error: the run itself went well."""
    if not people:
        return
    if not quiet:
        click.echo("the run is judged, for those whom notify: names", err=True)
    try:
        tell_all(store, document_on(store, config, store.run(run)), people)
    except MigrateError as error:
        click.echo(f"migrate: nobody was told of the end of the run: {error}", err=True)


def named(config: Config | None, path: Path | None) -> tuple[Receiver, ...]:
    """The receivers of a configuration. Raises ConfigError where it names none."""
    found = receivers(config.notify) if config is not None and config.notify is not None else ()
    if not found:
        raise ConfigError(
            f"{path or 'the configuration'}: notify: names nobody; add one, such as notify: {{slack_env: SLACK_WEBHOOK}}"
        )
    return found
