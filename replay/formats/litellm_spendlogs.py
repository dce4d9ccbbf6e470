"""LiteLLM's spend logs, as a CSV of the table or pages of ``/spend/logs/v2``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from replay.exchange import JSON
from replay.formats.fields import (
    Unusable,
    count,
    mapping,
    moment,
    number,
    passed,
    seconds,
    text,
    unfolded,
    with_model,
)
from replay.formats.litellm_payload import failure, first_token, path_of_call
from replay.formats.record import Call, Item, Record, Reply, each, made
from replay.formats.sources import Source

_COLUMNS = {"request_id", "call_type", "spend"}


def matches(first: JSON) -> bool:
    """Whether a first record is a row of the table."""
    return first.keys() >= _COLUMNS


def columns(names: set[str]) -> bool:
    """Whether a CSV header is that of the table."""
    return names >= _COLUMNS


def read(sources: Sequence[Source]) -> Iterator[Item]:
    """Each row of each source."""
    for source in sources:
        yield from each(source.objects("data", table=True), _record)


def _record(line: int, row: JSON) -> Record:
    path = path_of_call(row)
    notes = {"path-assumed"}
    body = _body(row, notes)
    start, end = moment(row.get("startTime"), notes), moment(row.get("endTime"), notes)
    first = moment(row.get("completionStartTime"), notes)
    streams = body.get("stream") is True
    if row.get("cache_hit") in (True, "True", "true"):
        notes.add("cached")
    response = _response(row, notes)
    if streams and response is not None and response.body is not None:
        notes.add("stream-joined")
    duration = passed(start, end)
    return made(
        line,
        request=Call(method="POST", path=path, body=body),
        response=response,
        notes=notes,
        captured_at=start,
        ttft_s=first_token(streams, start, first, end),
        duration_s=seconds(row.get("request_duration_ms")) if duration is None else duration,
        user=text(row.get("end_user")),
        session=text(row.get("session_id")),
        trace=text(row.get("request_id")),
        cost_usd=number(row.get("spend")),
        input_tokens=count(row.get("prompt_tokens")),
        output_tokens=count(row.get("completion_tokens")),
    )


def _body(row: JSON, notes: set[str]) -> JSON:
    """The body as the client sent it, without what LiteLLM put beside it."""
    asked = mapping(unfolded(row.get("proxy_server_request")))
    if not asked:
        raise Unusable("request-missing", "prompts were not stored (proxy_server_request is {})")
    body = {
        name: value
        for name, value in asked.items()
        if name not in ("metadata", "proxy_server_request") and not name.startswith("litellm_")
    }
    return with_model(body, text(row.get("model_group")) or row.get("model"), notes)


def _response(row: JSON, notes: set[str]) -> Reply | None:
    metadata = mapping(unfolded(row.get("metadata")))
    if "failure" in (row.get("status"), metadata.get("status")):
        return failure(mapping(metadata.get("error_information")), notes)
    answer = unfolded(row.get("response"))
    if not answer:
        return None
    notes.add("status-inferred")
    return Reply(status=200, body=answer)
