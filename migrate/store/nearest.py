"""A request that nobody has under that id: which one was meant."""

from __future__ import annotations

import difflib

import sqlalchemy as sa

from migrate.store import schema
from migrate.store.store import Store

_LOOKED_AT = 200


def closest(store: Store, run: str, request: str, count: int = 3) -> list[str]:
    """At most ``count`` ids of a run, the most alike first: of those that begin alike, as far as any do.

    Each step asks the index, so that a run of a million is as fast as a small one.
    """
    for length in range(min(len(request), 80), 0, -1):
        found = _beginning(store, run, request[:length])
        if found:
            return difflib.get_close_matches(request[:80], found, n=count, cutoff=0.0)
    return []


def holders(store: Store, request: str) -> list[str]:
    """The runs that hold a request of that id, the latest first."""
    table = schema.requests.c
    query = (
        sa.select(table.run).where(table.id == request).where(table.run.in_([run.id for run in store.runs()]))
    )
    with store.engine.connect() as connection:
        return sorted(connection.scalars(query), reverse=True)


def _beginning(store: Store, run: str, start: str) -> list[str]:
    table = schema.requests.c
    query = sa.select(table.id).where(table.run == run, table.id >= start, table.id < start + "\U0010ffff")
    with store.engine.connect() as connection:
        return list(connection.scalars(query.order_by(table.id).limit(_LOOKED_AT)))
