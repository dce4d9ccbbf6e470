"""Spans by OpenTelemetry's conventions for generative AI. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from replay.exchange import JSON
from replay.formats import chat
from replay.formats.dialogue import Talk, dialogue
from replay.formats.fields import (
    Unusable,
    count,
    lasting,
    listed,
    mapping,
    passed,
    text,
    unfolded,
)
from replay.formats.record import Call, Record, Reply, failed, made
from replay.formats.spans import Span

_CALLS = ("chat", "text_completion", "generate_content", "completion")
_PARAMETERS = {
    "gen_ai.request.temperature": "temperature",
    "gen_ai.request.top_p": "top_p",
    "gen_ai.request.top_k": "top_k",
    "llm.top_k": "top_k",
    "gen_ai.request.max_tokens": "max_tokens",
    "gen_ai.request.max_completion_tokens": "max_completion_tokens",
    "gen_ai.request.frequency_penalty": "frequency_penalty",
    "llm.frequency_penalty": "frequency_penalty",
    "gen_ai.request.presence_penalty": "presence_penalty",
    "llm.presence_penalty": "presence_penalty",
    "gen_ai.request.repetition_penalty": "repetition_penalty",
    "gen_ai.request.stop_sequences": "stop",
    "llm.chat.stop_sequences": "stop",
    "gen_ai.request.seed": "seed",
    "gen_ai.openai.request.seed": "seed",
    "gen_ai.request.choice.count": "n",
    "gen_ai.request.n": "n",
    "gen_ai.request.reasoning_effort": "reasoning_effort",
    "gen_ai.openai.request.service_tier": "service_tier",
    "openai.request.service_tier": "service_tier",
    "gen_ai.user": "user",
    "llm.user": "user",
    "gen_ai.request.stream": "stream",
    "gen_ai.is_streaming": "stream",
    "llm.is_streaming": "stream",
}


def record(line: int, span: Span, notes: set[str]) -> Record:
    """The call that a span describes. Raises Unusable."""
    fields = span.attributes
    kind = _kind(fields)
    if span.dropped:
        raise Unusable("request-truncated", "attributes or events were dropped")
    talk = dialogue(span)
    if talk is None or not talk.messages:
        raise Unusable("request-missing", "content capture was off")
    if not talk.tools and chat.calls_tools([*talk.messages, *(one.get("message") for one in talk.choices)]):
        raise Unusable("request-truncated", "the answer calls tools but no tool definitions were recorded")
    notes |= {"path-assumed", "request-rebuilt"}
    body = _body(talk, fields)
    path = "/v1/chat/completions"
    if kind in ("text_completion", "completion"):
        path, body = "/v1/completions", _prompted(body)
    tokens = (
        count(fields.get("gen_ai.usage.input_tokens", fields.get("gen_ai.usage.prompt_tokens"))),
        count(fields.get("gen_ai.usage.output_tokens", fields.get("gen_ai.usage.completion_tokens"))),
    )
    response = _response(span, talk, tokens, notes)
    if body.get("stream") is True and response is not None and response.body is not None:
        notes.add("stream-joined")
    return made(
        line,
        request=Call(method="POST", path=path, body=body),
        response=response,
        notes=notes,
        captured_at=span.start,
        ttft_s=lasting(fields.get("gen_ai.response.time_to_first_chunk")),
        duration_s=passed(span.start, span.end),
        user=text(body.get("user")),
        session=text(fields.get("gen_ai.conversation.id")) or text(fields.get("session.id")),
        trace=span.trace,
        input_tokens=tokens[0],
        output_tokens=tokens[1],
    )


def _kind(fields: Mapping[str, Any]) -> str:
    """The kind of model call. Raises Unusable where a span is none."""
    operation = fields.get("gen_ai.operation.name")
    kind = operation or fields.get("llm.request.type")
    if kind is None and "gen_ai.request.model" in fields and "traceloop.span.kind" not in fields:
        return "chat"
    if kind in _CALLS:
        return str(kind)
    if operation is not None:
        raise Unusable("not-a-model-call", f"gen_ai.operation.name {operation}")
    raise Unusable("not-a-model-call", "a span without a model")


def _body(talk: Talk, fields: Mapping[str, Any]) -> JSON:
    model = text(fields.get("gen_ai.request.model"))
    given = {wire: fields.get(name) for name, wire in _PARAMETERS.items() if name in fields}
    if len(talk.choices) > 1:
        given.setdefault("n", len(talk.choices))
    asked = {wire: value for wire, value in given.items() if value is not None and value is not False}
    return {
        **({"model": model} if model else {}),
        "messages": list(talk.messages),
        **asked,
        **({"tools": list(talk.tools)} if talk.tools else {}),
        **_format(fields),
    }


def _format(fields: Mapping[str, Any]) -> JSON:
    """The format of the answer that was asked for. Raises Unusable where only its name was recorded."""
    asked = fields.get("gen_ai.openai.request.response_format") or fields.get("gen_ai.output.type")
    schema = mapping(unfolded(fields.get("gen_ai.request.structured_output_schema")))
    if schema.get("type") in ("json_object", "text"):  # OpenLLMetry puts there whatever is no schema, too
        return {"response_format": schema}
    if schema:
        return {
            "response_format": {"type": "json_schema", "json_schema": {"name": "response", "schema": schema}}
        }
    if asked in ("json_schema", "json"):
        raise Unusable("request-truncated", "the schema of the answer was not recorded")
    return {"response_format": {"type": "json_object"}} if asked == "json_object" else {}


def _prompted(body: JSON) -> JSON:
    """The body of a text completion, whose prompt was recorded as one message."""
    *more, only = body.pop("messages")
    if more or not isinstance(only.get("content"), str):
        raise Unusable("foreign-dialect", "a text completion of several messages")
    return {**body, "prompt": only["content"]}


def _response(span: Span, talk: Talk, tokens: tuple[int | None, int | None], notes: set[str]) -> Reply | None:
    fields = span.attributes
    told = fields.get("error.type")
    if span.failed or told is not None:
        code = str(told) if told is not None and str(told).isdecimal() else None
        named = None if code or told == "_OTHER" else told
        return failed(notes, status=span.status, message=span.message, type=named, code=code)
    if talk.cut:
        notes.add("response-truncated")
    if not talk.choices:
        return None
    notes |= {"response-rebuilt", "status-inferred"}
    finished = listed(fields.get("gen_ai.response.finish_reasons"))
    choices = [
        chat.choice(
            index,
            one["message"],
            _finish(one.get("finish_reason") or (finished[index] if index < len(finished) else None)),
        )
        for index, one in enumerate(talk.choices)
    ]
    model, name = text(fields.get("gen_ai.response.model")), text(fields.get("gen_ai.response.id"))
    return Reply(status=200, body=chat.answer(choices, tokens, model=model, id=name))


def _finish(reason: Any) -> str | None:
    return "tool_calls" if reason == "tool_call" else text(reason)
