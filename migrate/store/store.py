"""Opening a store, its runs, and reading what was recorded."""

from __future__ import annotations

import contextlib
import difflib
import itertools
import json
import math
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

import sqlalchemy as sa

from migrate.address import shown
from migrate.errors import StoreError
from migrate.store import codec, schema
from migrate.store.inserting import insert_new, upsert
from migrate.store.opening import bring_up, connected, shown_name, words
from migrate.store.reading import body_of, captured_query, exchange_of, exchanges_query, readable, request_of
from replay.exchange import JSON, Arm, Exchange, Observation, Request
from replay.prometheus import Reading
from replay.told import Told
from replay.values import compact
from reports.acknowledgement import Acknowledgement

_PAGE = 500


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
        engine = connected(url, create=create)
        try:
            bring_up(engine, shown_name(url))
        except sa.exc.SQLAlchemyError as error:
            engine.dispose()
            raise StoreError(f"store {shown_name(url)} cannot be opened: {words(error)}") from None
        except StoreError:
            engine.dispose()
            raise
        return cls(url, engine)

    @property
    def name(self) -> str:
        """The store's name for a person; a password in it stays out."""
        return shown_name(self.url)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Gives back every connection, with what it keeps in memory; the next question opens another."""
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
            raise StoreError(
                f"store {shown_name(self.url)} holds no run yet; fill it with migrate import, capture or shadow"
            )
        close = difflib.get_close_matches(run or "", [one.id for one in found], n=1, cutoff=0.3)
        hint = f"; did you mean {close[0]}?" if close else ""
        raise StoreError(
            f"store {shown_name(self.url)} holds no run {run!r}{hint} (list them with migrate runs)"
        )

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

    def held(self, run: str, after: tuple[float, str] | None, upto: tuple[float, str]) -> tuple[int, int]:
        """How many requests a run holds after a time of admission and id (``None``: from the first on) up to another, and how
        many observations of these. Neither is ever taken away or changed."""
        asked, seen = schema.requests, schema.observations
        place = sa.tuple_(asked.c.at, asked.c.id)
        within = (asked.c.run == run) & (place <= upto)
        if after is not None:
            within &= place > after
        requests = sa.select(sa.func.count()).select_from(asked).where(within)
        both = asked.join(seen, (seen.c.run == asked.c.run) & (seen.c.request == asked.c.id))
        observations = sa.select(sa.func.count()).select_from(both).where(within)
        with self.engine.connect() as connection:
            return int(connection.scalar(requests) or 0), int(connection.scalar(observations) or 0)

    def count_up(self, run: str, counters: Mapping[str, int]) -> None:
        """Writes counters; each replaces its earlier value."""
        rows = [{"run": run, "name": name, "value": value} for name, value in counters.items()]
        with self._writing() as connection:
            upsert(connection, schema.counters, rows, "value")

    def acknowledge(self, run: str, note: Acknowledgement) -> None:
        """Keeps that somebody took note of a run's ROLLBACK. What it says has to be redacted before."""
        row = {"run": run, "at": note.at, "who": note.who, "why": note.why, "code": note.code}
        with self._writing() as connection:
            connection.execute(schema.acknowledgements.insert().values(row))

    def acknowledgements(self, run: str) -> tuple[Acknowledgement, ...]:
        """Who took note of a run's ROLLBACK, the earliest first."""
        table = schema.acknowledgements.c
        query = sa.select(table.at, table.who, table.why, table.code).where(table.run == run)
        with self.engine.connect() as connection:
            rows = connection.execute(query.order_by(table.at)).mappings()
            return tuple(Acknowledgement(**row) for row in rows)

    def notices(self, run: str, receiver: str) -> dict[str, tuple[str, int]]:
        """What a receiver was last told of a run: by subject, the state and how often it was told of it."""
        table = schema.notices.c
        query = sa.select(table.subject, table.state, table.number)
        query = query.where(table.run == run, table.receiver == receiver)
        with self.engine.connect() as connection:
            return {row.subject: (row.state, row.number) for row in connection.execute(query)}

    def put_notice(
        self, run: str, receiver: str, subject: str, state: str, *, number: int, at: float
    ) -> None:
        """Keeps that a receiver was told; ``at`` in epoch seconds."""
        table, row = schema.notices, {"state": state, "number": number, "at": at}
        key = {"run": run, "receiver": receiver, "subject": subject}
        with self._writing() as connection:
            connection.execute(table.delete().filter_by(**key))
            connection.execute(table.insert().values(key | row))

    def put_told(self, run: str, arm: Arm, at: float, said: Told) -> None:
        """Keeps what a server says it is; ``at`` in epoch seconds."""
        with self._writing() as connection:
            connection.execute(
                schema.servers.insert().values(run=run, arm=arm.value, at=at, said=compact(asdict(said)))
            )

    def told(self, run: str) -> dict[Arm, Told]:
        """What the servers of a run said last that they are; an arm that was not asked is left out."""
        table = schema.servers
        query = sa.select(table.c.arm, table.c.said).where(table.c.run == run).order_by(table.c.at)
        with self.engine.connect() as connection:
            return {Arm(row.arm): Told.of(json.loads(row.said)) for row in connection.execute(query)}

    def put_reading(self, run: str, arm: Arm, seen: Reading) -> None:
        """Keeps what a server stated of itself; ``at`` in epoch seconds."""
        with self._writing() as connection:
            connection.execute(schema.server_readings.insert().values(run=run, arm=arm.value, **asdict(seen)))

    def readings(self, run: str) -> dict[Arm, list[Reading]]:
        """What the servers of a run stated of themselves, the earliest first; an arm that stated nothing is left out."""
        table = schema.server_readings
        query = sa.select(table).where(table.c.run == run).order_by(table.c.at)
        found: dict[Arm, list[Reading]] = {}
        with self.engine.connect() as connection:
            for row in connection.execute(query).mappings():
                values = {name: value for name, value in row.items() if name not in ("run", "arm")}
                found.setdefault(Arm(row["arm"]), []).append(Reading(**values))
        return found

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
            query = captured_query(run, last).limit(_PAGE)
            with self.engine.connect() as connection:
                rows = list(connection.execute(query).mappings())
            for row in rows:
                with readable(f"request {row['id']} of run {run}"):
                    request = request_of(row)
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

    def exchanges(self, run: str, after: tuple[float, str] | None = None) -> Iterator[Exchange]:
        """Every request of a run with its observations, by time of admission, in constant memory; ``after``: only those behind
        that time and id. Raw bodies stay out."""
        with self.engine.connect() as connection:
            rows = connection.execution_options(yield_per=500).execute(exchanges_query(run, after)).mappings()
            for name, group in itertools.groupby(rows, key=lambda row: row["id"]):
                with readable(f"request {name} of run {run}"):
                    exchange = exchange_of(list(group))
                yield exchange

    def exchange(self, run: str, request: str) -> Exchange:
        """One request of a run with its observations. Raises StoreError when the run has no such request."""
        query = exchanges_query(run).where(schema.requests.c.id == request)
        with self.engine.connect() as connection:
            rows = list(connection.execute(query).mappings())
        if not rows:
            raise StoreError(f"run {run} holds no request {request!r}")
        return exchange_of(rows)

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
            answer, raw = body_of(connection, row["answer"]), body_of(connection, row["raw"])
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
            connection.execute(schema.sheets.delete().where(schema.sheets.c.run.not_in(recent)))
            gone = connection.execute(schema.bodies.delete().where(schema.bodies.c.hash.not_in(wanted)))
        return int(gone.rowcount)

    def sheets(self, run: str, question: str) -> Iterator[bytes]:
        """What is known of a run's pairs as an answer to that question, from the first on without a gap."""
        table = schema.sheets.c
        query = sa.select(table.number, table.data).where(table.run == run, table.question == question)
        with self.engine.connect() as connection:
            rows = connection.execution_options(yield_per=1).execute(query.order_by(table.number))
            for place, row in enumerate(rows):
                if row.number != place:
                    return
                yield codec.unpack(row.data)

    def put_sheet(self, run: str, question: str, number: int, data: bytes) -> None:
        """Keeps it, instead of what answered another question."""
        table = schema.sheets
        row = {"run": run, "number": number, "question": question, "data": codec.pack(data)[1]}
        with self._writing() as connection:
            connection.execute(table.delete().where(table.c.run == run, table.c.question != question))
            connection.execute(table.delete().where(table.c.run == run, table.c.number >= number))
            connection.execute(table.insert().values(row))

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
            raise StoreError(f"store {self.name} cannot be written: {words(error)}") from None


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


def _run(row: sa.RowMapping) -> Run:
    with readable(f"run {row['id']}"):
        texts = {name: codec.load(row[name]) for name in ("config", "policy")}
        if not all(isinstance(value, dict) for value in texts.values()):
            raise ValueError("its configuration is no mapping")
        return Run(**(dict(row) | texts))


def _batches(items: Sequence[str], size: int) -> Iterator[tuple[str, ...]]:
    for start in range(0, len(items), size):
        yield tuple(items[start : start + size])
