"""What a backend can do beyond plain text: asked once each, all at once, told as a value that two backends are compared by."""

from __future__ import annotations

import asyncio
import functools
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any

from migrate.preflight.asking import Asking, Told
from migrate.preflight.lines import Line, clean, ok, unknown, unlike
from migrate.preflight.traffic import FIELD
from replay.backends import Facts
from replay.decoding import parse_object
from replay.exchange import Choice, ErrorClass

Probe = Callable[[Asking, Facts], Awaitable[Line]]

_WITHIN_S = 4.0
_COMPILED_WITHIN_S = 6.0
_NOT_NOW = (
    ErrorClass.RATE_LIMITED,
    ErrorClass.OVERLOADED,
    ErrorClass.TIMEOUT,
    ErrorClass.CONNECT,
    ErrorClass.RESET,
)
_MARKUP = re.compile(
    r"<tool_call>|<\|python_tag\|>|\[TOOL_CALLS\]|<function=|<\uff5ctool\u2581calls|<\|tool_call"
)
_TOOL = {
    "type": "function",
    "function": {
        "name": "get_tide",
        "description": "When the tide is high at a port.",
        "parameters": {"type": "object", "properties": {"port": {"type": "string"}}, "required": ["port"]},
    },
}
_SCHEMA = {
    "type": "object",
    "properties": {"tide": {"type": "string", "enum": ["high", "low"]}},
    "required": ["tide"],
    "additionalProperties": False,
}
_NOBODYS = "migrate-check-no-such-model"


async def features(asking: Asking, facts: Facts, fields: Mapping[str, Any]) -> tuple[Line, ...]:
    """One line for each feature. A backend that lacks one is no failure by itself: the traffic or the other side decides.

    Tools and schema come last: the first of them may make an engine compile for seconds, in which it answers nobody.
    ``fields``: what the traffic asks with beyond that, each with a value.
    """
    used = [functools.partial(_field, name=name, value=value) for name, value in fields.items()]
    plain = await _together(
        asking, facts, _logprobs, _seed, _usage, _unknown_field, _unknown_model, _errors, *used
    )
    return (*await _together(asking, facts, _tools, _schema), *plain)


async def _together(asking: Asking, facts: Facts, *probes: Probe) -> list[Line]:
    return await asyncio.gather(*(probe(asking, facts) for probe in probes))


async def _tools(asking: Asking, facts: Facts) -> Line:
    ask = "When is the tide high in Hull? Use the tool."
    told = await asking.chat(
        within=_COMPILED_WITHIN_S, tokens=64, content=ask, tools=[_TOOL], tool_choice="auto"
    )
    if (lacking := _lacking("tools", told, facts)) is not None:
        return lacking
    first = _first(told)
    if first.tool_calls:
        return ok("tools", "called", "served")
    if _MARKUP.search(first.text):
        change = facts.changes["tools"]
        return unlike(
            "tools",
            "the call is left in the text as markup: the tool parser is off or wrong",
            change,
            "unparsed",
        )
    return ok("tools", "taken, but the model called none")


async def _schema(asking: Asking, facts: Facts) -> Line:
    form = {"type": "json_schema", "json_schema": {"name": "tide", "strict": True, "schema": _SCHEMA}}
    told = await asking.chat(
        within=_COMPILED_WITHIN_S,
        tokens=64,
        content="Is the tide high or low? Say it as JSON.",
        response_format=form,
    )
    if (lacking := _lacking("schema", told, facts)) is not None:
        return lacking
    first = _first(told)
    found = parse_object(first.text.encode("utf-8", "replace"))
    if found is not None and found.get("tide") in ("high", "low"):
        return ok("schema", "kept to", "served")
    if first.finish_reason == "length" and first.text.lstrip().startswith("{"):
        return ok("schema", "begun, and cut by the limit of this check")
    return unlike("schema", "taken, but not kept to", facts.changes["schema"], "ignored")


