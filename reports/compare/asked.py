"""What a request asked for, as far as comparing its answers needs it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from replay.exchange import JSON
from reports.compare.jsonvalue import parse

_PICTURES = frozenset(("image_url", "input_image", "image", "input_audio", "audio"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The contract of an answer. The defaults are those of a request whose body is gone or is not JSON."""

    model: str = ""
    """The model that the client named; empty when it named none."""
    tools: Mapping[str, JSON] = field(default_factory=dict)
    """JSON Schema of the arguments by tool name."""
    forced: bool = False
    """The model had to call a tool."""
    structured: bool = False
    """The answer has to be JSON."""
    schema: JSON | None = None
    """JSON Schema that the answer has to meet."""
    max_tokens: int | None = None
    stream: bool | None = None
    """Whether a stream was asked for; ``None`` when the body is not known."""
    usage: bool = False
    """A stream was asked to state its usage."""
    chat: bool = False
    """The request holds messages of a conversation."""
    pictures: bool = False
    """The request holds images or audio."""
    n: int = 1
    batch: bool = False
    """Several prompts in one request: a choice's index says which prompt it answers."""


def read(body: bytes) -> Asked:
    """The contract in a request's body. Never raises."""
    return contract(parse(body.decode("utf-8", "replace")).value)


def contract(value: Any) -> Asked:
    """The contract in a request's parsed body. Never raises."""
    if not isinstance(value, dict):
        return Asked()
    schema = _schema(value)
    model = value.get("model")
    return Asked(
        model=model if isinstance(model, str) else "",
        tools=_tools(value),
        forced=_forced(value.get("tool_choice")),
        structured=schema is not None or _dict(value.get("response_format")).get("type") == "json_object",
        schema=schema or None,
        max_tokens=_limit(value),
        stream=value.get("stream") is True,
        usage=_dict(value.get("stream_options")).get("include_usage") is True,
        chat=isinstance(value.get("messages"), list),
        pictures=_pictures(value),
        n=_count(value.get("n")),
        batch=isinstance(value.get("prompt"), list) and len(value["prompt"]) > 1,
    )


def _pictures(body: JSON) -> bool:
    messages = body.get("messages", body.get("input"))
    contents = (_dict(message).get("content") for message in messages) if isinstance(messages, list) else ()
    parts = (part for content in contents if isinstance(content, list) for part in content)
    return any(str(_dict(part).get("type")) in _PICTURES for part in parts)


def _count(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 1_000 else 1


def _forced(choice: Any) -> bool:
    return choice == "required" or (isinstance(choice, dict) and choice.get("mode") != "auto")


def _tools(body: JSON) -> dict[str, JSON]:
    tools = body.get("tools")
    entries = [_dict(tool) for tool in tools] if isinstance(tools, list) else []
    functions = [_dict(tool.get("function")) or tool for tool in entries]
    return {
        function["name"]: _dict(function.get("parameters") or function.get("input_schema"))
        for function in functions
        if isinstance(function.get("name"), str)
    }


def _schema(body: JSON) -> JSON | None:
    """From every carrier that backends know; an empty object stands for "some JSON object"."""
    form = _dict(body.get("response_format"))
    if form.get("type") == "json_schema":
        return _dict(_dict(form.get("json_schema")).get("schema"))
    for carrier in (body.get("guided_json"), _dict(body.get("structured_outputs")).get("json")):
        schema = parse(carrier).value if isinstance(carrier, str) else carrier
        if isinstance(schema, dict):
            return schema
    return None


def _limit(body: JSON) -> int | None:
    for key in ("max_completion_tokens", "max_tokens", "max_output_tokens"):
        limit = body.get(key)
        if isinstance(limit, int) and not isinstance(limit, bool):
            return limit
    return None


def _dict(value: Any) -> JSON:
    return value if isinstance(value, dict) else {}
