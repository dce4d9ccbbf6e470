"""Writing rows: what is there already stays, or takes a new value, on SQLite and PostgreSQL alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite


def insert_new(connection: sa.Connection, table: sa.Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Inserts rows whose primary key is not there yet; the first one written stays."""
    if rows:
        statement = _insert(connection, table).on_conflict_do_nothing()
        # By hand, because SQLAlchemy takes as long over the values of a row as SQLite does over storing it, and by place where
        # the driver can: SQLite looks for names anew in every row.
        compiled = statement.compile(dialect=connection.dialect, column_keys=list(rows[0]))
        values = list(map(itemgetter(*compiled.positiontup), rows)) if compiled.positiontup else list(rows)
        connection.exec_driver_sql(str(compiled), values)


def upsert(
    connection: sa.Connection, table: sa.Table, rows: Sequence[Mapping[str, Any]], column: str
) -> None:
    """Inserts rows; where the primary key is there already, ``column`` takes the new value."""
    if rows:
        statement = _insert(connection, table)
        keys = [key.name for key in table.primary_key]
        changed = {column: statement.excluded[column]}
        connection.execute(statement.on_conflict_do_update(index_elements=keys, set_=changed), list(rows))


def _insert(connection: sa.Connection, table: sa.Table) -> Any:
    module: Any = sqlite if connection.dialect.name == "sqlite" else postgresql
    return module.insert(table)
