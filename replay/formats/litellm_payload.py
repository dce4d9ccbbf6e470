"""LiteLLM's standard logging payload: one object a call, from its S3, GCS, Azure and generic callbacks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from replay.exchange import JSON
from replay.formats.fields import Unusable, count, headers, mapping, moment, number, passed, status_of, text
from replay.formats.record import Call, Item, Record, Reply, each, failed, made
from replay.formats.sources import Source

_PATHS = {
    "acompletion": "/v1/chat/completions",
    "completion": "/v1/chat/completions",
    "atext_completion": "/v1/completions",
    "text_completion": "/v1/completions",
    "aresponses": "/v1/responses",
    "responses": "/v1/responses",
    "anthropic_messages": "/v1/messages",
}


def matches(first: JSON) -> bool:
    """Whether a first record is a standard logging payload."""
    return "model_map_information" in first


def read(sources: Sequence[Source]) -> Iterator[Item]:
    """Each line of each source; a file with one call is one line."""
    for source in sources:
        yield from each(source.lines(), _record)


def _record(line: int, row: JSON) -> Record:
    path = path_of_call(row)
    notes = {"path-assumed", "request-rebuilt"}
    custom = mapping(mapping(row.get("metadata")).get("requester_custom_headers"))
    model = text(row.get("model_group")) or text(row.get("model"))
    body = {"model": model, _question(path): row.get("messages"), **mapping(row.get("model_parameters"))}
    start, end = moment(row.get("startTime"), notes), moment(row.get("endTime"), notes)
    first = moment(row.get("completionStartTime"), notes)
    streams = row.get("stream") is True
    if row.get("cache_hit") in (True, "True"):
        notes.add("cached")
    response = _response(row, notes)
    if streams and response is not None and response.body is not None:
        notes.add("stream-joined")
    return made(
        line,
        request=Call(
            method="POST",
            path=path,
            headers=headers(((k, str(v)) for k, v in custom.items()), notes),
            body=body,
        ),
        response=response,
        notes=notes,
        captured_at=start,
        ttft_s=first_token(streams, start, first, end),
        duration_s=passed(start, end),
        model=model,
        user=text(row.get("end_user")),
        session=text(row.get("session_id")),
        trace=text(row.get("trace_id")),
        cost_usd=number(row.get("response_cost")),
        input_tokens=count(row.get("prompt_tokens")),
        output_tokens=count(row.get("completion_tokens")),
    )


def path_of_call(row: JSON) -> str:
    """The path that a ``call_type`` stands for. Raises Unusable."""
    path = _PATHS.get(str(row.get("call_type")))
    if path is None:
        raise Unusable("not-a-model-call", f"call_type {row.get('call_type')}")
    return path


def first_token(streams: bool, start: float | None, first: float | None, end: float | None) -> float | None:
    """Seconds to the first token of a stream; a first moment that is the last one was set by nothing."""
    return passed(start, first) if streams and first != end else None


def failure(told: JSON, notes: set[str], *, message: str | None = None) -> Reply:
    """The answer of a call that failed, from LiteLLM's ``error_information``."""
    return failed(
        notes,
        status=status_of(told.get("error_code")),
        message=told.get("error_message") or message,
        type=told.get("error_class"),
        code=told.get("error_code"),
    )


def _question(path: str) -> str:
    if path.endswith(("chat/completions", "messages")):
        return "messages"
    return "prompt" if path.endswith("completions") else "input"


def _response(row: JSON, notes: set[str]) -> Reply | None:
    if row.get("status") == "failure":
        return failure(mapping(row.get("error_information")), notes, message=text(row.get("error_str")))
    if not row.get("response"):
        return None
    notes.add("status-inferred")
    return Reply(status=200, body=row["response"])
