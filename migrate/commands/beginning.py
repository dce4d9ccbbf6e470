"""How a canary begins: what it needs is looked at first, and nothing listens before."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

import click
from rich.console import Console
from rich.progress import Progress

from migrate.canary import serving
from migrate.canary.entering import current
from migrate.canary.permission import Permission, permitted
from migrate.commands.shadow import executed
from migrate.commands.signing import reason, signed
from migrate.config import Backend, Config, load
from migrate.errors import ConfigError, StoreError
from migrate.notifying.receivers import receivers
from migrate.presets import facts_of
from migrate.store import Store
from migrate.told import told
from replay.told import Told


def begin(
    path: Path, url: str | None, *, force: str | None, manual: bool, duration: float | None, quiet: bool
) -> int:
    """Runs the gateway of a canary until it is told to stop. Returns the exit code.

    Raises ConfigError before anything listens, also where a canary may not begin and nobody forces it.
    """
    config = _configured(path, url, manual=manual)
    why = allowed(config, force, quiet=quiet)
    return executed(
        serving.recorded(config), "canary", percent=None, duration=duration, store=None, quiet=quiet, why=why
    )


def _configured(path: Path, url: str | None, *, manual: bool) -> Config:
    config = load(path)
    if config.candidate is None:
        raise ConfigError(f"{path}: has no candidate:, nobody could answer instead of the baseline; add one")
    config.candidate.api_key()
    if config.notify is not None:
        receivers(config.notify)
    canary = config.canary.model_copy(update={"manual": manual or config.canary.manual})
    store = config.store.model_copy(update={"url": url or config.store.url})
    return config.model_copy(update={"canary": canary, "store": store})


def allowed(config: Config, force: str | None, *, quiet: bool) -> str:
    """Why a canary may begin, for its first row. One that goes on was allowed when it began, and is joined: then empty.

    Raises ConfigError where it may not begin.
    """
    forced = None if force is None else f"forced by {signed()}: {reason(force, config.redact, '--force')}"
    try:
        with Store.open(config.store.url, create=forced is not None) as store:
            if (now := current(store, config)) is not None:
                if forced:
                    click.echo(f"canary {now.canary} goes on and is joined: --force begins nothing", err=True)
                return ""
            found = None if forced else _permission(store, config, quiet=quiet)
    except StoreError as error:
        raise ConfigError(str(error)) from None
    if found is None:
        return forced or ""
    if found.granted:
        return found.why
    problems = "; ".join(found.problems)
    raise ConfigError(f"no canary was begun: {problems}. Or begin anyway: --force REASON")


def _permission(store: Store, config: Config, *, quiet: bool) -> Permission:
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=quiet or not console.is_terminal) as progress:
        task = progress.add_task("judging the run before", total=None)

        def tell(what: str, done: int, total: int) -> None:
            progress.update(task, description=what, completed=done, total=total)

        says = asyncio.run(_says(config.candidate)) if config.candidate else None
        return permitted(store, config, time.time(), says, tell)


async def _says(backend: Backend) -> Told | None:
    """What the candidate says that it is; somebody else's server is not asked."""
    if backend.outside or not facts_of(backend.kind, backend.preset).version:
        return None
    return await told(backend.url, os.environ.get(backend.api_key_env) if backend.api_key_env else None)
