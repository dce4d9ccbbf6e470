"""Bedrock's Converse dialect as chat. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from replay.exchange import JSON
from replay.formats import chat
from replay.formats.fields import Unusable, count, listed, mapping, seconds, text
from replay.values import compact

_SETTINGS = {
    "temperature": "temperature",
    "topP": "top_p",
    "maxTokens": "max_tokens",
    "stopSequences": "stop",
}
_FINISHED = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "tool_use": "tool_calls",
    "content_filtered": "content_filter",
    "guardrail_intervened": "content_filter",
}


def request(body: JSON) -> JSON:
    """The body of a chat request, without its model. Raises Unusable where chat has no words for it."""
    system = chat.content([_part(block) for block in _blocks(body.get("system"))])
    messages = [message for one in listed(body.get("messages")) for message in _messages(mapping(one))]
    if system is not None:
        messages.insert(0, {"role": "system", "content": system})
    settings = mapping(body.get("inferenceConfig"))
    asked = {wire: settings[name] for name, wire in _SETTINGS.items() if settings.get(name) is not None}
    return {
        "messages": messages,
        **asked,
        **_tools(mapping(body.get("toolConfig"))),
        **mapping(body.get("additionalModelRequestFields")),
    }


def response(said: Any) -> tuple[JSON | None, float | None]:
    """The answer of a chat and the seconds that the model took; a list is the events of a stream."""
    whole = _gathered(said) if isinstance(said, list) else mapping(said)
    blocks = _blocks(mapping(mapping(whole.get("output")).get("message")).get("content"))
    if not blocks and whole.get("stopReason") is None:
        return None, None
    usage = mapping(whole.get("usage"))
    reason = whole.get("stopReason")
    choice = chat.choice(0, _said(blocks), _FINISHED.get(str(reason), reason))
    answer = chat.answer([choice], (count(usage.get("inputTokens")), count(usage.get("outputTokens"))))
    return answer, seconds(mapping(whole.get("metrics")).get("latencyMs"))


def _blocks(value: Any) -> list[JSON]:
    """Blocks of content that say something; a cache point does not."""
    return [mapping(block) for block in listed(value) if "cachePoint" not in mapping(block)]


def _messages(message: JSON) -> Iterator[JSON]:
    """A message as the messages that carry it: a tool's result is one of its own."""
    blocks = _blocks(message.get("content"))
    for block in blocks:
        if "toolResult" in block:
            yield _result(mapping(block["toolResult"]))
    parts = [
        _part(block) for block in blocks if not {"toolUse", "toolResult", "reasoningContent"} & block.keys()
    ]
    more = {**_calls(blocks), **_reasoning(blocks)}
    if parts or more:
        yield {"role": message.get("role"), "content": chat.content(parts), **more}


def _part(block: JSON) -> JSON:
    if isinstance(block.get("text"), str):
        return {"type": "text", "text": block["text"]}
    image = mapping(block.get("image"))
    data = mapping(image.get("source")).get("bytes")
    if isinstance(data, str) and data:
        return {"type": "image_url", "image_url": {"url": f"data:image/{image.get('format')};base64,{data}"}}
    if image:
        raise Unusable("request-external", "an image that is held elsewhere")
    raise Unusable("foreign-dialect", f"a block of {', '.join(block) or 'nothing'}")


def _result(block: JSON) -> JSON:
    said = [mapping(one) for one in listed(block.get("content"))]
    texts = [
        one["text"] if isinstance(one.get("text"), str) else compact(one.get("json", one)) for one in said
    ]
    return {"role": "tool", "tool_call_id": block.get("toolUseId"), "content": "\n".join(texts)}


def _calls(blocks: Iterable[JSON]) -> JSON:
    used = [mapping(block["toolUse"]) for block in blocks if "toolUse" in block]
    calls = [chat.tool_call(one.get("name"), one.get("input"), one.get("toolUseId")) for one in used]
    return {"tool_calls": calls} if calls else {}


def _reasoning(blocks: Iterable[JSON]) -> JSON:
    thought = [mapping(block["reasoningContent"]) for block in blocks if "reasoningContent" in block]
    words = [
        text(mapping(one.get("reasoningText")).get("text")) or text(one.get("text")) or "" for one in thought
    ]
    return {"reasoning_content": "".join(words)} if any(words) else {}


def _tools(config: JSON) -> JSON:
    specs = [
        mapping(mapping(one).get("toolSpec"))
        for one in listed(config.get("tools"))
        if "cachePoint" not in mapping(one)
    ]
    tools = [
        chat.function(one.get("name"), one.get("description"), mapping(one.get("inputSchema")).get("json"))
        for one in specs
    ]
    if not tools:
        return {}
    chosen = mapping(config.get("toolChoice"))
    named = mapping(chosen.get("tool")).get("name")
    choice: Any = {"auto": "auto", "any": "required"}.get(next(iter(chosen), ""))
    if named is not None:
        choice = {"type": "function", "function": {"name": named}}
    return {"tools": tools, **({} if choice is None else {"tool_choice": choice})}


def _said(blocks: Sequence[JSON]) -> JSON:
    parts = [
        {"type": "text", "text": block["text"]} for block in blocks if isinstance(block.get("text"), str)
    ]
    return {"role": "assistant", "content": chat.joined(parts), **_calls(blocks), **_reasoning(blocks)}


def _gathered(events: Sequence[Any]) -> JSON:
    """What a stream's events add up to, in the shape of an answer that did not stream."""
    blocks: dict[Any, JSON] = {}
    whole: JSON = {}
    for event in map(mapping, events):
        start, delta = mapping(event.get("contentBlockStart")), mapping(event.get("contentBlockDelta"))
        if start:
            blocks[str(start.get("contentBlockIndex"))] = dict(mapping(start.get("start")))
        elif delta:
            _add(blocks.setdefault(str(delta.get("contentBlockIndex")), {}), mapping(delta.get("delta")))
        whole |= mapping(event.get("messageStop")) | mapping(event.get("metadata"))
    return {**whole, "output": {"message": {"content": list(blocks.values())}}}


def _add(block: JSON, delta: JSON) -> None:
    """Puts a piece to a block: of text, of a tool's arguments, or of reasoning."""
    if isinstance(delta.get("text"), str):
        block["text"] = str(block.get("text") or "") + delta["text"]
    for name, field in (("toolUse", "input"), ("reasoningContent", "text")):
        piece = mapping(delta.get(name)).get(field)
        if isinstance(piece, str):
            here = mapping(block.get(name))
            block[name] = {**here, field: str(here.get(field) or "") + piece}
