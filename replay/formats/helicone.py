"""Helicone's export, as JSON lines, a JSON list that may end in a comma, or CSV without answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

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
from replay.formats.record import Call, Item, Record, Reply, each, made, replied
from replay.formats.sources import Source

_SIGNS = {"request_created_at", "response_status"}
_TOO_LARGE = "helicone_message"


def matches(first: JSON) -> bool:
    """Whether a first record is of an export."""
    return first.keys() >= _SIGNS


def columns(names: set[str]) -> bool:
    """Whether a CSV header is that of an export."""
    return names >= _SIGNS


def read(sources: Sequence[Source]) -> Iterator[Item]:
    """Each record of each source."""
    for source in sources:
        yield from each(source.objects("data", table=True), _record)


def _record(line: int, row: JSON) -> Record:
    notes: set[str] = set()
    body = with_model(_body(row), row.get("request_model"), notes)
    path = path_at(text(row.get("request_path")) or text(row.get("target_url")), body, notes)
    response = _response(row, notes)
    streams = body.get("stream") is True
    if streams and response is not None and response.body is not None:
        notes.add("stream-joined")
    properties = mapping(_twice(row.get("request_properties")))
    cost, duration = row.get("costUSD"), row.get("delay_ms")
    return made(
        line,
        request=Call(method="POST", path=path, body=body),
        response=response,
        notes=notes,
        captured_at=moment(row.get("request_created_at"), notes),
        ttft_s=seconds(row.get("time_to_first_token")) or None,
        duration_s=seconds(row.get("latency") if duration is None else duration),
        user=text(row.get("request_user_id")),
        session=text(properties.get("Helicone-Session-Id")),
        trace=text(row.get("request_id")) or text(row.get("response_id")),
        cost_usd=number(row.get("cost") if cost is None else cost),
        input_tokens=count(row.get("prompt_tokens")),
        output_tokens=count(row.get("completion_tokens")),
    )


def _body(row: JSON) -> JSON:
    given = row.get("request_body")
    body = _twice(given)
    if given in (None, ""):
        external = text(row.get("signed_body_url")) is not None
        detail = "bodies were not included in the export"
        raise Unusable(
            "request-external" if external else "request-missing",
            f"{detail} (signed_body_url only)" if external else detail,
        )
    if not isinstance(body, dict):
        raise Unusable("request-truncated", "request_body is not complete JSON")
    if _TOO_LARGE in body:
        raise Unusable("request-truncated", f"no body: {body[_TOO_LARGE]}")
    return body


def _twice(cell: Any) -> Any:
    """A value whose CSV cell was quoted twice, or not at all."""
    found = unfolded(cell)
    if isinstance(found, str) and '""' in found:
        return unfolded(found.replace('""', '"'))
    return found


def _response(row: JSON, notes: set[str]) -> Reply | None:
    """The answer; a negative status is Helicone's own and says that there is none."""
    status = status_of(row.get("response_status"))
    if status is None or "response_body" not in row:
        return None
    said = row["response_body"]
    if _TOO_LARGE in mapping(said):
        notes.add("response-truncated")
        return Reply(status=status)
    return replied(said, notes, status=status)
