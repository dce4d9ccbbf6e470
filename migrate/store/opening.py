"""Opening a database: its file and who may read it, SQLite's settings, and the version of its schema."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote

import sqlalchemy as sa

from migrate.address import shown
from migrate.errors import StoreError
from migrate.store import schema
from migrate.store.inserting import upsert
from migrate.store.reading import readable

_WAIT_S = 10.0
"""How long another process may have the database for itself."""
_CACHE_KIB = 32 * 1024
"""Pages that are kept at most. Hashes are written all over their index, and with SQLite's 2 MiB a page goes to the disk and comes
back several times in one transaction."""


def connected(url: str, *, create: bool) -> sa.Engine:
    """An engine for ``sqlite:///FILE`` or a PostgreSQL URL. Raises StoreError when it is missing or no store of ours."""
    try:
        parsed = sa.make_url(url)
        if parsed.drivername == "postgresql":
            parsed = parsed.set(drivername="postgresql+psycopg")
        if parsed.get_backend_name() == "sqlite":
            path = _prepare_file(parsed.database, create=create)
            if not _writable(path):
                return _reading(path)
            engine = sa.create_engine(parsed, connect_args={"timeout": _WAIT_S})
            sa.event.listen(engine, "connect", _sqlite_pragmas)
            return engine
        return sa.create_engine(parsed, pool_pre_ping=True)
    except sa.exc.ArgumentError:
        raise StoreError(
            f"store {shown_name(url)} is no database URL; write sqlite:///FILE or postgresql://…"
        ) from None
    except ImportError:
        raise StoreError(
            f"store {shown_name(url)} needs its driver: pip install 'llm-migrate[postgres]'"
        ) from None


def _writable(path: Path) -> bool:
    """Whether the file and its journal beside it can be written."""
    return os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)


def _reading(path: Path) -> sa.Engine:
    """An engine that only reads. Without a journal beside it nothing can change the file under us."""
    still = "" if path.with_name(f"{path.name}-wal").exists() else "&immutable=1"
    address = f"file:{quote(str(path.resolve()))}?mode=ro{still}"

    def connect() -> sqlite3.Connection:
        return sqlite3.connect(address, uri=True, timeout=_WAIT_S, check_same_thread=False)

    return sa.create_engine("sqlite://", creator=connect, poolclass=sa.pool.NullPool)


def _prepare_file(database: str | None, *, create: bool) -> Path:
    """Makes the file before SQLite does, readable by its owner alone; its journal files inherit the mode."""
    if not database or database == ":memory:":
        raise StoreError("a store has to be a file: write sqlite:///FILE")
    path = Path(database)
    if path.exists():
        if path.stat().st_size and not _is_store(path):
            raise StoreError(f"store {path} is no store of llm-migrate; nothing was changed in it")
        if not create and not path.stat().st_size:
            raise StoreError(f"store {path} is empty; fill it with migrate import, capture or shadow")
        return path
    if not create:
        raise StoreError(
            f"store {path} does not exist; fill one with migrate import, capture or shadow, or name another with --store"
        )
    try:
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))
    except OSError as error:
        raise StoreError(f"store {path} cannot be created: {error.strerror}") from None
    return path


def _is_store(path: Path) -> bool:
    """Whether a file is ours, found out without changing a byte of it."""
    try:
        with contextlib.closing(
            sqlite3.connect(f"file:{quote(str(path.resolve()))}?mode=ro", uri=True)
        ) as file:
            names = {name for (name,) in file.execute("select name from sqlite_master where type = 'table'")}
    except sqlite3.OperationalError:
        return True  # locked or in recovery: opening it says more
    except sqlite3.DatabaseError:
        return False
    return not names or {"meta", "runs", "observations"} <= names


def _sqlite_pragmas(connection: Any, _: object) -> None:
    _switch_journal(connection)
    for pragma in ("synchronous=NORMAL", "foreign_keys=ON", "temp_store=MEMORY", f"cache_size=-{_CACHE_KIB}"):
        connection.execute(f"PRAGMA {pragma}")


def _switch_journal(connection: Any) -> None:
    """To WAL. SQLite does not wait for another process that does the same to a new file, so we do."""
    end = time.monotonic() + _WAIT_S
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                raise
            time.sleep(0.02)
        else:
            return


def bring_up(engine: sa.Engine, name: str) -> None:
    """To this version's schema. Raises StoreError when a newer one wrote it, or an older one where nothing may be written."""
    with engine.connect() as connection:
        version = _version(connection)
    if version > schema.VERSION:
        raise StoreError(
            f"store {name} was written by a newer llm-migrate (schema {version}, this one knows {schema.VERSION}); upgrade "
            "llm-migrate"
        )
    if version == schema.VERSION:
        return
    try:
        _migrate(engine, version)
    except sa.exc.OperationalError as error:
        if getattr(error.orig, "sqlite_errorcode", None) != sqlite3.SQLITE_READONLY:
            raise
        raise StoreError(
            f"store {name} was written by an older llm-migrate (schema {version}, this one needs {schema.VERSION}) and may only "
            "be read; copy it to where it can be brought up to date, and name the copy with --store"
        ) from None


def _migrate(engine: sa.Engine, version: int) -> None:
    with engine.begin() as connection:
        if engine.dialect.name == "sqlite":
            connection.exec_driver_sql("BEGIN IMMEDIATE")  # one process makes the tables, the others wait
            version = _version(connection)
        for migration in schema.MIGRATIONS[version:]:
            migration(connection)
        upsert(connection, schema.meta, [{"name": "schema_version", "value": str(schema.VERSION)}], "value")


def _version(connection: sa.Connection) -> int:
    if not sa.inspect(connection).has_table("meta"):
        return 0
    value = connection.scalar(sa.select(schema.meta.c.value).where(schema.meta.c.name == "schema_version"))
    with readable("the schema's version"):
        return int(value) if value else 0


def shown_name(url: str) -> str:
    """A store's name for a person; a password in it stays out."""
    try:
        parsed = sa.make_url(url)
    except sa.exc.ArgumentError:
        return repr(shown(url))
    return parsed.database or url if parsed.get_backend_name() == "sqlite" else shown(url)


def words(error: sa.exc.SQLAlchemyError) -> str:
    """What the database says, in one line."""
    return str(getattr(error, "orig", None) or error).splitlines()[0]
