"""Amazon Bedrock's model invocation log, from S3 or CloudWatch. Converse is translated to chat, note by note."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from replay.exchange import JSON
from replay.formats import converse
from replay.formats.fields import (
    Unusable,
    count,
    listed,
    mapping,
    moment,
    path_of,
    text,
    unfolded,
    with_model,
)
from replay.formats.record import Call, Item, Record, Reply, each, failed, made
from replay.formats.sources import Source
from replay.values import compact

_STATUSES = {
    "ValidationException": 400,
    "ServiceQuotaExceededException": 400,
    "AccessDeniedException": 403,
    "ResourceNotFoundException": 404,
    "ModelTimeoutException": 408,
    "ModelErrorException": 424,
    "ModelStreamErrorException": 424,
    "ModelNotReadyException": 429,
    "ThrottlingException": 429,
    "InternalServerException": 500,
    "ServiceUnavailableException": 503,
}


def matches(first: JSON) -> bool:
    """Whether a first record is of this log, itself or as CloudWatch's message."""
    return first.get("schemaType") == "ModelInvocationLog" or '"ModelInvocationLog"' in str(
        first.get("message")
    )


def read(sources: Sequence[Source]) -> Iterator[Item]:
    """Each invocation of each source."""
    for source in sources:
        yield from each(source.objects("events"), _record)


def _record(line: int, row: JSON) -> Record:
    row = mapping(unfolded(row["message"])) if "message" in row and "schemaType" not in row else row
    notes = {"captured-at-end", "path-assumed"}
    asked, said = mapping(row.get("input")), mapping(row.get("output"))
    given = asked.get("inputBodyJson")
    if not isinstance(given, dict):
        external = "inputBodyS3Path" in asked
        raise Unusable(
            *(("request-external", "inputBodyS3Path") if external else ("request-missing", "no body"))
        )
    body, answer, lasted = _translated(row, given, said.get("outputBodyJson"), notes)
    response = _response(row, answer, notes)
    if body.get("stream") is True and response is not None and response.body is not None:
        notes.add("stream-joined")
    return made(
        line,
        request=Call(method="POST", path=path_of(body), body=body),
        response=response,
        notes=notes,
        captured_at=moment(row.get("timestamp"), notes),
        duration_s=lasted,
        model=text(row.get("modelId")),
        trace=text(row.get("requestId")),
        input_tokens=count(asked.get("inputTokenCount")),
        output_tokens=count(said.get("outputTokenCount")),
    )


def _translated(
    row: JSON, given: JSON, said: Any, notes: set[str]
) -> tuple[JSON, Reply | None, float | None]:
    """The request as chat, the answer as chat where there is one, and the duration. Raises Unusable."""
    operation = str(row.get("operation"))
    if operation.startswith("Converse"):
        notes.add("request-translated")
        body = {"model": row.get("modelId"), **converse.request(given)}
        answer, lasted = converse.response(said)
        if answer is not None:
            notes.add("response-rebuilt")
        streams = {"stream": True} if operation == "ConverseStream" else {}
        return body | streams, None if answer is None else Reply(body=answer), lasted
    if not _is_chat(given):
        raise Unusable("foreign-dialect", f"{operation} body of a model vendor")
    streams = {"stream": True} if operation.endswith("Stream") else {}
    return with_model(given, row.get("modelId"), notes) | streams, _own(said, notes), None


def _is_chat(body: JSON) -> bool:
    """Whether a body is OpenAI's: messages of text or typed parts, and no sign of another vendor."""
    messages = listed(body.get("messages"))
    return bool(messages) and "anthropic_version" not in body and all(_is_message(one) for one in messages)


def _is_message(value: Any) -> bool:
    said = mapping(value).get("content")
    parts = all("type" in mapping(part) for part in listed(said))
    return "role" in mapping(value) and (
        said is None or isinstance(said, str) or (isinstance(said, list) and parts)
    )


def _own(said: Any, notes: set[str]) -> Reply | None:
    """An answer in OpenAI's own dialect; of a stream the log keeps the events without times."""
    if isinstance(said, list) and said:
        notes |= {"response-rebuilt", "stream-no-times"}
        return Reply(stream=tuple((None, f"data: {compact(event)}\n\n") for event in said))
    return Reply(body=said) if isinstance(said, dict) and "choices" in said else None


def _response(row: JSON, answer: Reply | None, notes: set[str]) -> Reply | None:
    if (code := text(row.get("errorCode"))) is not None:
        return failed(notes, status=_STATUSES.get(code))
    if answer is None:
        return None
    notes.add("status-inferred")
    return Reply(status=200, body=answer.body, stream=answer.stream)
