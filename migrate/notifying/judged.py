"""A run judged for those who are told of it: as ``migrate report`` judges it, by the policy of the run."""

from __future__ import annotations

import time

from migrate.config import Config
from migrate.report import JudgedRun, document_of, embedder, judge_run, second_opinion
from migrate.store import Run, Store
from reports.document import Document


def judged(store: Store, config: Config, run: Run) -> tuple[JudgedRun, tuple[str, ...]]:
    """A run as it stands now, and what a report on it has to note. Raises MigrateError where it cannot be judged."""
    embed, notes = embedder(store, config.embeddings.model)
    second = second_opinion(store, config.judge)
    found = judge_run(store, run, policy=None, now=time.time(), embed=embed, second=second)
    return found, (*notes, *(second.notes if second else ()))


def document(store: Store, config: Config, run: Run) -> Document:
    """The report on it. Raises as ``judged`` does."""
    return document_of(store, run, *judged(store, config, run))
