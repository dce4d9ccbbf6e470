"""Spans by the conventions of OpenInference: ``llm.*``, ``input.value`` and ``output.value``. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from replay.exchange import JSON
from replay.formats import chat
from replay.formats.fields import (
    Unusable,
    count,
    listed,
    loaded,
    mapping,
    passed,
    path_of,
    text,
    unfolded,
    with_model,
)
from replay.formats.record import Call, Record, Reply, failed, made
from replay.formats.spans import Span, numbered

KIND = "openinference.span.kind"
_FIRST_TOKEN = "First Token Stream Event"  # noqa: S105 - the name of an event


def record(line: int, span: Span, notes: set[str]) -> Record:
    """The call that a span of the kind LLM describes. Raises Unusable."""
    notes.add("path-assumed")
    fields = span.attributes
    body = _body(span, notes)
    tokens = count(fields.get("llm.token_count.prompt")), count(fields.get("llm.token_count.completion"))
    response = _response(span, tokens, notes)
    if body.get("stream") is True and response is not None and response.body is not None:
        notes.add("stream-joined")
    first = next((event.at for event in span.events if event.name == _FIRST_TOKEN), None)
    return made(
        line,
        request=Call(method="POST", path=path_of(body), body=body),
        response=response,
        notes=notes,
        captured_at=span.start,
        ttft_s=passed(span.start, first),
        duration_s=passed(span.start, span.end),
        user=text(fields.get("user.id")),
        session=text(fields.get("session.id")),
        trace=span.trace,
        input_tokens=tokens[0],
        output_tokens=tokens[1],
    )


def _body(span: Span, notes: set[str]) -> JSON:
    """``input.value`` where it is the whole request, else what the other attributes say of it."""
    given = span.attributes.get("input.value")
    if given == "__REDACTED__":
        raise Unusable("request-redacted", "input.value is __REDACTED__")
    body = mapping(unfolded(given))
    if not _is_request(body):
        body = _rebuilt(span, given)
        notes.add("request-rebuilt")
    return with_model(body, span.attributes.get("llm.model_name"), notes)


def _is_request(value: JSON) -> bool:
    """Whether it is what a client sent, and no object of a framework."""
    if "messages" not in value:
        return "prompt" in value or "input" in value
    messages = listed(value["messages"])
    return bool(messages) and all("role" in mapping(one) for one in messages)


def _rebuilt(span: Span, given: Any) -> JSON:
    fields = span.attributes
    if span.dropped:
        raise Unusable("request-truncated", "attributes were dropped")
    if (
        fields.get("input.mime_type") == "application/json"
        and isinstance(given, str)
        and loaded(given) is None
    ):
        raise Unusable("request-truncated", "input.value is not complete JSON")
    messages = [_message(one) for one in numbered(fields, "llm.input_messages")]
    if not messages:
        raise Unusable("request-missing", "neither input.value nor llm.input_messages is a request")
    tools = [unfolded(one.get("tool.json_schema")) for one in numbered(fields, "llm.tools")]
    if not tools and chat.calls_tools([*messages, *(_answers(span) or [])]):
        raise Unusable("request-truncated", "tools are called but no tool definitions were recorded")
    asked = mapping(unfolded(fields.get("llm.invocation_parameters")))
    return {**asked, "messages": messages, **({"tools": tools} if tools else {})}


def _message(fields: Mapping[str, Any]) -> JSON:
    """A message from its attributes, whose names begin with ``message.``."""
    parts = [_part(one) for one in numbered(fields, "message.contents")]
    calls = [
        chat.tool_call(
            one.get("tool_call.function.name"),
            one.get("tool_call.function.arguments"),
            one.get("tool_call.id"),
        )
        for one in numbered(fields, "message.tool_calls")
    ]
    said = fields.get("message.content")
    message = {"role": fields.get("message.role"), "content": chat.content(parts) if said is None else said}
    more = {"name": fields.get("message.name"), "tool_call_id": fields.get("message.tool_call_id")}
    message |= {name: value for name, value in more.items() if value is not None}
    return message | ({"tool_calls": calls} if calls else {})


def _part(fields: Mapping[str, Any]) -> JSON:
    kind = fields.get("message_content.type")
    if kind == "text":
        return {"type": "text", "text": fields.get("message_content.text")}
    address = text(fields.get("message_content.image.image.url"))
    if kind == "image" and address is not None:
        return {"type": "image_url", "image_url": {"url": address}}
    raise Unusable("foreign-dialect", f"a part of the type {kind}")


def _response(span: Span, tokens: tuple[int | None, int | None], notes: set[str]) -> Reply | None:
    if span.failed:
        return failed(notes, status=span.status, message=span.message)
    fields = span.attributes
    said = mapping(unfolded(fields.get("output.value")))
    if said.keys() & {"choices", "output", "data"}:
        notes.add("status-inferred")
        return Reply(status=200, body=said)
    answers = _answers(span)
    if answers is None:
        notes.add("response-truncated")
    if not answers:
        return None
    notes |= {"response-rebuilt", "status-inferred"}
    return Reply(status=200, body=chat.answer([chat.choice(*one) for one in enumerate(answers)], tokens))


def _answers(span: Span) -> list[JSON] | None:
    """The messages of the answer; ``None`` when some of it was left out."""
    said = span.attributes.get("output.value")
    try:
        if answers := [_message(one) for one in numbered(span.attributes, "llm.output_messages")]:
            return answers
    except Unusable:
        return None
    if isinstance(said, str) and said and span.attributes.get("output.mime_type") != "application/json":
        return [{"role": "assistant", "content": said}]
    return []
