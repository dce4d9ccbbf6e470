"""What was said in a call, in the four shapes in which OpenTelemetry has recorded it. Pure.

The newest first: ``gen_ai.input.messages``; log events for each message; events of the span with JSON text; and attributes
with numbers (``gen_ai.prompt.0.content``), which OpenLLMetry wrote.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from replay.exchange import JSON
from replay.formats import chat
from replay.formats.fields import Unusable, listed, literal, loaded, mapping, number, text, unfolded
from replay.formats.spans import Span, numbered
from replay.values import compact

DETAILS = "gen_ai.client.inference.operation.details"
"""The log event that holds a whole call."""
_WIRE_PARTS = ("text", "image_url", "input_audio", "file", "refusal")


@dataclass(frozen=True, slots=True, kw_only=True)
class Talk:
    """What was said: messages and choices as on the wire."""

    messages: Sequence[JSON]
    choices: Sequence[JSON]
    tools: Sequence[JSON] = ()
    cut: bool = False
    """Whether the answer was recorded in part."""


def dialogue(span: Span) -> Talk | None:
    """What was said, from the first shape that there is; ``None`` when content was not recorded. Raises Unusable."""
    return _newest(span) or _logged(span) or _noted(span) or _counted(span)


def _newest(span: Span) -> Talk | None:
    """``gen_ai.input.messages`` and its siblings, as JSON text on the span or as values on a log event."""
    told = [event.attributes for event in span.events if event.name == DETAILS]
    fields = {**(told[0] if told else {}), **span.attributes}
    asked = _list(fields, "gen_ai.input.messages")
    if asked is None:
        return None
    system = _list(fields, "gen_ai.system_instructions")
    first = _wire({"role": "system", "parts": system}) if system else []
    said, cut = _answered(fields)
    return Talk(
        messages=[*first, *(message for one in asked for message in _wire(mapping(one)))],
        choices=[{"message": _answer(one), "finish_reason": one.get("finish_reason")} for one in said],
        tools=[_tool(mapping(one)) for one in _list(fields, "gen_ai.tool.definitions") or []],
        cut=cut,
    )


def _answered(fields: Mapping[str, Any]) -> tuple[list[JSON], bool]:
    """The messages of the answer, and whether it was cut."""
    try:
        return [mapping(one) for one in _list(fields, "gen_ai.output.messages") or []], False
    except Unusable:
        return [], True


def _list(fields: Mapping[str, Any], name: str) -> list[Any] | None:
    """A list from a value or from JSON text. Raises Unusable where the text stops early."""
    value = unfolded(fields.get(name))
    if value is None or isinstance(value, list):
        return value
    raise Unusable("request-truncated", f"{name} is not complete JSON")


def _tool(fields: JSON) -> JSON:
    if "function" in fields or fields.get("type", "function") != "function":
        return fields
    return chat.function(fields.get("name"), fields.get("description"), fields.get("parameters"))


def _wire(message: JSON) -> list[JSON]:
    """A message of parts as the messages that carried it: an answer of a tool is one of its own."""
    if isinstance(message.get("content"), str):
        return [message]
    parts = [mapping(part) for part in listed(message.get("parts"))]
    if not parts:
        raise Unusable("request-truncated", f"a message of the {message.get('role')} has no parts")
    answered = [_tool_answer(part) for part in parts if part.get("type") == "tool_call_response"]
    said = [
        _part(part)
        for part in parts
        if part.get("type") not in ("tool_call", "tool_call_response", "reasoning")
    ]
    rest = {"content": chat.content(said), **_calls(parts), **_reasoning(parts)}
    name = {"name": message["name"]} if text(message.get("name")) else {}
    if set(rest) == {"content"} and rest["content"] is None:
        return answered
    return [*answered, {"role": message.get("role"), **rest, **name}]


def _answer(message: JSON) -> JSON:
    parts = [mapping(part) for part in listed(message.get("parts"))]
    said = [{"type": "text", "text": part.get("content")} for part in parts if part.get("type") == "text"]
    refused = [part.get("content") for part in parts if part.get("type") == "refusal"]
    return {
        "role": message.get("role") or "assistant",
        "content": chat.joined(said),
        **_calls(parts),
        **_reasoning(parts),
        **({"refusal": refused[0]} if refused else {}),
    }


def _calls(parts: Iterable[JSON]) -> JSON:
    calls = [
        chat.tool_call(part.get("name"), part.get("arguments"), part.get("id"))
        for part in parts
        if part.get("type") == "tool_call"
    ]
    return {"tool_calls": calls} if calls else {}


def _reasoning(parts: Iterable[JSON]) -> JSON:
    thought = [str(part.get("content")) for part in parts if part.get("type") == "reasoning"]
    return {"reasoning_content": "".join(thought)} if thought else {}


def _tool_answer(part: JSON) -> JSON:
    given = part.get("response", part.get("result"))
    if given is None:
        raise Unusable("request-truncated", "the answer of a tool was not recorded")
    said = given if isinstance(given, str) else compact(given)
    return {"role": "tool", "tool_call_id": part.get("id"), "content": said}


def _part(part: JSON) -> JSON:
    kind, modality = part.get("type"), part.get("modality")
    if kind == "text" and isinstance(part.get("content"), str):
        return {"type": "text", "text": part["content"]}
    if kind == "file":
        raise Unusable("request-external", "a file that the provider holds")
    address = text(part.get("uri"))
    if kind == "blob" and text(part.get("content")):
        address = f"data:{part.get('mime_type')};base64,{part['content']}"
    if kind in ("blob", "uri") and address is None:
        raise Unusable("request-truncated", f"a part of the type {kind} without content")
    if kind in ("blob", "uri") and modality == "image":
        return {"type": "image_url", "image_url": {"url": address}}
    raise Unusable("foreign-dialect", f"a part of the type {kind} {modality or ''}".rstrip())


def _logged(span: Span) -> Talk | None:
    """Events for each message, joined to the span; tool definitions are never among them."""
    said = [
        event for event in span.events if event.name.startswith("gen_ai.") and event.name.endswith(".message")
    ]
    if not said:
        return None
    messages = [_heard(event.name.split(".")[1], mapping(event.body)) for event in said]
    choices = sorted(
        (mapping(event.body) for event in span.events if event.name == "gen_ai.choice"),
        key=lambda body: number(body.get("index")) or 0,
    )
    return Talk(
        messages=messages,
        choices=[
            _chosen(body)
            for body in choices
            if mapping(body.get("message")).keys() & {"content", "tool_calls"}
        ],
    )


def _heard(role: str, body: JSON) -> JSON:
    said, calls = body.get("content"), body.get("tool_calls")
    if said is None and not calls:
        raise Unusable("request-missing", "content capture was off")
    message = {"role": text(body.get("role")) or role, "content": said}
    if calls:
        message["tool_calls"] = calls
    if role == "tool":
        message["tool_call_id"] = body.get("id")
    return message


def _chosen(body: JSON) -> JSON:
    message = {"role": "assistant", "content": None, **mapping(body.get("message"))}
    return {"message": message, "finish_reason": body.get("finish_reason")}


def _noted(span: Span) -> Talk | None:
    """Two events of the span, with messages as JSON text or as Python displays them."""
    found: dict[str, Any] = {}
    for event in span.events:
        for name, key in (
            ("gen_ai.content.prompt", "gen_ai.prompt"),
            ("gen_ai.content.completion", "gen_ai.completion"),
        ):
            if event.name == name and key in event.attributes:
                found[key] = literal(event.attributes[key])
    asked = found.get("gen_ai.prompt")
    if asked is None:
        return None
    if not isinstance(asked, list) or not all(isinstance(one, dict) for one in asked):
        raise Unusable("request-truncated", "gen_ai.prompt is not complete JSON")
    said = found.get("gen_ai.completion")
    return Talk(
        messages=asked,
        choices=[_said(one) for one in listed(said) if isinstance(one, dict)],
        cut=said is not None and not isinstance(said, list),
    )


def _said(one: JSON) -> JSON:
    if isinstance(one.get("message"), dict):
        return {"message": one["message"], "finish_reason": one.get("finish_reason")}
    return {
        "message": {key: value for key, value in one.items() if key != "finish_reason"},
        "finish_reason": one.get("finish_reason"),
    }


def _counted(span: Span) -> Talk | None:
    """Attributes with numbers."""
    asked = numbered(span.attributes, "gen_ai.prompt")
    if not asked:
        return None
    return Talk(
        messages=[_flat(one) for one in asked],
        choices=[
            {"message": _flat({"role": "assistant", **one}), "finish_reason": one.get("finish_reason")}
            for one in numbered(span.attributes, "gen_ai.completion")
        ],
        tools=[
            chat.function(one.get("name"), one.get("description"), unfolded(one.get("parameters")))
            for one in numbered(span.attributes, "llm.request.functions")
        ],
    )


def _flat(fields: Mapping[str, Any]) -> JSON:
    calls = [
        chat.tool_call(one.get("name"), one.get("arguments"), one.get("id"))
        for one in numbered(fields, "tool_calls")
    ]
    message = {"role": fields.get("role"), "content": _parts_or_text(fields.get("content"))}
    if text(fields.get("tool_call_id")):
        message["tool_call_id"] = fields["tool_call_id"]
    return message | ({"tool_calls": calls} if calls else {})


def _parts_or_text(said: Any) -> Any:
    """A list of parts was written as JSON; a text that only looks like JSON stays a text."""
    parts = loaded(said) if isinstance(said, str) and said.startswith("[") else None
    wire = (
        isinstance(parts, list) and parts and all(mapping(part).get("type") in _WIRE_PARTS for part in parts)
    )
    return parts if wire else said
