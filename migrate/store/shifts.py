"""The canaries of a store: rows that are only ever added, of which the last one counts."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

import sqlalchemy as sa

from migrate.canary.shift import Phase, Shift
from migrate.errors import StoreError
from migrate.store import schema
from migrate.store.opening import words
from migrate.store.store import Store
from replay.exchange import JSON

_TRIES = 100

Change = Callable[[Shift], Shift | None]
"""From the state to the next row, or to ``None``: nothing changes."""


def new_id(at: float) -> str:
    """Of a canary that begins at ``at`` (epoch seconds): sorts by time, and can be typed."""
    return f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime(at))}-{secrets.token_hex(2)}"


def latest(store: Store, canary: str | None = None) -> Shift | None:
    """The state of a canary (``None``: of the one that began last); ``None`` where there is none. Raises StoreError."""
    table = schema.shifts
    query = sa.select(table).order_by(table.c.canary.desc(), table.c.number.desc()).limit(1)
    rows = _read(store, query if canary is None else query.where(table.c.canary == canary))
    return rows[0] if rows else None


def log(store: Store, canary: str) -> list[Shift]:
    """Every change of a canary, the first one first. Raises StoreError."""
    table = schema.shifts
    return _read(store, sa.select(table).where(table.c.canary == canary).order_by(table.c.number))


def configured(store: Store, rows: Sequence[Shift]) -> JSON:
    """The configuration of the gateway that joined a canary last, as its run keeps it. Raises StoreError where that is gone."""
    runs = [row.run for row in rows if row.action in ("start", "join")]
    return store.run(runs[-1]).config if runs else {}


def begin(store: Store, first: Shift) -> None:
    """Adds the first row of a canary. Raises StoreError."""
    if not _added(store, first):
        raise StoreError(f"store {store.name} has a canary {first.canary} already")


def append(store: Store, canary: str, change: Change) -> tuple[Shift, bool]:
    """Adds what ``change`` makes of the state, and again of a newer one where somebody was faster.

    Returns the state afterwards, and whether a row was added. Raises StoreError when the store takes nothing, or has no such
    canary, and what ``change`` raises.
    """
    for _ in range(_TRIES):
        now = latest(store, canary)
        if now is None:
            raise StoreError(f"store {store.name} has no canary {canary}")
        after = change(now)
        if after is None:
            return now, False
        if _added(store, after):
            return after, True
    raise StoreError(f"store {store.name}: others change canary {canary} all the time; try again")


def _added(store: Store, shift: Shift) -> bool:
    """Whether the row went in; not where its number is taken."""
    try:
        with store.engine.begin() as connection:
            connection.execute(schema.shifts.insert().values(asdict(shift) | {"phase": shift.phase.value}))
    except sa.exc.IntegrityError as error:
        there = latest(store, shift.canary)
        if there is None or there.number < shift.number:
            raise StoreError(f"store {store.name} cannot be written: {words(error)}") from None
        return False
    except sa.exc.SQLAlchemyError as error:
        raise StoreError(f"store {store.name} cannot be written: {words(error)}") from None
    return True


def _read(store: Store, query: sa.Select[Any]) -> list[Shift]:
    try:
        with store.engine.connect() as connection:
            rows = list(connection.execute(query).mappings())
    except sa.exc.SQLAlchemyError as error:
        raise StoreError(f"store {store.name} cannot be read: {words(error)}") from None
    return [Shift(**(dict(row) | {"phase": Phase(row["phase"])})) for row in rows]
