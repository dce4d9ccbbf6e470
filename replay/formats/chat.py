"""Chat requests and answers put together from parts, as the API would have carried them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from replay.exchange import JSON
from replay.values import compact


def tool_call(name: Any, arguments: Any, call_id: Any = None) -> JSON:
    """A call of a function; ``arguments`` become JSON text unless they are text already."""
    said = arguments if isinstance(arguments, str) else compact({} if arguments is None else arguments)
    function = {"name": name, "arguments": said}
    return {**({} if call_id is None else {"id": call_id}), "type": "function", "function": function}


def function(name: Any, description: Any = None, parameters: Any = None) -> JSON:
    """The definition of a tool."""
    fields = {"name": name, "description": description, "parameters": parameters}
    return {
        "type": "function",
        "function": {key: value for key, value in fields.items() if value is not None},
    }


def content(parts: Sequence[JSON]) -> Any:
    """What a message says: one text as text, several parts as a list, ``None`` when there is none."""
    if len(parts) == 1 and parts[0].get("type") == "text":
        return parts[0].get("text")
    return list(parts) or None


def joined(parts: Iterable[JSON]) -> str | None:
    """The texts of an answer; ``None`` when there is none."""
    texts = [str(part.get("text")) for part in parts if part.get("type") == "text"]
    return "".join(texts) if texts else None


def choice(index: int, message: Any, finish: Any = None) -> JSON:
    """One choice of an answer."""
    return {"index": index, "message": message, "finish_reason": finish}


def answer(
    choices: Sequence[JSON], tokens: tuple[int | None, int | None] = (None, None), **more: Any
) -> JSON:
    """A rebuilt answer: usage only where both counts are known, and what else is known."""
    asked, said = tokens
    usage = {}
    if asked is not None and said is not None:
        usage = {"usage": {"prompt_tokens": asked, "completion_tokens": said, "total_tokens": asked + said}}
    known = {key: value for key, value in more.items() if value is not None}
    return {"choices": list(choices), **usage, **known}


def calls_tools(messages: Iterable[Any]) -> bool:
    """Whether a tool was called or answered in any of the messages."""
    return any(
        isinstance(one, dict) and (one.get("tool_calls") or one.get("role") == "tool") for one in messages
    )
