"""Opening a store, its runs, and reading what was recorded."""

from __future__ import annotations

import contextlib
import difflib
import itertools
import math
import os
import secrets
import sqlite3
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from migrate.address import shown
from migrate.errors import StoreError
from migrate.store import codec, schema
from replay.exchange import JSON, Arm, Exchange, Observation, Request

_PAGE = 500
_WAIT_S = 10.0
"""How long another process may have the database for itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One recording: when, of what, under which configuration and policy."""

    id: str
    kind: str
    """``shadow``, ``capture``, ``import``, ``replay`` or ``bench``."""
    started_at: float
    ended_at: float | None
    """Epoch seconds; ``None``: still running, or killed."""
    status: str
    seed: int
    config: JSON
    policy: JSON


class Store:
    """A database of runs. Opening checks the schema's version and brings an older one up to date."""

    def __init__(self, url: str, engine: sa.Engine) -> None:
        self.url = url
        self.engine = engine

    @classmethod
    def open(cls, url: str, *, create: bool = False) -> Self:
        """Opens ``sqlite:///FILE`` or a PostgreSQL URL.

        Raises StoreError with one line when it is missing, not a database, of a newer version or not writable.
        """
        engine = _engine(url, create=create)
        try:
            _migrate(engine)
        except sa.exc.SQLAlchemyError as error:
            engine.dispose()
            raise StoreError(f"store {_shown(url)} cannot be opened: {_words(error)}") from None
        except StoreError:
            engine.dispose()
            raise
        return cls(url, engine)

    @property
    def name(self) -> str:
        """The store's name for a person; a password in it stays out."""
        return _shown(self.url)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Gives back every connection."""
        self.engine.dispose()

    def begin_run(self, *, kind: str, config: JSON, policy: JSON, seed: int, at: float) -> str:
        """Starts a run. Returns its id, which sorts by time and can be typed."""
        values = _begun(kind=kind, config=config, policy=policy, seed=seed, at=at)
        with self._writing() as connection:
            connection.execute(schema.runs.insert().values(values))
        return str(values["id"])

    def only_run(self, *, kind: str, config: JSON, policy: JSON, seed: int, at: float) -> str:
        """The latest run of a kind of which one is enough, begun and ended where there is none. Returns its id, the same to all
        who ask at once."""
        values = _begun(kind=kind, config=config, policy=policy, seed=seed, at=at)
        values |= {"ended_at": at, "status": "ended"}
        runs = schema.runs
        known = sa.select(runs.c.id).where(runs.c.kind == kind)
        fresh = sa.select(*(sa.literal(value) for value in values.values())).where(~known.exists())
        with self._writing() as connection:
            connection.execute(runs.insert().from_select(list(values), fresh))
            return str(connection.scalar(known.order_by(runs.c.started_at.desc(), runs.c.id.desc()).limit(1)))

    def end_run(self, run: str, *, at: float, status: str = "ended") -> None:
        """Marks a run as over."""
        with self._writing() as connection:
            connection.execute(
                schema.runs.update().where(schema.runs.c.id == run).values(ended_at=at, status=status)
            )

    def reopen_run(self, run: str) -> None:
        """Marks a run as going on."""
        with self._writing() as connection:
            connection.execute(
                schema.runs.update().where(schema.runs.c.id == run).values(ended_at=None, status="running")
            )

    def runs(self) -> list[Run]:
        """All runs, the oldest first."""
        with self.engine.connect() as connection:
            rows = connection.execute(
                sa.select(schema.runs).order_by(schema.runs.c.started_at, schema.runs.c.id)
            )
            return [_run(row) for row in rows.mappings()]

    def run(self, run: str | None = None) -> Run:
        """The run of that id, or the latest. Raises StoreError naming the closest id when there is none."""
        found = self.runs()
        if run is None and found:
            return found[-1]
        for one in found:
            if one.id == run:
                return one
        if not found:
            raise StoreError(f"store {_shown(self.url)} holds no run yet; record one with migrate shadow")
        close = difflib.get_close_matches(run or "", [one.id for one in found], n=1, cutoff=0.3)
        hint = f"; did you mean {close[0]}?" if close else ""
        raise StoreError(f"store {_shown(self.url)} holds no run {run!r}{hint} (list them with migrate runs)")

    def counters(self, run: str) -> dict[str, int]:
        """The gateway's and the mirror's counters as last written."""
        query = sa.select(schema.counters.c.name, schema.counters.c.value).where(schema.counters.c.run == run)
        with self.engine.connect() as connection:
            return {row.name: row.value for row in connection.execute(query)}

    def count(self, run: str) -> int:
        """How many requests a run holds."""
        query = sa.select(sa.func.count()).select_from(schema.requests).where(schema.requests.c.run == run)
        with self.engine.connect() as connection:
            return int(connection.scalar(query) or 0)

    def count_up(self, run: str, counters: Mapping[str, int]) -> None:
        """Writes counters; each replaces its earlier value."""
        rows = [{"run": run, "name": name, "value": value} for name, value in counters.items()]
        with self._writing() as connection:
            upsert(connection, schema.counters, rows, "value")

    def totals(self) -> dict[str, int]:
        """Every counter's sum over all runs."""
        table = schema.counters.c
        query = sa.select(table.name, sa.func.sum(table.value).label("value")).group_by(table.name)
        with self.engine.connect() as connection:
            return {row.name: int(row.value) for row in connection.execute(query)}

    def answered(self, run: str) -> dict[Arm, set[str]]:
        """The requests that a run holds an answer of each arm to, also a failed one."""
        seen = schema.observations.c
        query = sa.select(seen.request, seen.arm).where(seen.run == run)
        found: dict[Arm, set[str]] = {arm: set() for arm in Arm}
        with self.engine.connect() as connection:
            for row in connection.execute(query):
                found[Arm(row.arm)].add(row.request)
        return found

    def captured(self, run: str) -> Iterator[tuple[Request, float | None]]:
        """The requests of a run by time of admission, each with how long its recorded answer took (seconds), if it says.

        Read in pages, none of them longer than a moment: a run that is replayed for hours keeps no transaction open.
        """
        last: tuple[float, str] | None = None
        while True:
            query = _captured_query(run, last).limit(_PAGE)
            with self.engine.connect() as connection:
                rows = list(connection.execute(query).mappings())
            for row in rows:
                with _readable(f"request {row['id']} of run {run}"):
                    request = _request(row)
                yield request, row["e2e_s"]
            if len(rows) < _PAGE:
                return
            last = rows[-1]["at"], rows[-1]["id"]

    def lag(self, run: str, share: float) -> float | None:
        """The quantile of how long after its moment each replayed request left, without the time that a new connection
        took; seconds. ``None`` when nothing of the run was scheduled."""
        seen = schema.observations.c
        late = seen.lag_s - sa.func.coalesce(seen.connect_s, 0.0)
        scheduled = (seen.run == run) & seen.lag_s.is_not(None)
        with self.engine.connect() as connection:
            count = connection.scalar(sa.select(sa.func.count()).where(scheduled)) or 0
            if not count:
                return None
            at = max(0, math.ceil(share * count) - 1)
            found = connection.scalar(sa.select(late).where(scheduled).order_by(late).offset(at).limit(1))
        return None if found is None else float(found)

    def latest(self, run: str) -> float | None:
        """When the last request of a run was dispatched, in epoch seconds; ``None`` for an empty run."""
        query = sa.select(sa.func.max(schema.observations.c.at)).where(schema.observations.c.run == run)
        with self.engine.connect() as connection:
            found = connection.scalar(query)
        return None if found is None else float(found)

    def exchanges(self, run: str) -> Iterator[Exchange]:
        """Every request of a run with its observations, by time of admission, in constant memory. Raw bodies stay out."""
        with self.engine.connect() as connection:
            rows = connection.execution_options(yield_per=500).execute(_exchanges_query(run)).mappings()
            for name, group in itertools.groupby(rows, key=lambda row: row["id"]):
                with _readable(f"request {name} of run {run}"):
                    exchange = _exchange(list(group))
                yield exchange

    def exchange(self, run: str, request: str) -> Exchange:
        """One request of a run with its observations. Raises StoreError when the run has no such request."""
        query = _exchanges_query(run).where(schema.requests.c.id == request)
        with self.engine.connect() as connection:
            rows = list(connection.execute(query).mappings())
        if not rows:
            raise StoreError(f"run {run} holds no request {request!r}")
        return _exchange(rows)

    def observation(self, run: str, request: str, arm: Arm) -> Observation | None:
        """One observation with its raw body, where that was kept."""
        table = schema.observations.c
        query = sa.select(schema.observations).where(
            table.run == run, table.request == request, table.arm == arm.value
        )
        with self.engine.connect() as connection:
            row = connection.execute(query).mappings().one_or_none()
            if row is None:
                return None
            answer, raw = _body(connection, row["answer"]), _body(connection, row["raw"])
        return codec.observation_value(dict(row), answer, raw)

    def forget_bodies(self, *, before: float) -> int:
        """Deletes bodies that only runs started before ``before`` (epoch seconds) point to. Returns how many.

        What was measured stays: outcomes, times and counts of old runs can still be judged, their texts are gone.
        """
        recent = sa.select(schema.runs.c.id).where(schema.runs.c.started_at >= before)
        asked, seen = schema.requests.c, schema.observations.c
        wanted = sa.union(
            sa.select(asked.body).where(asked.run.in_(recent)),
            sa.select(seen.answer).where(seen.run.in_(recent), seen.answer.is_not(None)),
            sa.select(seen.raw).where(seen.run.in_(recent), seen.raw.is_not(None)),
        )
        with self._writing() as connection:
            gone = connection.execute(schema.bodies.delete().where(schema.bodies.c.hash.not_in(wanted)))
        return int(gone.rowcount)

    def vectors(self, model: str, hashes: Sequence[str]) -> dict[str, bytes]:
        """The cached embeddings of these texts, by hash; absent ones are left out."""
        return self._known(schema.vectors.c.vector, model, hashes)

    def put_vectors(self, model: str, vectors: Mapping[str, bytes]) -> None:
        """Keeps embeddings for the next report."""
        rows = [{"model": model, "hash": key, "vector": vector} for key, vector in vectors.items()]
        with self._writing() as connection:
            insert_new(connection, schema.vectors, rows)

    def opinions(self, model: str, hashes: Sequence[str]) -> dict[str, str]:
        """What a judge model said of these questions, by hash; absent ones are left out."""
        return self._known(schema.opinions.c.opinion, model, hashes)

    def put_opinions(self, model: str, opinions: Mapping[str, str]) -> None:
        """Keeps what a judge model said."""
        rows = [{"model": model, "hash": key, "opinion": opinion} for key, opinion in opinions.items()]
        with self._writing() as connection:
            insert_new(connection, schema.opinions, rows)

    def _known(self, column: sa.Column[Any], model: str, hashes: Sequence[str]) -> dict[str, Any]:
        """The values of one model's rows with these hashes."""
        found: dict[str, Any] = {}
        table = column.table.c
        with self.engine.connect() as connection:
            for part in (
                itertools.batched(hashes, 500) if hasattr(itertools, "batched") else _batches(hashes, 500)
            ):
                query = sa.select(table.hash, column).where(table.model == model, table.hash.in_(part))
                found.update((key, value) for key, value in connection.execute(query))
        return found

    @contextlib.contextmanager
    def _writing(self) -> Iterator[sa.Connection]:
        """A transaction. Raises StoreError when the database does not take it."""
        try:
            with self.engine.begin() as connection:
                yield connection
        except sa.exc.DBAPIError as error:
            raise StoreError(f"store {self.name} cannot be written: {_words(error)}") from None


