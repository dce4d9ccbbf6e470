"""A canary that a person looks at or moves: everything comes from the store, so that it works from any host that reaches it."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from pydantic import ValidationError

from migrate.canary.section import CanarySection
from migrate.canary.shift import Shift
from migrate.commands.options import IN_FOLDER
from migrate.commands.signing import reason, signed
from migrate.config import Redact, load
from migrate.errors import ConfigError, MigrateError, StoreError
from migrate.store import Store, shifts
from replay.exchange import JSON
from reports.acknowledgement import Acknowledgement

BY_HAND = "by hand"
_DEFAULT = Path("migrate.yaml")


def of_a_canary(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of a command on the canary of a store, the one that began last: ``path`` and ``url``."""
    named = f"Names the store. {IN_FOLDER}"
    config = click.option(
        "--config", "path", type=click.Path(path_type=Path), envvar="MIGRATE_CONFIG", help=named
    )
    store = click.option(
        "--store", "url", metavar="URL", help="Of the database; no configuration is read then."
    )
    return config(store(command))


@dataclass(frozen=True, slots=True, kw_only=True)
class Steered:
    """A canary, and who wants what of it now."""

    store: Store
    rows: list[Shift]
    """Every change so far; never empty."""
    who: str
    at: float

    @property
    def now(self) -> Shift:
        """The state."""
        return self.rows[-1]

    def section(self) -> CanarySection:
        """Of the gateway that joined last. Raises ConfigError or StoreError when it cannot be read."""
        given: JSON = shifts.configured(self.store, self.rows).get("canary", {})
        try:
            return CanarySection.model_validate(given)
        except ValidationError as error:
            raise ConfigError(
                f"canary {self.now.canary}: what its gateway was started with cannot be read ({error.errors()[0]['msg']}); use "
                "the version of migrate that the gateway has"
            ) from None

    def surely(self) -> CanarySection:
        """The section, or the defaults: what has to work does not depend on it."""
        try:
            return self.section()
        except MigrateError:
            return CanarySection()

    def said(self, why: str) -> str:
        """A reason as it is kept, without what the gateway redacts. Raises ConfigError for one that cannot be kept."""
        try:
            rules = Redact.model_validate(shifts.configured(self.store, self.rows).get("redact", {}))
        except (MigrateError, ValidationError):
            rules = Redact()
        return reason(why, rules)

    def acknowledge(self, why: str) -> None:
        """Takes note of what the gateways that go on have seen: pairs from before make no ROLLBACK in their runs."""
        here = {row.run for row in self.rows if row.run}
        going = (run.id for run in self.store.runs() if run.id in here and run.ended_at is None)
        for run in going:
            self.store.acknowledge(run, Acknowledgement(at=self.at, who=self.who, why=why, code="canary"))

    def moved(self, change: shifts.Change) -> tuple[Shift, bool]:
        """The state after a change, and whether it changed anything (see ``shifts.append``)."""
        return shifts.append(self.store, self.now.canary, change)


@contextlib.contextmanager
def steered(path: Path | None, url: str | None) -> Iterator[Steered]:
    """The latest canary of the store at ``url`` (``None``: the configuration's). Raises ConfigError where there is none."""
    with opened_by(path, url) as store:
        now = shifts.latest(store)
        if now is None:
            raise ConfigError(
                f"store {store.name} has no canary; begin one with migrate canary --config FILE, or name another store with "
                "--store"
            )
        yield Steered(store=store, rows=shifts.log(store, now.canary), who=signed(), at=time.time())


def _named(path: Path | None, url: str | None) -> str:
    """The store's URL. A configuration that cannot be read keeps nobody from a store that is named."""
    if url is not None:
        return url
    if path is None and not _DEFAULT.exists():
        return "sqlite:///migrate.db"
    return load(path or _DEFAULT).store.url


def opened_by(path: Path | None, url: str | None) -> Store:
    """The store at ``url`` (``None``: the configuration's). Raises ConfigError where it cannot be opened."""
    try:
        return Store.open(_named(path, url))
    except StoreError as error:
        raise ConfigError(str(error)) from None
