"""Cloudflare AI Gateway: rows that Logpush wrote and somebody decrypted, and the API's list, which has no bodies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from replay.exchange import JSON
from replay.formats.fields import (
    Unusable,
    count,
    known_path,
    loaded,
    mapping,
    moment,
    number,
    path_at,
    seconds,
    status_of,
    text,
    with_model,
)
from replay.formats.record import Call, Item, Record, Reply, Use, each, made, replied
from replay.formats.sources import Source

_SEALED = {"key", "iv", "data"}


def matches(first: JSON) -> bool:
    """Whether a first record is of Logpush or of the API."""
    pushed = {"RequestBody", "ResponseBody"} <= first.keys()
    return pushed or {"cached", "tokens_in", "tokens_out", "provider"} <= first.keys()


def read(sources: Sequence[Source]) -> Iterator[Item]:
    """Each row of each source."""
    for source in sources:
        yield from each(source.objects("result"), _record)


def _record(line: int, row: JSON) -> Record:
    return _pushed(line, row) if "RequestBody" in row else _listed(line, row)


def _pushed(line: int, row: JSON) -> Record:
    notes = {"cached"} if row.get("Cached") is True else set()
    body = with_model(_body(row), row.get("Model"), notes)
    said = row.get("ResponseBody")
    status = status_of(row.get("StatusCode"))
    sealed = mapping(said).keys() >= _SEALED
    return made(
        line,
        request=Call(method="POST", path=path_at(text(row.get("Endpoint")), body, notes), body=body),
        response=Reply(status=status) if sealed else replied(said, notes, status=status),
        notes=notes,
        user=text(body.get("user")),
    )


def _body(row: JSON) -> JSON:
    asked = row.get("RequestBody")
    if mapping(asked).keys() >= _SEALED:
        raise Unusable("request-encrypted", "RequestBody is {key, iv, data}")
    body = loaded(asked) if isinstance(asked, str) else asked
    if body is None and asked:
        raise Unusable("request-truncated", "RequestBody is not complete JSON")
    return mapping(body)


def _listed(line: int, row: JSON) -> Record:
    """A row of times and lengths."""
    notes = {"cached"} if row.get("cached") is True else set()
    path = known_path(text(row.get("path")), notes) or f"/{row.get('path') or ''}"
    status = status_of(row.get("status_code"))
    return made(
        line,
        use=Use.TIMING,
        request=Call(method="POST", path=path),
        response=None if status is None else Reply(status=status),
        notes=notes,
        captured_at=moment(row.get("created_at"), notes),
        duration_s=seconds(row.get("duration")),
        model=text(row.get("model")),
        trace=text(row.get("id")),
        cost_usd=number(row.get("cost")),
        input_tokens=count(row.get("tokens_in")),
        output_tokens=count(row.get("tokens_out")),
    )
