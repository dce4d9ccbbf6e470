"""A generation request as the simulator understands it, or the refusal it deserves."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import orjson

from replay.exchange import JSON


class Wrong(StrEnum):
    """Why a request is refused; each dialect words these in its own envelope."""

    NOT_JSON = "not_json"
    INVALID = "invalid"
    EXTRA_FIELD = "extra_field"
    OVERFLOW = "overflow"
    UNSUPPORTED = "unsupported"
    AUTH = "auth"
    MODEL = "model"
    ROUTE = "route"
    METHOD = "method"
    RATE_LIMIT = "rate_limit"
    SERVER = "server"


class RefusalError(Exception):
    """A request is refused; the dialect makes its envelope from this."""

    def __init__(self, wrong: Wrong, message: str, *, status: int = 400, param: str | None = None) -> None:
        super().__init__(message)
        self.wrong = wrong
        self.message = message
        self.status = status
        self.param = param


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One function that a request offers."""

    name: str
    parameters: JSON


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """One chat or completion request, checked."""

    chat: bool
    model: str
    prompts: tuple[str, ...]
    """Canonical text of what is asked, one for each answer list; chat has one."""
    questions: tuple[str, ...]
    """Words of the last question in each prompt, for an answer on the subject."""
    prompt_tokens: int
    n: int = 1
    limit: int | None = None
    """Most tokens of one answer; ``None``: only the context limits it."""
    stops: tuple[str, ...] = ()
    stream: bool = False
    include_usage: bool = False
    continuous_usage: bool = False
    tools: tuple[Tool, ...] = ()
    tool_choice: str = "none"
    """``none``, ``auto``, ``required`` or ``named``, which leaves one tool in ``tools``."""
    parallel: bool = True
    answered_tool: bool = False
    """The last message is a tool's result."""
    logprobs: bool = False
    """Wanted; given only for chats that are not streamed."""
    markup: bool = False
    """Calls stay in the text, as a model writes them."""
    schema: JSON | None = None
    """The answer is JSON of this schema; ``None``: free text."""
    fill: bool = False
    """Go on until ``limit`` (``ignore_eos``)."""


def decode(body: bytes) -> JSON:
    """The JSON object in ``body``. Raises RefusalError."""
    try:
        data = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise RefusalError(Wrong.NOT_JSON, f"JSON decode error: {error}") from None
    if not isinstance(data, dict):
        raise RefusalError(Wrong.INVALID, "Input should be a valid dictionary", param="body")
    return data


def parse(data: JSON, *, chat: bool, usage_default: bool = False, limit_default: int | None = None) -> Ask:
    """Reads a request. Raises RefusalError for what every backend refuses.

    ``usage_default`` is the value of ``stream_options.include_usage`` where the options are given without it,
    ``limit_default`` the length of a completion that names none.
    """
    stream = bool(data.get("stream"))
    options = data.get("stream_options")
    if options and not stream:
        raise _invalid("Stream options can only be defined when `stream=True`.", "stream_options")
    options = options if isinstance(options, dict) else None
    prompts, questions = _chat_prompt(data) if chat else _text_prompts(data)
    tools, choice = _tools(data) if chat else ((), "none")
    usage = bool(options.get("include_usage", usage_default)) if options is not None else False
    return Ask(
        chat=chat,
        model=_model(data),
        prompts=prompts,
        questions=questions,
        prompt_tokens=sum(map(estimate_tokens, prompts)),
        n=_whole(data, "n", 1, low=1, high=128) or 1,
        limit=_limit(data, None if chat else limit_default),
        stops=_stops(data),
        stream=stream,
        include_usage=usage,
        continuous_usage=usage and bool(options and options.get("continuous_usage_stats")),
        tools=tools,
        tool_choice=choice,
        parallel=data.get("parallel_tool_calls") is not False,
        answered_tool=chat and data["messages"][-1].get("role") == "tool",
        logprobs=chat and bool(data.get("logprobs")),
        schema=_schema(data),
        fill=bool(data.get("ignore_eos")),
    )


