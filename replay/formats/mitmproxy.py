"""Flows that mitmproxy wrote: one tnetstring each, a length, a colon, the bytes and a mark of their type.

mitmproxy's own reader cannot be installed beside us (it pins an older brotli and h11), and this much of it is small.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

from replay.coding import plain
from replay.exchange import JSON, Headers
from replay.formats.fields import (
    Unusable,
    headers,
    listed,
    loaded,
    mapping,
    moment,
    number,
    passed,
    status_of,
    target,
    text,
)
from replay.formats.record import Call, Item, Record, Reply, each, made, replied
from replay.formats.sources import Source
from replay.values import MAX_DEPTH

FIRST = re.compile(rb"\d{1,10}:\d{1,2}:[a-z_]{2,20};")
_LOOKED_AT = ("id", "type", "error", "request", "response")
_LONGEST = 2**28
"""Bytes of one flow; mitmproxy itself keeps no larger body unless it is told to."""


def read(sources: Sequence[Source]) -> Iterator[Item]:
    """Each flow of each source, one in memory at a time. What is behind a damaged length cannot be found again."""
    for source in sources:
        flows = chain(_flows(source.file()), (why for _, why in source.ended()))
        yield from each(enumerate(flows, 1), _record)


def _flows(file: io.BufferedReader[Any]) -> Iterator[Any]:
    try:
        while file.peek(1):
            yield _flow(file)
    except ValueError as error:
        yield Unusable("malformed", str(error)[:120])


def _flow(file: io.BufferedReader[Any]) -> Any:
    """The next flow, as far as it is looked at. Raises ValueError."""
    digits = b""
    while (one := file.read(1)).isdigit() and len(digits) < 10:
        digits += one
    if one != b":" or not digits or int(digits) > _LONGEST:
        raise ValueError("no length where a flow should begin")
    data, kind = file.read(int(digits)), file.read(1)
    if len(data) < int(digits) or not kind:
        raise ValueError("the file ends inside a flow")
    if kind != b"}":
        raise ValueError("a value that is no flow")
    frames = list(_frames(data))
    named = {_words(key): frame for (key, _), frame in zip(frames[::2], frames[1::2], strict=False)}
    return {name: _value(*named[name], 0) for name in _LOOKED_AT if name in named}


def _frames(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The values that stand one after the other, each as its bytes and the mark of its type. Raises ValueError."""
    place = 0
    while place < len(data):
        colon = data.index(b":", place, place + 12)
        end = colon + 1 + int(data[place:colon])
        kind = data[end : end + 1]
        if not colon < end or not kind:
            raise ValueError("a value longer than what holds it")
        yield data[colon + 1 : end], kind
        place = end + 1


def _value(data: bytes, kind: bytes, depth: int) -> Any:
    """A value by its mark: bytes stay bytes. Raises ValueError."""
    match kind:
        case b"]" | b"}" if depth < MAX_DEPTH:
            values = [_value(*frame, depth + 1) for frame in _frames(data)]
            pairs = zip(values[::2], values[1::2], strict=False)
            return values if kind == b"]" else {_words(key): value for key, value in pairs}
        case b",":
            return data
        case b";":
            return data.decode("utf-8", "replace")
        case b"#":
            return int(data)
        case b"^":
            return float(data)
        case b"!":
            return data == b"true"
        case b"~":
            return None
    raise ValueError(f"no value has the mark {kind!r}, or it is nested too deeply")


def _record(line: int, flow: JSON) -> Record:
    if flow.get("type") not in ("http", b"http"):
        raise Unusable("not-a-model-call", f"a flow of the type {_words(flow.get('type'))}")
    asked, answered = mapping(flow.get("request")), mapping(flow.get("response"))
    method, path = _words(asked.get("method")), _words(asked.get("path"))
    if method != "POST":
        raise Unusable("not-a-model-call", f"{method} {path.partition('?')[0]}")
    data = _content(asked)
    if not data:
        raise Unusable(
            "request-missing", "the body was streamed past mitmproxy" if data is None else "no body"
        )
    body = loaded(data)
    if not isinstance(body, dict):
        raise Unusable(
            "not-a-model-call" if body is not None else "request-truncated", f"POST {path.partition('?')[0]}"
        )
    notes: set[str] = set()
    start = moment(number(asked.get("timestamp_start")), notes)
    return made(
        line,
        request=Call(
            method=method, path=target(path, notes), headers=headers(_pairs(asked), notes), body=body
        ),
        response=_response(answered, notes, broken=flow.get("error") is not None) if answered else None,
        notes=notes,
        captured_at=start,
        duration_s=passed(start, number(answered.get("timestamp_end"))),
        user=text(body.get("user")),
        trace=_words(flow.get("id")) or None,
    )


def _response(answered: JSON, notes: set[str], *, broken: bool) -> Reply:
    status, pairs = status_of(answered.get("status_code")), _pairs(answered)
    kept = headers(pairs, notes)
    data = _content(answered)
    if broken or (data is None and answered.get("content") is not None):
        notes.add("response-truncated")
        return Reply(status=status, headers=kept)
    kind = next((value for name, value in pairs if name.lower() == "content-type"), "")
    said = (data or b"").decode("utf-8", "replace")
    return replied(said, notes, status=status, headers=kept, kind=kind)


def _content(message: JSON) -> bytes | None:
    """The body without its content coding; ``None`` when it was not kept or cannot be decoded."""
    data = message.get("content")
    if not isinstance(data, bytes):
        return None
    coding = next((value for name, value in _pairs(message) if name.lower() == "content-encoding"), None)
    chunks, problem = plain(((0.0, data),), coding)
    return None if problem else b"".join(piece for _, piece in chunks)


def _pairs(message: JSON) -> Headers:
    fields = [
        field for field in listed(message.get("headers")) if isinstance(field, list) and len(field) == 2
    ]
    return tuple((_words(name), _words(value)) for name, value in fields)


def _words(value: Any) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else str(value or "")
