"""HTTP archives, as browsers and proxies save them."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import urlsplit

from replay.exchange import JSON
from replay.formats.fields import (
    Unusable,
    headers,
    listed,
    loaded,
    mapping,
    moment,
    seconds,
    status_of,
    target,
    text,
)
from replay.formats.record import Call, Item, Record, Reply, each, made, replied
from replay.formats.sources import Source


def matches(first: JSON) -> bool:
    """Whether a document is an archive."""
    return "entries" in mapping(first.get("log"))


def read(sources: Sequence[Source]) -> Iterator[Item]:
    """Each entry of each archive, one in memory at a time."""
    for source in sources:
        yield from each(source.items("log.entries.item"), _record)


def _record(line: int, entry: JSON) -> Record:
    asked, answered = mapping(entry.get("request")), mapping(entry.get("response"))
    if asked.get("method") != "POST":
        raise Unusable("not-a-model-call", f"{asked.get('method')} request")
    path = _path(str(asked.get("url")))
    body = loaded(text(mapping(asked.get("postData")).get("text")) or "")
    if body is not None and not isinstance(body, dict):
        raise Unusable("not-a-model-call", path.partition("?")[0])
    notes: set[str] = set()
    kept = headers(_pairs(asked.get("headers")), notes)
    response = _response(answered, notes)
    return made(
        line,
        request=Call(method="POST", path=target(path, notes), headers=kept, body=body),
        response=response,
        notes=notes,
        captured_at=moment(entry.get("startedDateTime"), notes),
        duration_s=None if response is None else seconds(entry.get("time")),
        user=text(mapping(body).get("user")),
    )


def _path(url: str) -> str:
    try:
        parts = urlsplit(url)
    except ValueError:
        raise Unusable("malformed", "no address") from None
    return parts.path + (f"?{parts.query}" if parts.query else "")


def _response(answered: JSON, notes: set[str]) -> Reply | None:
    """The answer; status 0 is a call that was blocked or cancelled."""
    status = status_of(answered.get("status"))
    if status is None:
        return None
    content = mapping(answered.get("content"))
    kept = headers(_pairs(answered.get("headers")), notes)
    return replied(
        _said(content), notes, status=status, headers=kept, kind=text(content.get("mimeType")) or ""
    )


def _said(content: JSON) -> str:
    said = text(content.get("text")) or ""
    if content.get("encoding") != "base64":
        return said
    try:
        return base64.b64decode(said).decode("utf-8", "replace")
    except (binascii.Error, ValueError):
        return ""


def _pairs(fields: Any) -> Iterator[tuple[str, str]]:
    for field in listed(fields):
        if isinstance(field, dict):
            yield str(field.get("name")), str(field.get("value"))
