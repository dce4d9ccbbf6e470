"""A recorded run, opened with everything that judging it takes."""

from __future__ import annotations

import contextlib
import shlex
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress

from migrate.config import Config, load
from migrate.embedder import DEFAULT_MODEL
from migrate.errors import ConfigError, StoreError
from migrate.opinions import SecondOpinion
from migrate.report import embedder, second_opinion, stored_judge, stored_policy
from migrate.store import Run, Store
from reports.compare import Embed
from reports.policy import Policy

_DEFAULT = Path("migrate.yaml")


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """A run, and with what it is judged."""

    store: Store
    run: Run
    config: Config | None
    """``None`` when there is none."""
    policy: Policy | None
    """Of a configuration that was named; ``None``: the run's own."""
    now: float
    embed: Embed | None
    second: SecondOpinion | None
    notes: tuple[str, ...]

    @property
    def rules(self) -> Policy:
        """By which answers are compared. Raises ConfigError when the run's own policy cannot be read."""
        return self.policy or stored_policy(self.run)

    def asked(self) -> dict[str, Any]:
        """The arguments that every judgement in ``migrate.report`` takes."""
        return {"policy": self.policy, "now": self.now, "embed": self.embed, "second": self.second}


@contextlib.contextmanager
def recorded(path: Path | None, url: str | None, run_id: str | None, *, quiet: bool) -> Iterator[Recorded]:
    """The run of that id (``None``: the latest) in the store at ``url`` (``None``: the configuration's), with progress on
    standard error. Raises ConfigError for a store or a run that is not there: nothing was started."""
    config = None if path is None and not _DEFAULT.exists() else load(path or _DEFAULT)
    told = config if path is not None else None
    console = Console(stderr=True)
    with (
        _opened(url or (config.store.url if config else "sqlite:///migrate.db")) as store,
        Progress(console=console, transient=True, disable=quiet or not console.is_terminal) as progress,
    ):
        run = _chosen(store, run_id)
        task = progress.add_task("comparing answers", total=None)

        def tell(what: str, done: int, total: int) -> None:
            progress.update(task, description=what, completed=done, total=total)

        embed, notes = embedder(store, _model(told, run), tell)
        yield Recorded(
            store=store,
            run=run,
            config=config,
            policy=told.policy if told else None,
            now=time.time(),
            embed=embed,
            second=second_opinion(store, told.judge if told else stored_judge(run), tell),
            notes=notes,
        )


def to_find(path: Path | None, url: str | None, run_id: str | None) -> str:
    """The options that name the same run from any folder, in the shell's words. A URL that may hold a password is left out."""
    words = ["--config", str(path.resolve())] if path else []
    words += ["--store", url] if url and "@" not in url else []
    return shlex.join([*words, *(["--run", run_id] if run_id else [])])


def _opened(url: str) -> Store:
    try:
        return Store.open(url)
    except StoreError as error:
        raise ConfigError(str(error)) from None


def _chosen(store: Store, run_id: str | None) -> Run:
    try:
        return store.run(run_id)
    except StoreError as error:
        raise ConfigError(str(error)) from None


def _model(config: Config | None, run: Run) -> str:
    """The embedding model of the configuration, else the one that the run was started with."""
    recorded = run.config.get("embeddings", {}).get("model", DEFAULT_MODEL)
    return config.embeddings.model if config else str(recorded)
