"""The one writer of a run: a thread that takes records without ever making its caller wait."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from migrate.errors import StoreError
from migrate.store import codec, schema
from migrate.store.inserting import insert_new, upsert
from migrate.store.store import Store
from replay.exchange import Observation, Request

_BATCH = 500
_PAUSE_S = 0.25
_BACK_OFF_S = (0.5, 1.0, 2.0, 5.0)

log = logging.getLogger(__name__)

Record = Request | Observation | codec.Rows
"""``Rows`` are records that were encoded elsewhere; they count as one."""


class Writer:
    """Writes requests, observations and counters of one run in batches, one transaction each.

    ``offer`` never blocks and never raises: what does not fit is refused and counted. While the disk is full, read-only
    or locked the batch in hand is tried again with growing pauses; nothing beyond ``capacity`` is held meanwhile. A record
    that no database takes is left out and counted as refused.
    """

    def __init__(self, store: Store, run: str, *, capacity: int = 20_000) -> None:
        self._store, self._run, self._capacity = store, run, capacity
        self._records: deque[Record] = deque()
        self._counters: dict[str, int] = {}
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._written = self._refused = self._failures = 0
        self._error: str | None = None
        self._most = _BATCH
        self._thread = threading.Thread(target=self._loop, name="store-writer", daemon=True)
        self._thread.start()

    def offer(self, record: Record) -> bool:
        """Hands a record over. False when there is no room, which is counted."""
        if len(self._records) >= self._capacity or self._stopping.is_set():
            self._refused += 1
            return False
        self._records.append(record)
        if len(self._records) >= _BATCH:
            self._wake.set()
        return True

    def put(self, record: Record) -> None:
        """Hands a record over and waits while there is no room: for work that nobody waits for. Raises StoreError when the
        store takes no more."""
        while not self.offer(record):
            self._refused -= 1
            if self._error is not None or self._stopping.is_set():
                raise StoreError(f"the store takes no more: {self._error or 'it is closed'}")
            self._wake.set()
            time.sleep(0.01)

    def counters(self, values: Mapping[str, int]) -> None:
        """Hands over named counters; each replaces its earlier value."""
        self._counters = self._counters | dict(values)

    def status(self) -> dict[str, Any]:
        """What became of the records so far; ``error`` is None while writing works."""
        return {
            "written": self._written,
            "queued": len(self._records),
            "refused": self._refused,
            "failed_attempts": self._failures,
            "error": self._error,
        }

    def close(self, timeout: float) -> bool:
        """Writes what is left and ends the thread. False when that did not work within ``timeout`` seconds."""
        self._stopping.set()
        self._wake.set()
        self._thread.join(timeout)
        return not self._thread.is_alive() and self._error is None

    def _loop(self) -> None:
        while True:
            self._wake.wait(_PAUSE_S)
            self._wake.clear()
            stopping = self._stopping.is_set()
            while self._records or self._counters:
                if not self._write() and self._stopping.is_set():
                    return  # the disk does not take it, and we have been asked to end
            if stopping:
                return

    def _write(self) -> bool:
        """One batch in one transaction. False when it did not work; the batch is then tried again."""
        batch = [self._records[n] for n in range(min(self._most, len(self._records)))]
        counters, self._counters = self._counters, {}
        try:
            with self._store.engine.begin() as connection:
                _insert(connection, self._run, batch)
                rows = [{"run": self._run, "name": name, "value": value} for name, value in counters.items()]
                upsert(connection, schema.counters, rows, "value")
        except Exception as error:  # noqa: BLE001 - a thread that ended would lose everything that comes
            self._counters = counters | self._counters
            if _is_database(error):
                self._failed(str(getattr(error, "orig", None) or error).splitlines()[0])
                return False
            self._leave_out(len(batch))
            return True
        for _ in batch:
            self._records.popleft()
        self._written += len(batch)
        self._most = min(2 * self._most, _BATCH)
        self._failures, self._error = 0, None
        return True

    def _leave_out(self, tried: int) -> None:
        """Some value can be stored nowhere. Whose it is shows where one record at a time is written."""
        self._most = 1
        if tried > 1:
            return
        log.exception("a record cannot be stored and is left out")
        if tried:
            self._records.popleft()
            self._refused += 1
        else:
            self._counters = {}

    def _failed(self, words: str) -> None:
        self._error = words
        pause = _BACK_OFF_S[min(self._failures, len(_BACK_OFF_S) - 1)]
        self._failures += 1
        self._stopping.wait(pause)


def _is_database(error: Exception) -> bool:
    """Whether it is the database that failed, and not a value that it was given."""
    return isinstance(error, sa.exc.SQLAlchemyError | OSError) and not isinstance(error, sa.exc.DataError)


def _insert(connection: sa.Connection, run: str, batch: list[Record]) -> None:
    values = [record for record in batch if not isinstance(record, codec.Rows)]
    encoded = [record for record in batch if isinstance(record, codec.Rows)]
    parts = (codec.encode(run, values), *encoded)
    bodies = [{"hash": key, "data": data} for rows in parts for key, data in rows.bodies.items()]
    insert_new(connection, schema.bodies, bodies)
    insert_new(connection, schema.requests, [row for rows in parts for row in rows.requests])
    insert_new(connection, schema.observations, [row for rows in parts for row in rows.observations])
