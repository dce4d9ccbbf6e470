"""The store: what was observed, kept so that a verdict can be recomputed. SQLite by default, PostgreSQL by URL."""

from __future__ import annotations

from migrate.store.codec import Rows, encode
from migrate.store.store import Run, Store
from migrate.store.writer import Writer

__all__ = ["Rows", "Run", "Store", "Writer", "encode"]
