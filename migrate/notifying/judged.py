"""A run judged for those who are told of it: as ``migrate report`` judges it, by the policy of the run."""

from __future__ import annotations

import time

from migrate.config import Config
from migrate.report import embedder, report, second_opinion
from migrate.store import Store
from reports.document import Document


def judged(store: Store, config: Config, run: str) -> Document:
    """The report on a run as it stands now. Raises MigrateError where there can be none."""
    embed, notes = embedder(store, config.embeddings.model)
    return report(
        store,
        store.run(run),
        policy=None,
        now=time.time(),
        embed=embed,
        second=second_opinion(store, config.judge),
        notes=notes,
    )
