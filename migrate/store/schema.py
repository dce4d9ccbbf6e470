"""Tables and migrations. A released migration is never edited; a change is a new one at the end."""

from __future__ import annotations

from collections.abc import Callable

import sqlalchemy as sa

metadata = sa.MetaData()

_Key = sa.String(80)
_Real = sa.Double

meta = sa.Table(
    "meta", metadata, sa.Column("name", _Key, primary_key=True), sa.Column("value", sa.Text, nullable=False)
)

runs = sa.Table(
    "runs",
    metadata,
    sa.Column("id", _Key, primary_key=True),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("started_at", _Real, nullable=False),
    sa.Column("ended_at", _Real),
    sa.Column("status", sa.Text, nullable=False),
    sa.Column("seed", sa.BigInteger, nullable=False),
    sa.Column("config", sa.Text, nullable=False),
    sa.Column("policy", sa.Text, nullable=False),
)

requests = sa.Table(
    "requests",
    metadata,
    sa.Column("run", _Key, primary_key=True),
    sa.Column("id", _Key, primary_key=True),
    sa.Column("at", _Real, nullable=False),
    sa.Column("method", sa.Text, nullable=False),
    sa.Column("path", sa.Text, nullable=False),
    sa.Column("headers", sa.Text, nullable=False),
    sa.Column("conversation", sa.Text, nullable=False),
    sa.Column("body", _Key, nullable=False),
    sa.Column("side", _Key),
    sa.Index("requests_by_time", "run", "at", "id"),
)

observations = sa.Table(
    "observations",
    metadata,
    sa.Column("run", _Key, primary_key=True),
    sa.Column("request", _Key, primary_key=True),
    sa.Column("arm", _Key, primary_key=True),
    sa.Column("at", _Real, nullable=False),
    sa.Column("outcome", sa.Text, nullable=False),
    sa.Column("reason", sa.Text, nullable=False),
    sa.Column("status", sa.Integer),
    sa.Column("earlier", sa.Text, nullable=False),
    sa.Column("head_s", _Real),
    sa.Column("ttft_s", _Real),
    sa.Column("e2e_s", _Real),
    sa.Column("generated_s", _Real),
    sa.Column("lag_s", _Real),
    sa.Column("connect_s", _Real),
    sa.Column("output_tokens", sa.BigInteger),
    sa.Column("content_times", sa.LargeBinary, nullable=False),
    sa.Column("headers", sa.Text, nullable=False),
    sa.Column("failure", sa.Text),
    sa.Column("answer", _Key),
    sa.Column("raw", _Key),
)

bodies = sa.Table(
    "bodies",
    metadata,
    sa.Column("hash", _Key, primary_key=True),
    sa.Column("data", sa.LargeBinary, nullable=False),
)
"""Every request body, answer and raw body once, by the SHA-256 of its content, compressed with zstd."""

counters = sa.Table(
    "counters",
    metadata,
    sa.Column("run", _Key, primary_key=True),
    sa.Column("name", _Key, primary_key=True),
    sa.Column("value", sa.BigInteger, nullable=False),
)

vectors = sa.Table(
    "vectors",
    metadata,
    sa.Column("model", _Key, primary_key=True),
    sa.Column("hash", _Key, primary_key=True),
    sa.Column("vector", sa.LargeBinary, nullable=False),
)

opinions = sa.Table(
    "opinions",
    metadata,
    sa.Column("model", _Key, primary_key=True),
    sa.Column("hash", _Key, primary_key=True),
    sa.Column("opinion", sa.Text, nullable=False),
)
"""What a judge model said of two answers in one order."""

acknowledgements = sa.Table(
    "acknowledgements",
    metadata,
    sa.Column("run", _Key, primary_key=True),
    sa.Column("at", _Real, primary_key=True),
    sa.Column("who", sa.Text, nullable=False),
    sa.Column("why", sa.Text, nullable=False),
    sa.Column("code", _Key, nullable=False),
)
"""Who took note of a ROLLBACK, when, why, and which."""

servers = sa.Table(
    "servers",
    metadata,
    sa.Column("run", _Key, primary_key=True),
    sa.Column("arm", _Key, primary_key=True),
    sa.Column("at", _Real, primary_key=True),
    sa.Column("said", sa.Text, nullable=False),
)
"""What each server said it is when a run began, or went on: ``replay.told.Told`` as JSON."""

