"""``migrate shadow`` and ``migrate capture``: the gateway in front of the baseline."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from migrate.commands import options
from migrate.config import Config, load
from migrate.errors import ConfigError
from migrate.notifying.receivers import receivers
from migrate.saying import Speaker
from migrate.shadow import Run, execute


def _options(command: Callable[..., Any]) -> Callable[..., Any]:
    """What both commands take."""
    for option in (
        click.option("--quiet", is_flag=True, help="Say only what goes wrong, and what changes."),
        click.option(
            "--store", metavar="URL", help="Where to record; default: store.url of the configuration."
        ),
        click.option(
            "--duration", callback=options.duration, metavar="TIME", help="End after this time, such as 48h."
        ),
        click.option(
            "--percent",
            callback=options.percent,
            metavar="N",
            help="Share of conversations, 0 to 100; 0.5 is half a percent. Default: shadow.percent.",
        ),
        click.option(
            "--config",
            "path",
            type=click.Path(path_type=Path),
            default="migrate.yaml",
            envvar="MIGRATE_CONFIG",
            show_default=True,
        ),
    ):
        command = option(command)
    return command


@click.command(
    epilog="\b\nExamples:\n  migrate shadow --percent 10\n  migrate shadow --percent 0.5 --duration 48h"
)
@_options
def shadow(path: Path, percent: float | None, duration: float | None, store: str | None, quiet: bool) -> int:
    """Pass production to the baseline, mirror a share of it to the candidate, and record both.

    Nothing that the mirror does delays or changes what a client receives. Ends with Ctrl-C, SIGTERM or --duration:
    open requests finish, the store is flushed. Judge with: migrate report.
    """
    config = load(path)
    if config.candidate is None:
        raise ConfigError(f"{path}: has no candidate:, nothing to mirror to; add one, or use migrate capture")
    config.candidate.api_key()
    if config.notify is not None:
        receivers(config.notify)
    return executed(config, "shadow", percent=percent, duration=duration, store=store, quiet=quiet)


@click.command(epilog="\b\nExample:\n  migrate capture --percent 100 --duration 1h")
@_options
def capture(path: Path, percent: float | None, duration: float | None, store: str | None, quiet: bool) -> int:
    """Pass production to the baseline and record a share of it for replay, without a candidate."""
    config = load(path).model_copy(update={"candidate": None})
    return executed(config, "capture", percent=percent, duration=duration, store=store, quiet=quiet)


def executed(
    config: Config,
    kind: str,
    *,
    percent: float | None,
    duration: float | None,
    store: str | None,
    quiet: bool,
    why: str = "",
) -> int:
    """Runs the gateway in the foreground (see ``migrate.shadow.Run``). Returns the exit code."""
    if percent is not None:
        config = config.model_copy(update={"shadow": config.shadow.model_copy(update={"percent": percent})})
    if store is not None:
        config = config.model_copy(update={"store": config.store.model_copy(update={"url": store})})
    progress = sys.stderr.isatty() and not quiet
    run = Run(config=config, kind=kind, duration=duration, quiet=quiet, progress=progress, why=why)
    speaker = Speaker(lambda line: click.echo(line, err=True))
    logging.basicConfig(handlers=[speaker], level=logging.WARNING, force=True)
    try:
        return execute(run, speaker)
    finally:
        speaker.finish(1.0)
