"""Tool calls spelled differently, and changed in one place: made from accepted answers of BFCL."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Any

_TYPES = {"dict": "object", "float": "number", "tuple": "array", "any": None}
"""BFCL names types as Python does."""

Call = tuple[str, dict[str, Any]]
"""Name and arguments."""
CallEdit = Callable[[list[Call], dict[str, Any], Random], list[Call] | None]
"""Calls and their request in, the changed calls out; ``None`` when they have no place for such a change."""


def request(row: dict[str, Any]) -> dict[str, Any]:
    """The chat request of one row, its schemas with JSON Schema's names of types."""
    tools = [{"type": "function", "function": _function(one)} for one in row["function"]]
    return {"model": "m", "messages": row["question"][0], "tools": tools}


def _function(one: dict[str, Any]) -> dict[str, Any]:
    return {**one, "parameters": _schema(one["parameters"])}


def _schema(schema: Any) -> Any:
    """The schema with JSON Schema's names of types."""
    if isinstance(schema, list):
        return [_schema(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    plain = {key: _schema(value) for key, value in schema.items()}
    if isinstance(kind := schema.get("type"), str):
        plain["type"] = _TYPES.get(kind, kind)
    return {key: value for key, value in plain.items() if value is not None}


def accepted(call: dict[str, Any]) -> Call:
    """The first accepted value of each argument; an argument that may be left out is."""
    ((name, arguments),) = call.items()
    return name, _object(arguments)


def _object(options: dict[str, Any]) -> dict[str, Any]:
    """An accepted "" stands for an argument that may be left out."""
    return {key: _first(accepted[0]) for key, accepted in options.items() if accepted and accepted[0] != ""}


def _first(value: Any) -> Any:
    """Nested objects list their accepted values too."""
    if isinstance(value, dict):
        return _object({key: one if isinstance(one, list) else [one] for key, one in value.items()})
    return [_first(one) for one in value] if isinstance(value, list) else value


def turned(call: Call, request: dict[str, Any], chance: Random) -> Call:
    """The call with its keys in another order, and whole numbers spelled otherwise where the schema says number."""
    name, arguments = call
    return name, _shuffled(arguments, _parameters(request, name), chance)


def _parameters(request: dict[str, Any], name: str) -> dict[str, Any]:
    functions = {tool["function"]["name"]: tool["function"]["parameters"] for tool in request["tools"]}
    found: dict[str, Any] = functions.get(name, {})
    return found


def _shuffled(value: Any, schema: dict[str, Any], chance: Random) -> Any:
    """Keys in another order; integers as floats, or the other way, where the schema says number."""
    if isinstance(value, dict):
        inner = schema.get("properties") or {}
        items = chance.sample(list(value.items()), len(value))
        return {key: _shuffled(one, inner.get(key) or {}, chance) for key, one in items}
    if isinstance(value, list):
        return [_shuffled(one, schema.get("items") or {}, chance) for one in value]
    if schema.get("type") == "number" and not isinstance(value, bool) and isinstance(value, int | float):
        whole = float(value).is_integer()
        return (float(value) if isinstance(value, int) else int(value)) if whole else value
    return value


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Paths of all values that are no containers."""
    children = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    found = False
    for key, one in children:
        found = True
        yield from _places(one, (*path, key))
    if not found and path:
        yield path


def _with(value: Any, path: tuple[Any, ...], new: Callable[[Any], Any]) -> Any:
    if not path:
        return new(value)
    copy: Any = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = _with(value[path[0]], path[1:], new)
    return copy


def _change_one(
    new: Callable[[Any, Random], Any],
) -> CallEdit:
    def change(calls: list[Call], request: dict[str, Any], chance: Random) -> list[Call] | None:
        places = [(n, path) for n, (_, arguments) in enumerate(calls) for path in _places(arguments)]
        if not places:
            return None
        at, path = chance.choice(places)
        name, arguments = calls[at]
        changed = (name, _with(arguments, path, lambda value: new(value, chance)))
        return [*calls[:at], changed, *calls[at + 1 :]]

    return change


def _other_value(value: Any, chance: Random) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return chance.choice((value + 1, -value or 1, value * 10 or 10))
    if isinstance(value, str):
        return chance.choice(
            (
                value[:-1] or "x",
                value + "s",
                value.swapcase() if value.swapcase() != value else value + "x",
                value[::-1] + ".",
            )
        )
    return "other"


def _other_type(value: Any, chance: Random) -> Any:
    if isinstance(value, bool):
        return chance.choice((int(value), str(value).lower()))
    if isinstance(value, int | float):
        return chance.choice((str(value), [value], bool(value)))
    if isinstance(value, str):
        return chance.choice(([value], {"value": value}, None))
    return "null" if value is None else None


def _other_name(calls: list[Call], request: dict[str, Any], chance: Random) -> list[Call]:
    at = chance.randrange(len(calls))
    name, arguments = calls[at]
    names = [tool["function"]["name"] for tool in request["tools"] if tool["function"]["name"] != name]
    return [*calls[:at], (chance.choice(names or [name + "_v2"]), arguments), *calls[at + 1 :]]


def _without_one(calls: list[Call], request: dict[str, Any], chance: Random) -> list[Call] | None:
    at = chance.randrange(len(calls))
    name, arguments = calls[at]
    if not arguments:
        return None
    gone = chance.choice(list(arguments))
    rest = {key: value for key, value in arguments.items() if key != gone}
    return [*calls[:at], (name, rest), *calls[at + 1 :]]


def _one_call_less(calls: list[Call], request: dict[str, Any], chance: Random) -> list[Call] | None:
    at = chance.randrange(len(calls))
    return [*calls[:at], *calls[at + 1 :]] if len(calls) > 1 else None


CHANGED_CALLS: dict[str, CallEdit] = {
    "call argument": _change_one(_other_value),
    "call type": _change_one(_other_type),
    "call name": _other_name,
    "call argument missing": _without_one,
    "call missing": _one_call_less,
}
