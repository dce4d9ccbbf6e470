"""Portkey's log export: JSON lines of the columns that were asked for."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence

from replay.exchange import JSON
from replay.formats.fields import (
    Unusable,
    count,
    mapping,
    moment,
    number,
    path_at,
    seconds,
    status_of,
    text,
    unfolded,
    with_model,
)
from replay.formats.record import Call, Item, Record, Reply, Skip, each, made, replied
from replay.formats.sources import Source
from replay.values import compact

_NEAR = 1000
"""Records within which the attempts of one call are looked for."""
_SIGNS = {"ai_org", "req_units", "res_units"}


def matches(first: JSON) -> bool:
    """Whether a first record is of an export."""
    return first.keys() >= _SIGNS


def read(sources: Sequence[Source]) -> Iterator[Item]:
    """Each record of each source; of several attempts of one call the last."""
    for source in sources:
        yield from _last_attempts(each(source.lines(), _record))


def _last_attempts(items: Iterable[Item]) -> Iterator[Item]:
    """Fallbacks and retries share a trace and ask the same; an agent's calls share a trace and ask something else."""
    waiting: OrderedDict[int, Item] = OrderedDict()
    latest: dict[bytes, int] = {}
    for place, item in enumerate(items):
        waiting[place] = item
        if isinstance(item, Record) and item.trace is not None:
            key = _call(item)
            other = latest.get(key, place)
            earlier, latest[key] = sorted((other, place), key=lambda one: _sent(waiting.get(one)))
            if other in waiting and other != place:
                detail = f"earlier attempt of {item.trace}"
                waiting[earlier] = Skip(line=waiting[earlier].line, reason="duplicate", detail=detail)
        if len(waiting) > _NEAR:
            yield waiting.popitem(last=False)[1]
    yield from waiting.values()


def _call(record: Record) -> bytes:
    """What attempts of one call have in common."""
    body = mapping(record.request.body if record.request is not None else None)
    asked = [body.get(name) for name in ("messages", "prompt", "input")]
    return hashlib.blake2b(compact([record.trace, asked]).encode(), digest_size=16).digest()


def _sent(item: Item | None) -> float:
    return (item.captured_at or 0.0) if isinstance(item, Record) else 0.0


def _record(line: int, row: JSON) -> Record:
    notes: set[str] = set()
    asked = unfolded(row.get("request", row.get("request.body")))
    if asked is None:
        raise Unusable("request-missing", "request.body was not among the requested columns")
    if not isinstance(asked, dict):
        raise Unusable("request-truncated", "the request is not complete JSON")
    body = with_model(asked, row.get("ai_model"), notes)
    response = _response(row, notes)
    streams = str(row.get("stream_mode")).upper() == "TRUE" or body.get("stream") is True
    if streams and response is not None and response.body is not None:
        notes.add("stream-joined")
    if "HIT" in str(row.get("cache_status")).upper().split():
        notes.add("cached")
    cents = number(row.get("cost")) if row.get("cost_currency", "USD") == "USD" else None
    return made(
        line,
        request=Call(
            method=text(row.get("request_method")) or "POST",
            path=path_at(text(row.get("request_url")), body, notes),
            body=body,
        ),
        response=response,
        notes=notes,
        captured_at=moment(row.get("created_at"), notes),
        duration_s=seconds(row.get("response_time")),
        user=text(mapping(unfolded(row.get("metadata"))).get("_user")),
        trace=text(row.get("trace_id")),
        cost_usd=None if cents is None else cents / 100,
        input_tokens=count(row.get("req_units")),
        output_tokens=count(row.get("res_units")),
    )


def _response(row: JSON, notes: set[str]) -> Reply | None:
    status = status_of(row.get("response_status_code"))
    if status is None and row.get("is_success") in (1, True):
        status = 200
        notes.add("status-inferred")
    said = row.get("response", row.get("response.body"))
    if status is None and said is None:
        return None
    if status is None:
        notes.add("status-missing")
    return replied(said, notes, status=status)
