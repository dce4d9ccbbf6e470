"""HTTP archives, as browsers and proxies save them."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import urlsplit

import ijson

from replay.exchange import JSON
from replay.formats.record import (
    Call,
    Item,
    Record,
    Reply,
    Skip,
    Unusable,
    headers,
    loaded,
    made,
    moment,
    number,
)
from replay.formats.sources import Source


def matches(first: JSON) -> bool:
    """Whether a document is an archive."""
    log = first.get("log")
    return isinstance(log, dict) and "entries" in log


def read(sources: Sequence[Source]) -> Iterator[Item]:
    """Each entry of each archive, one in memory at a time."""
    for source in sources:
        line = 0
        try:
            for entry in source.items("log.entries.item"):
                line += 1
                try:
                    yield _record(line, entry)
                except Unusable as why:
                    yield Skip(line=line, reason=why.reason, detail=why.detail)
        except ijson.JSONError as error:
            yield Skip(line=line + 1, reason="malformed", detail=f"not JSON: {str(error)[:80]}")


def _record(line: int, entry: Any) -> Record:
    entry = _dict(entry)
    asked, answered = _dict(entry.get("request")), _dict(entry.get("response"))
    method = str(asked.get("method"))
    if method != "POST":
        raise Unusable("not-a-model-call", f"{method} request")
    parts = urlsplit(str(asked.get("url")))
    body = loaded(_dict(asked.get("postData")).get("text") or "")
    if not isinstance(body, dict) or not {"messages", "prompt", "input"} & body.keys():
        raise Unusable(
            "request-missing" if body is None else "not-a-model-call",
            "no body" if body is None else parts.path,
        )
    notes: set[str] = set()
    kept = headers(_pairs(asked.get("headers")), notes)
    duration = number(entry.get("time"))
    response = _response(answered, notes)
    return made(
        line,
        request=Call(
            method=method,
            path=parts.path + (f"?{parts.query}" if parts.query else ""),
            headers=kept,
            body=body,
        ),
        response=response,
        notes=notes,
        captured_at=moment(entry.get("startedDateTime"), notes),
        duration_s=duration / 1000
        if duration is not None and duration >= 0 and response is not None
        else None,
        user=body.get("user") if isinstance(body.get("user"), str) else None,
    )


def _response(answered: JSON, notes: set[str]) -> Reply | None:
    """The answer; status 0 is a call that was blocked or cancelled."""
    status = answered.get("status")
    if not isinstance(status, int) or status <= 0:
        return None
    content = _dict(answered.get("content"))
    said = content.get("text") or ""
    if content.get("encoding") == "base64":
        try:
            said = base64.b64decode(said).decode("utf-8", "replace")
        except (binascii.Error, ValueError):
            said = ""
    kept = headers(_pairs(answered.get("headers")), notes)
    if str(content.get("mimeType")).startswith("text/event-stream"):
        if not said:
            return Reply(status=status, headers=kept)
        notes.add("stream-no-times")
        return Reply(status=status, headers=kept, stream=((None, said),))
    body = loaded(said)
    return Reply(status=status, headers=kept, body=said or None if body is None else body)


def _pairs(fields: Any) -> Iterator[tuple[str, str]]:
    for field in fields if isinstance(fields, list) else ():
        if isinstance(field, dict):
            yield str(field.get("name")), str(field.get("value"))


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