server_readings = sa.Table(
    "server_readings",
    metadata,
    sa.Column("run", _Key, primary_key=True),
    sa.Column("arm", _Key, primary_key=True),
    sa.Column("at", _Real, primary_key=True),
    *(
        sa.Column(name, _Real)
        for name in (
            "running",
            "waiting",
            "kv_cache",
            "queued_s",
            "queued",
            "prefix_queries",
            "prefix_hits",
            "preemptions",
        )
    ),
)
"""What a server stated of itself at a moment; NULL where it did not."""

sheets = sa.Table(
    "sheets",
    metadata,
    sa.Column("run", _Key, primary_key=True),
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("question", _Key, nullable=False),
    sa.Column("data", sa.LargeBinary, nullable=False),
)
"""What was found out about the pairs of a run that has ended, some thousand each, as long as the same is asked."""

notices = sa.Table(
    "notices",
    metadata,
    sa.Column("run", _Key, primary_key=True),
    sa.Column("receiver", _Key, primary_key=True),
    sa.Column("subject", _Key, primary_key=True),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("number", sa.Integer, nullable=False),
    sa.Column("at", _Real, nullable=False),
)
"""What each receiver was last told of a subject of a run, and how often it was told."""


shifts = sa.Table(
    "shifts",
    metadata,
    sa.Column("canary", _Key, primary_key=True),
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("at", _Real, nullable=False),
    sa.Column("who", sa.Text, nullable=False),
    sa.Column("action", _Key, nullable=False),
    sa.Column("why", sa.Text, nullable=False),
    sa.Column("phase", _Key, nullable=False),
    sa.Column("share", _Real, nullable=False),
    sa.Column("step", sa.Integer, nullable=False),
    sa.Column("since", _Real, nullable=False),
    sa.Column("rollbacks", sa.Integer, nullable=False),
    sa.Column("until", _Real),
    sa.Column("approved", sa.Boolean, nullable=False),
    sa.Column("run", sa.Text, nullable=False),
)
"""Every change of a canary; the last one is its state. Nothing in it is ever changed."""


def _first(connection: sa.Connection) -> None:
    metadata.create_all(connection)


def _second(connection: sa.Connection) -> None:
    """When a replayed request left. A store made from scratch has the columns already."""
    there = {column["name"] for column in sa.inspect(connection).get_columns("observations")}
    for name in ("lag_s", "connect_s"):
        if name not in there:
            connection.execute(sa.text(f"ALTER TABLE observations ADD COLUMN {name} DOUBLE PRECISION"))


def _third(connection: sa.Connection) -> None:
    """What a judge model said."""
    opinions.create(connection, checkfirst=True)


def _fourth(connection: sa.Connection) -> None:
    """Who acknowledged a ROLLBACK."""
    acknowledgements.create(connection, checkfirst=True)


def _fifth(connection: sa.Connection) -> None:
    """The servers' own view."""
    server_readings.create(connection, checkfirst=True)


def _sixth(connection: sa.Connection) -> None:
    """What was found out about pairs."""
    sheets.create(connection, checkfirst=True)


def _seventh(connection: sa.Connection) -> None:
    """What the servers said they are."""
    servers.create(connection, checkfirst=True)


def _eighth(connection: sa.Connection) -> None:
    """Who was told what."""
    notices.create(connection, checkfirst=True)


def _ninth(connection: sa.Connection) -> None:
    """Which side a request was meant for, and how the traffic was moved."""
    there = {column["name"] for column in sa.inspect(connection).get_columns("requests")}
    if "side" not in there:
        connection.execute(sa.text("ALTER TABLE requests ADD COLUMN side VARCHAR(80)"))
    shifts.create(connection, checkfirst=True)


MIGRATIONS: tuple[Callable[[sa.Connection], None], ...] = (
    _first,
    _second,
    _third,
    _fourth,
    _fifth,
    _sixth,
    _seventh,
    _eighth,
    _ninth,
)
"""Append only. The schema's version is how many have run."""

VERSION = len(MIGRATIONS)
