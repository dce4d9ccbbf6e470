"""What was recorded, as pandas frames: one call for a notebook."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, NamedTuple

from migrate.embedder import DEFAULT_MODEL
from migrate.errors import MigrateError
from migrate.gathering import compared
from migrate.report import embedder, stored_policy
from migrate.store import Store
from reports.frames import findings, pairs

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
    if find_spec("pandas") is None:
        raise MigrateError("frames need an extra: pip install 'llm-migrate[pandas]'")
    with Store.open(store) as opened:
        found = opened.run(run)
        model = str(found.config.get("embeddings", {}).get("model", DEFAULT_MODEL))
        embed, _ = embedder(opened, model)
        items = compared(opened, found, stored_policy(found), embed)
    return Frames(pairs(items), findings(item.comparison for item in items if item.comparison is not None))
