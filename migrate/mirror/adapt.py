"""From a production request to the call that goes to another backend. Pure.

A copy keeps the request's meaning: the only edits are the model's name and ``store``, and nothing is forwarded that
identifies the client.
"""

from __future__ import annotations

import orjson

from migrate.config import Backend, Shadow
from migrate.sensitive import names_secret
from migrate.tap import COPY
from replay.client import Call
from replay.exchange import Headers, Request

MARKER = (COPY, "1")
"""Tells the candidate's own logs and metrics which requests are copies."""

FORWARDED = frozenset({"content-type", "accept", "openai-beta"})


def call_for(
    request: Request, backend: Backend, *, names: dict[str, str], key: str | None, shadow: Shadow
) -> Call:
    """The call of ``backend`` that asks what ``request`` asked.

    ``names`` maps the model names that clients use to those of this backend. ``key``: the backend's own, never a
    client's.
    """
    timeouts = backend.timeouts
    return Call(
        url=backend.url + request.path,
        method=request.method,
        headers=(*_headers(request.headers), MARKER, *((("Authorization", f"Bearer {key}"),) if key else ())),
        body=body_for(request.body, names),
        connect=timeouts.connect,
        first_byte=timeouts.first_byte,
        total=timeouts.total,
        max_answer=shadow.max_answer,
    )


def body_for(body: bytes, names: dict[str, str]) -> bytes:
    """The body with the backend's model name, never asking it to store and without a client's key among its fields; the
    same bytes when nothing has to change."""
    data = orjson.loads(body)
    edited = {name: value for name, value in data.items() if not _secret(name, value)}
    if isinstance(model := data.get("model"), str) and model in names:
        edited["model"] = names[model]
    if data.get("store"):
        edited["store"] = False
    return body if edited == data else orjson.dumps(edited)


def _secret(name: str, value: object) -> bool:
    return isinstance(value, str) and names_secret(name, value)


def model_names(baseline: Backend, candidate: Backend) -> dict[str, str]:
    """What each model that clients ask for is called at the candidate."""
    names = {baseline.model: candidate.model} if baseline.model and candidate.model else {}
    return names | candidate.models


def _headers(headers: Headers) -> Headers:
    """What goes along. A log rarely has headers, and a server refuses JSON that does not say that it is."""
    kept = tuple((name, value) for name, value in headers if name.lower() in FORWARDED)
    typed = any(name.lower() == "content-type" for name, _ in kept)
    return kept if typed else (("Content-Type", "application/json"), *kept)
