"""Rows as values: the queries that read a run, and what their rows hold."""

from __future__ import annotations

import contextlib
import zlib
from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa

from migrate.errors import StoreError
from migrate.store import codec, schema
from replay.exchange import Arm, Exchange, Observation, Request


def exchanges_query(run: str, after: tuple[float, str] | None = None) -> sa.Select[Any]:
    """Requests with their observations, a row each, by time of admission; those after a time and id."""
    request, seen = schema.requests, schema.observations
    asked, answered = schema.bodies.alias("asked"), schema.bodies.alias("answered")
    joined = (
        request.outerjoin(seen, (seen.c.run == request.c.run) & (seen.c.request == request.c.id))
        .outerjoin(asked, asked.c.hash == request.c.body)
        .outerjoin(answered, answered.c.hash == seen.c.answer)
    )
    found = (
        sa.select(
            *request.c,
            *(column.label(f"seen_{column.name}") for column in seen.c),
            asked.c.data.label("asked"),
            answered.c.data.label("answered"),
        )
        .select_from(joined)
        .where(request.c.run == run)
    )
    if after is not None:
        found = found.where(sa.tuple_(request.c.at, request.c.id) > after)
    return found.order_by(request.c.at, request.c.id, seen.c.arm)


def captured_query(run: str, last: tuple[float, str] | None) -> sa.Select[Any]:
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
def readable(what: str) -> Iterator[None]:
    """Whatever a damaged row makes us trip over becomes one line that names it."""
    try:
        yield
    except (ValueError, TypeError, KeyError, AttributeError, LookupError, zlib.error) as error:
        raise StoreError(f"{what} is damaged in the store ({type(error).__name__}: {error})") from None


def exchange_of(rows: list[sa.RowMapping]) -> Exchange:
    """The rows of one request."""
    arms = {seen.arm: seen for row in rows if row["seen_arm"] is not None for seen in [_seen(row)]}
    return Exchange(
        request=request_of(rows[0]),
        baseline=arms.get(Arm.BASELINE),
        candidate=arms.get(Arm.CANDIDATE),
        repeat=arms.get(Arm.BASELINE_REPEAT),
    )


def request_of(row: sa.RowMapping) -> Request:
    """A request with its body, empty where that is gone."""
    return codec.request_value(dict(row), codec.unpack(row["asked"]) if row["asked"] is not None else b"")


def _seen(row: sa.RowMapping) -> Observation:
    columns = {key.removeprefix("seen_"): value for key, value in row.items() if key.startswith("seen_")}
    return codec.observation_value(
        columns, codec.unpack(row["answered"]) if row["answered"] is not None else None
    )


def body_of(connection: sa.Connection, key: str | None) -> bytes | None:
    """A body by its hash; ``None`` where it was not kept."""
    if key is None:
        return None
    packed = connection.scalar(sa.select(schema.bodies.c.data).where(schema.bodies.c.hash == key))
    return None if packed is None else codec.unpack(packed)