async def _logprobs(asking: Asking, facts: Facts) -> Line:
    told = await asking.chat(within=_WITHIN_S, logprobs=True, top_logprobs=1)
    if (lacking := _lacking("logprobs", told, facts)) is not None:
        return lacking
    choices = (told.json or {}).get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    given = first.get("logprobs") if isinstance(first, dict) else None
    if isinstance(given, dict) and given.get("content"):
        return ok("logprobs", "given", "served")
    return unlike("logprobs", "taken, but none are given", value="ignored")


async def _seed(asking: Asking, facts: Facts) -> Line:
    ask: dict[str, Any] = {"tokens": 8, "content": "Name a harbour.", "seed": 7, "temperature": 1}
    one, other = [await asking.chat(within=_WITHIN_S / 2, **ask) for _ in range(2)]
    for told in (one, other):
        if (lacking := _lacking("seed", told, facts)) is not None:
            return lacking
    if _first(one).text == _first(other).text:
        return ok("seed", "the same answer twice", "repeats")
    return unlike("seed", "another answer with the same seed", value="does not repeat")


async def _usage(asking: Asking, facts: Facts) -> Line:
    told = await asking.chat(within=_WITHIN_S, stream=True, stream_options={"include_usage": True})
    if (lacking := _lacking("usage", told, facts)) is not None:
        return lacking
    if told.answer is not None and told.answer.usage is not None:
        return ok("usage", "in streams when asked for (stream_options)", "served")
    return unlike(
        "usage", "not in streams, though asked for: tokens of streams are not known", value="ignored"
    )


async def _unknown_field(asking: Asking, facts: Facts) -> Line:
    told = await asking.chat(within=_WITHIN_S, migrate_check=True)
    if told.failure is None:
        return ok("other fields", "a field that it does not know is ignored", "ignored")
    if _not_now(told):
        return unknown("other fields", told.words)
    change = "requests with a field that it does not know fail there: leave such fields out"
    return unlike(
        "other fields", f"a field that it does not know is refused ({told.words})", change, "refused"
    )


async def _field(asking: Asking, facts: Facts, *, name: str, value: Any) -> Line:
    check = FIELD + clean(name, most=40)
    told = await asking.chat(within=_WITHIN_S, more={name: value})
    if (lacking := _lacking(check, told, facts)) is not None:
        return replace(
            lacking, change=lacking.change or "leave it out there, or ask by the name that it has there"
        )
    return ok(check, "taken", "served")


async def _unknown_model(asking: Asking, facts: Facts) -> Line:
    told = await asking.chat(within=_WITHIN_S, model=_NOBODYS)
    if told.failure is None:
        change = "it answers whatever model is asked for: a wrong name is not noticed"
        return unlike("other models", "a model that it does not have is answered", change, "answered")
    if _not_now(told):
        return unknown("other models", told.words)
    return ok("other models", "a model that it does not have is refused", "refused")


async def _errors(asking: Asking, facts: Facts) -> Line:
    told = await asking.chat(within=_WITHIN_S, messages=[])
    if told.failure is None or _not_now(told):
        return unknown("errors", told.words or "a request without messages is answered")
    return ok(
        "errors",
        f"a bad request is {told.status}, in the shape {told.failure.envelope}",
        told.failure.envelope,
    )


def _lacking(check: str, told: Told, facts: Facts) -> Line | None:
    """The line for a feature that was refused, or could not be asked for; ``None`` when there was an answer."""
    if told.failure is None:
        return None
    if _not_now(told):
        return unknown(check, told.words)
    return unlike(check, f"refused ({told.words})", facts.changes.get(check, ""), "refused")


def _not_now(told: Told) -> bool:
    """Whether it says nothing of what the backend can do. A 5xx does where it says that no such thing is offered."""
    if told.failure is None:
        return False
    broken = told.status is not None and told.status >= 500 and told.failure.code != "contract.unsupported"
    return broken or told.failure.error_class in _NOT_NOW


def _first(told: Told) -> Choice:
    return told.answer.first if told.answer else Choice()