def estimate_tokens(text: str) -> int:
    """A stand-in for a tokenizer: one token for each four UTF-8 bytes begun, at least one."""
    return max(1, (len(text.encode("utf-8", "surrogatepass")) + 3) // 4)


def _invalid(message: str, param: str) -> RefusalError:
    return RefusalError(Wrong.INVALID, message, param=param)


def _model(data: JSON) -> str:
    model = data.get("model", "")
    if not isinstance(model, str):
        raise _invalid("Input should be a valid string", "model")
    return model


def _whole(data: JSON, name: str, default: int | None, *, low: int, high: int = 2**31) -> int | None:
    value = data.get(name)
    if value is None:
        return default
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise _invalid(f"{name} must be an integer of at least {low}, got {value!r}.", name)
    return value


def _limit(data: JSON, default: int | None) -> int | None:
    for name in ("max_completion_tokens", "max_tokens"):
        if (limit := _whole(data, name, None, low=1)) is not None:
            return limit
    return default


def _stops(data: JSON) -> tuple[str, ...]:
    stop = data.get("stop")
    stops = [stop] if isinstance(stop, str) else stop or []
    if not isinstance(stops, list) or not all(isinstance(text, str) for text in stops):
        raise _invalid("stop must be a string or a list of strings", "stop")
    return tuple(text for text in stops if text)


def _chat_prompt(data: JSON) -> tuple[tuple[str, ...], tuple[str, ...]]:
    messages = data.get("messages")
    if not isinstance(messages, list) or not messages:
        raise _invalid("messages must be a list of at least one message", "messages")
    if not all(isinstance(message, dict) and isinstance(message.get("role"), str) for message in messages):
        raise _invalid("each message must be an object with a role", "messages")
    texts = [f"{message['role']}\x1f{_text(message.get('content'))}{_said(message)}" for message in messages]
    asked = [_text(message.get("content")) for message in messages if message["role"] == "user"]
    return ("\x1e".join(texts),), (asked[-1] if asked else "",)


def _text(content: Any) -> str:
    """Text of a message: a string, or its text parts; other parts count by what they hold."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    return "".join(_part(part) for part in content)


def _part(part: Any) -> str:
    if isinstance(part, dict) and isinstance(part.get("text"), str):
        return str(part["text"])
    return orjson.dumps(part, option=orjson.OPT_SORT_KEYS).decode()


def _said(message: JSON) -> str:
    """Tool calls of an earlier turn, without their ids: those differ from backend to backend."""
    calls = message.get("tool_calls")
    functions = (
        [call.get("function") for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
    )
    return orjson.dumps(functions, option=orjson.OPT_SORT_KEYS).decode() if functions else ""


def _text_prompts(data: JSON) -> tuple[tuple[str, ...], tuple[str, ...]]:
    prompt = data.get("prompt")
    if isinstance(prompt, str):
        texts = [prompt]
    elif isinstance(prompt, list) and prompt and all(isinstance(item, str) for item in prompt):
        texts = prompt
    elif isinstance(prompt, list) and prompt and all(isinstance(item, int) for item in prompt):
        texts = [" ".join(map(str, prompt))]
    elif isinstance(prompt, list) and prompt and all(isinstance(item, list) for item in prompt):
        texts = [" ".join(map(str, item)) for item in prompt]
    else:
        raise _invalid("prompt must be a string, a list of strings or token ids", "prompt")
    return tuple(texts), tuple(texts)


def _tools(data: JSON) -> tuple[tuple[Tool, ...], str]:
    tools = tuple(_tool(item) for item in data.get("tools") or ())
    choice = data.get("tool_choice", "auto" if tools else "none")
    if choice in (None, "none"):
        return tools, "none"
    if not tools:
        raise _invalid("When using `tool_choice`, `tools` must be set.", "tool_choice")
    if choice in ("auto", "required"):
        return tools, str(choice)
    if not isinstance(choice, dict):
        raise _invalid(f"Invalid value for `tool_choice`: {choice}!", "tool_choice")
    function = choice.get("function")
    name = function.get("name") if isinstance(function, dict) else None
    named = tuple(tool for tool in tools if tool.name == name)
    if not named:
        raise _invalid(
            "The tool specified in `tool_choice` does not match any of the specified `tools`", "tool_choice"
        )
    return named[:1], "named"


def _tool(item: Any) -> Tool:
    function = item.get("function") if isinstance(item, dict) else None
    if not isinstance(function, dict) or not isinstance(function.get("name"), str):
        raise _invalid("each tool must be an object with a function that has a name", "tools")
    parameters = function.get("parameters")
    return Tool(
        name=function["name"], parameters=parameters if isinstance(parameters, dict) else {"type": "object"}
    )


def _schema(data: JSON) -> JSON | None:
    """The schema in ``response_format`` or ``structured_outputs``; a bare JSON object has one of ours."""
    form = data.get("response_format")
    if isinstance(form, dict):
        if form.get("type") == "json_schema":
            holder = form.get("json_schema")
            found = holder.get("schema", holder) if isinstance(holder, dict) else None
            return found if isinstance(found, dict) else OBJECT
        if form.get("type") in ("json_object", "json"):
            return form["schema"] if isinstance(form.get("schema"), dict) else OBJECT
    structured = data.get("structured_outputs")
    wanted = structured.get("json") if isinstance(structured, dict) else None
    return wanted if isinstance(wanted, dict) else None


OBJECT: JSON = {
    "type": "object",
    "properties": {
        "answer": {"type": "string", "minLength": 12},
        "count": {"type": "integer", "minimum": 1, "maximum": 90},
        "certain": {"type": "boolean"},
    },
    "required": ["answer", "count", "certain"],
}
