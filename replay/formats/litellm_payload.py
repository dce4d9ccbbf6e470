"""LiteLLM's standard logging payload: one object a call, from its S3, GCS, Azure and generic callbacks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from replay.exchange import JSON
from replay.formats.record import (
    Call,
    Item,
    Record,
    Reply,
    Skip,
    Unusable,
    headers,
    made,
    moment,
    number,
    parsed,
    passed,
    text,
)
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
        for line_number, line in source.lines():
            try:
                yield _record(line_number, parsed(line))
            except Unusable as why:
                yield Skip(line=line_number, reason=why.reason, detail=why.detail)


def _record(line: int, row: JSON) -> Record:
    path = _PATHS.get(str(row.get("call_type")))
    if path is None:
        raise Unusable("not-a-model-call", f"call_type {row.get('call_type')}")
    notes = {"path-assumed", "request-rebuilt"}
    metadata = _dict(row.get("metadata"))
    custom = _dict(metadata.get("requester_custom_headers"))
    model = text(row.get("model_group")) or text(row.get("model"))
    field = (
        "messages"
        if path.endswith(("chat/completions", "messages"))
        else "prompt"
        if "completions" in path
        else "input"
    )
    body = {"model": model, field: row.get("messages"), **_dict(row.get("model_parameters"))}
    if not row.get("messages"):
        raise Unusable("request-missing", "no messages")
    start, end = moment(row.get("startTime"), notes), moment(row.get("endTime"), notes)
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
        ttft_s=passed(start, moment(row.get("completionStartTime"), notes)) if streams else None,
        duration_s=passed(start, end),
        model=model,
        user=text(row.get("end_user")),
        session=text(row.get("session_id")),
        trace=text(row.get("trace_id")),
        cost_usd=number(row.get("response_cost")),
        input_tokens=row.get("prompt_tokens") or None,
        output_tokens=row.get("completion_tokens") or None,
    )


def _response(row: JSON, notes: set[str]) -> Reply | None:
    answer: Any = row.get("response")
    if row.get("status") == "failure":
        told = _dict(row.get("error_information"))
        code = told.get("error_code")
        error = {
            "message": told.get("error_message") or row.get("error_str"),
            "type": told.get("error_class"),
            "code": code,
        }
        notes |= {"response-rebuilt", "status-inferred"}
        status = (
            int(str(code)) if str(code).isascii() and str(code).isdecimal() and len(str(code)) == 3 else None
        )
        return Reply(status=status, body={"error": {k: v for k, v in error.items() if v is not None}})
    if not answer:
        return None
    notes.add("status-inferred")
    return Reply(status=200, body=answer)


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
