"""What was recorded, for a notebook: pandas frames, and a run with its verdict."""

from __future__ import annotations

import time
from functools import cached_property
from importlib.util import find_spec
from typing import TYPE_CHECKING, NamedTuple

from migrate.embedder import DEFAULT_MODEL
from migrate.errors import MigrateError
from migrate.gathering import compared
from migrate.opinions import SecondOpinion
from migrate.report import embedder, report, second_opinion, stored_judge, stored_policy
from migrate.store import Run, Store
from reports.compare import Embed
from reports.document import Document
from reports.frames import findings, pairs, rules
from reports.render.notebook import render_notebook

if TYPE_CHECKING:
    import pandas as pd


class Frames(NamedTuple):
    """A run in rows."""

    pairs: pd.DataFrame
    """A row for each request (``reports.frames.PAIRS``)."""
    findings: pd.DataFrame
    """A row for each finding about the candidate (``reports.frames.FINDINGS``); ``id`` joins them to pairs."""


def frames(store: str = "sqlite:///migrate.db", run: str | None = None) -> Frames:
    """The pairs and findings of a run, compared as its report compares them; the latest run when none is named.

    Vectors are kept in the store, as by a report; without the extra ``embeddings`` what needs them is not scored. No judge
    model is asked. Raises
    StoreError when the store or run is not there, ConfigError when the run's policy cannot be read, MigrateError without
    the extra ``pandas``.
    """
    _needs_pandas()
    with Store.open(store) as opened:
        found = opened.run(run)
        return _frames(opened, found, None)


class OpenedRun:
    """A run as its report sees it, in rows. A notebook shows it as the verdict with its rules."""

    def __init__(self, store: str, document: Document) -> None:
        self._store = store
        self.document = document
        """Everything that ``migrate report --format json`` has, as a value."""

    @property
    def verdict(self) -> str:
        """GO, ROLLBACK or HOLD, as of ``document.judged_at``."""
        return self.document.verdict.value

    @cached_property
    def rules(self) -> pd.DataFrame:
        """A row for each rule (``reports.frames.RULES``): shares are 0 to 1, latencies seconds, see ``unit``."""
        return rules(self.document.rules)

    @property
    def pairs(self) -> pd.DataFrame:
        """A row for each request (``reports.frames.PAIRS``); all pairs are compared when it is first asked for."""
        return self._rows.pairs

    @property
    def findings(self) -> pd.DataFrame:
        """A row for each finding about the candidate (``reports.frames.FINDINGS``); ``id`` joins them to pairs."""
        return self._rows.findings

    @cached_property
    def _rows(self) -> Frames:
        with Store.open(self._store) as opened:
            found = opened.run(self.document.run["id"])
            return _frames(opened, found, second_opinion(opened, stored_judge(found)))

    def __repr__(self) -> str:
        return f"<run {self.document.run['id']}: {self.verdict} ({self.document.code})>"

    def _repr_html_(self) -> str:
        return render_notebook(self.document)


def open_run(store: str = "sqlite:///migrate.db", run: str | None = None) -> OpenedRun:
    """A run with its verdict, judged under the policy that it was started under, as ``migrate report`` judges it; the latest run
    when none is named. One that still goes on is judged as it stands. Raises as ``frames`` does."""
    _needs_pandas()
    with Store.open(store) as opened:
        found = opened.run(run)
        embed, notes = _embedder(opened, found)
        second = second_opinion(opened, stored_judge(found))
        document = report(
            opened, found, policy=None, now=time.time(), embed=embed, second=second, notes=notes
        )
    return OpenedRun(store, document)


def _frames(store: Store, run: Run, second: SecondOpinion | None) -> Frames:
    embed, _ = _embedder(store, run)
    items = compared(store, run, stored_policy(run), embed, second)
    return Frames(pairs(items), findings(item.comparison for item in items if item.comparison is not None))


def _embedder(store: Store, run: Run) -> tuple[Embed | None, tuple[str, ...]]:
    return embedder(store, str(run.config.get("embeddings", {}).get("model", DEFAULT_MODEL)))


def _needs_pandas() -> None:
    if find_spec("pandas") is None:
        raise MigrateError("frames need an extra: pip install 'llm-migrate[pandas]'")