def _begun(*, kind: str, config: JSON, policy: JSON, seed: int, at: float) -> dict[str, Any]:
    """The row of a run that begins. The store's own password is not kept in it."""
    if isinstance(store := config.get("store"), dict) and isinstance(url := store.get("url"), str):
        config = config | {"store": store | {"url": shown(url)}}
    return {
        "id": f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime(at))}-{secrets.token_hex(2)}",
        "kind": kind,
        "started_at": at,
        "status": "running",
        "seed": seed,
        "config": codec.dump(config).decode(),
        "policy": codec.dump(policy).decode(),
    }


def insert_new(connection: sa.Connection, table: sa.Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Inserts rows whose primary key is not there yet; the first one written stays."""
    if rows:
        statement = _insert(connection, table).on_conflict_do_nothing()
        # By hand, because SQLAlchemy takes as long over the values of a row as SQLite does over storing it.
        compiled = statement.compile(dialect=connection.dialect, column_keys=list(rows[0]))
        connection.exec_driver_sql(str(compiled), list(rows))


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


def _engine(url: str, *, create: bool) -> sa.Engine:
    try:
        parsed = sa.make_url(url)
        if parsed.drivername == "postgresql":
            parsed = parsed.set(drivername="postgresql+psycopg")
        if parsed.get_backend_name() == "sqlite":
            path = _prepare_file(parsed.database, create=create)
            if not _writable(path):
                return _reading(path)
            engine = sa.create_engine(parsed, paramstyle="named", connect_args={"timeout": _WAIT_S})
            sa.event.listen(engine, "connect", _sqlite_pragmas)
            return engine
        return sa.create_engine(parsed, pool_pre_ping=True)
    except sa.exc.ArgumentError:
        raise StoreError(
            f"store {_shown(url)} is no database URL; write sqlite:///FILE or postgresql://…"
        ) from None
    except ImportError:
        raise StoreError(
            f"store {_shown(url)} needs its driver: pip install 'llm-migrate[postgres]'"
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
            raise StoreError(f"store {path} is empty; record a run with migrate shadow")
        return path
    if not create:
        raise StoreError(
            f"store {path} does not exist; record a run with migrate shadow, or name another with --store"
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
    for pragma in ("synchronous=NORMAL", "foreign_keys=ON", "temp_store=MEMORY"):
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


def _migrate(engine: sa.Engine) -> None:
    with engine.connect() as connection:
        version = _version(connection)
    if version > schema.VERSION:
        raise StoreError(
            f"store {_shown(str(engine.url))} was written by a newer llm-migrate (schema {version}, this one knows "
            f"{schema.VERSION}); upgrade llm-migrate"
        )
    if version == schema.VERSION:
        return
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
    with _readable("the schema's version"):
        return int(value) if value else 0


def _exchanges_query(run: str) -> sa.Select[Any]:
    request, seen = schema.requests, schema.observations
    asked, answered = schema.bodies.alias("asked"), schema.bodies.alias("answered")
    joined = (
        request.outerjoin(seen, (seen.c.run == request.c.run) & (seen.c.request == request.c.id))
        .outerjoin(asked, asked.c.hash == request.c.body)
        .outerjoin(answered, answered.c.hash == seen.c.answer)
    )
    return (
        sa.select(
            *request.c,
            *(column.label(f"seen_{column.name}") for column in seen.c),
            asked.c.data.label("asked"),
            answered.c.data.label("answered"),
        )
        .select_from(joined)
        .where(request.c.run == run)
        .order_by(request.c.at, request.c.id, seen.c.arm)
    )


def _captured_query(run: str, last: tuple[float, str] | None) -> sa.Select[Any]:
    """Requests after ``last`` (time of admission, id), with the body and the duration of the recorded answer."""
    request, seen, body = schema.requests, schema.observations, schema.bodies
    recorded = (
        (seen.c.run == request.c.run) & (seen.c.request == request.c.id) & (seen.c.arm == Arm.BASELINE.value)
    )
    joined = request.outerjoin(seen, recorded).outerjoin(body, body.c.hash == request.c.body)
    found = (
        sa.select(*request.c, body.c.data.label("asked"), seen.c.e2e_s)
        .select_from(joined)
        .where(request.c.run == run)
    )
    if last is not None:
        found = found.where(sa.tuple_(request.c.at, request.c.id) > last)
    return found.order_by(request.c.at, request.c.id)


@contextlib.contextmanager
def _readable(what: str) -> Iterator[None]:
    """Whatever a damaged row makes us trip over becomes one line that names it."""
    try:
        yield
    except (ValueError, TypeError, KeyError, AttributeError, LookupError, zlib.error) as error:
        raise StoreError(f"{what} is damaged in the store ({type(error).__name__}: {error})") from None


def _exchange(rows: list[sa.RowMapping]) -> Exchange:
    arms = {seen.arm: seen for row in rows if row["seen_arm"] is not None for seen in [_seen(row)]}
    return Exchange(
        request=_request(rows[0]),
        baseline=arms.get(Arm.BASELINE),
        candidate=arms.get(Arm.CANDIDATE),
        repeat=arms.get(Arm.BASELINE_REPEAT),
    )


def _request(row: sa.RowMapping) -> Request:
    return codec.request_value(dict(row), codec.unpack(row["asked"]) if row["asked"] is not None else b"")


def _seen(row: sa.RowMapping) -> Observation:
    columns = {key.removeprefix("seen_"): value for key, value in row.items() if key.startswith("seen_")}
    return codec.observation_value(
        columns, codec.unpack(row["answered"]) if row["answered"] is not None else None
    )


def _body(connection: sa.Connection, key: str | None) -> bytes | None:
    if key is None:
        return None
    packed = connection.scalar(sa.select(schema.bodies.c.data).where(schema.bodies.c.hash == key))
    return None if packed is None else codec.unpack(packed)


def _run(row: sa.RowMapping) -> Run:
    with _readable(f"run {row['id']}"):
        texts = {name: codec.load(row[name]) for name in ("config", "policy")}
        if not all(isinstance(value, dict) for value in texts.values()):
            raise ValueError("its configuration is no mapping")
        return Run(**(dict(row) | texts))


def _batches(items: Sequence[str], size: int) -> Iterator[tuple[str, ...]]:
    for start in range(0, len(items), size):
        yield tuple(items[start : start + size])


def _shown(url: str) -> str:
    """A store's name for a person; a password in it stays out."""
    try:
        parsed = sa.make_url(url)
    except sa.exc.ArgumentError:
        return repr(shown(url))
    return parsed.database or url if parsed.get_backend_name() == "sqlite" else shown(url)


def _words(error: sa.exc.SQLAlchemyError) -> str:
    return str(getattr(error, "orig", None) or error).splitlines()[0]
