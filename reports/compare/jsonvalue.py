"""JSON as values: strict parsing, a canonical form, typed differences with their paths, and a light schema check."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice, zip_longest
from typing import Any, NoReturn

from replay.exchange import JSON
from replay.values import too_deep
from reports.compare.normal import nfc

_MAX_NODES = 20_000
"""Values that one schema check looks at; what lies beyond is not checked."""
_ABSENT = object()


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """A value, or why the text is none."""

    value: Any = None
    problem: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One place where two values differ; a side without the place is written ``absent``."""

    path: str
    baseline: str
    candidate: str

    def __str__(self) -> str:
        return f"{self.path}: baseline {self.baseline}, candidate {self.candidate}"


def parse(text: str) -> Parsed:
    """The JSON value that ``text`` is. Refuses NaN and infinities, as a strict client does, and too deep nesting."""
    try:
        value = json.loads(text, parse_constant=_refuse)
    except RecursionError:
        return Parsed(problem="nested too deeply")
    except ValueError as error:
        return Parsed(problem=str(error)[:100])
    return Parsed(problem="nested too deeply") if too_deep(value) else Parsed(value=value)


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def canonical(value: Any, schema: JSON | None = None) -> str:
    """One text for equal values: keys sorted, 5.0 written as 5 unless the schema says integer."""
    return json.dumps(_plain(value, schema or {}), sort_keys=True, separators=(",", ":"))


def _plain(value: Any, schema: JSON) -> Any:
    if isinstance(value, dict):
        return {nfc(key): _plain(item, _below(schema, key)) for key, item in value.items()}
    if isinstance(value, list):
        inner = _below(schema, 0)
        return [_plain(item, inner) for item in value]
    if isinstance(value, float) and value.is_integer() and not _integer(schema):
        return int(value)
    return nfc(value) if isinstance(value, str) else value


def differences(
    baseline: Any,
    candidate: Any,
    schema: JSON | None = None,
    *,
    same_text: Callable[[str, str], bool] = str.__eq__,
    limit: int = 8,
) -> tuple[Difference, ...]:
    """The first ``limit`` places where the values differ, types included: ``1`` is not ``true``, ``5`` is ``5.0``
    unless the schema says integer. ``same_text`` decides on strings."""
    return tuple(islice(_walk("$", baseline, candidate, schema or {}, same_text), limit))


def _walk(
    path: str, old: Any, new: Any, schema: JSON, same: Callable[[str, str], bool]
) -> Iterator[Difference]:
    if isinstance(old, dict) and isinstance(new, dict):
        for key in (*old, *(key for key in new if key not in old)):
            pair = old.get(key, _ABSENT), new.get(key, _ABSENT)
            yield from _walk(f"{path}.{key}"[:120], *pair, _below(schema, key), same)
    elif isinstance(old, list) and isinstance(new, list):
        for index, pair in enumerate(zip_longest(old, new, fillvalue=_ABSENT)):
            yield from _walk(f"{path}[{index}]"[:120], *pair, _below(schema, index), same)
    elif not _same(old, new, schema, same):
        yield Difference(path=path, baseline=_shown(old), candidate=_shown(new))


def _same(old: Any, new: Any, schema: JSON, same: Callable[[str, str], bool]) -> bool:
    if isinstance(old, str) and isinstance(new, str):
        return same(nfc(old), nfc(new))
    if _number(old) and _number(new):
        return bool(old == new) and (type(old) is type(new) or not _integer(schema))
    return type(old) is type(new) and bool(old == new)


def _among(value: Any, options: list[Any]) -> bool:
    return any(_same(option, value, {}, str.__eq__) for option in options)


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _shown(value: Any) -> str:
    if value is _ABSENT:
        return "absent"
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 10**40:
        return f"an integer of about {int(math.log10(abs(value))) + 1} digits"
    if isinstance(value, str):
        return json.dumps(value[:60], ensure_ascii=False).encode("utf-8", "replace").decode()
    return f"{type(value).__name__} of {len(value)}" if isinstance(value, dict | list) else json.dumps(value)


def _below(schema: JSON, key: str | int) -> JSON:
    inner: Any = None
    if isinstance(key, int):
        inner = schema.get("items")
    elif isinstance(properties := schema.get("properties"), dict):
        inner = properties.get(key)
    inner = schema.get("additionalProperties") if inner is None and isinstance(key, str) else inner
    return inner if isinstance(inner, dict) else {}


def _types(schema: JSON) -> tuple[str, ...]:
    kind = schema.get("type")
    kinds = kind if isinstance(kind, list) else [kind]
    return tuple(item for item in kinds if isinstance(item, str))


def _integer(schema: JSON) -> bool:
    kinds = _types(schema)
    return "integer" in kinds and "number" not in kinds


_CHECKS: dict[str, Callable[[Any], bool]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "number": _number,
    "integer": lambda value: _number(value) and (isinstance(value, int) or value.is_integer()),
    "null": lambda value: value is None,
}


def violations(value: Any, schema: JSON, limit: int = 4) -> tuple[str, ...]:
    """The first ``limit`` breaches of types, required keys, enum, const and closed objects, each with its path.

    A light check, not the whole of JSON Schema: a word that it does not know never makes a breach, nor does ``$ref``.
    """
    check = _Check()
    return tuple(islice(check.walk("$", value, schema), limit))


class _Check:
    """One check with a bounded number of looks, so that a hostile value and schema cannot multiply."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = _MAX_NODES

    def walk(self, path: str, value: Any, schema: Any) -> Iterator[str]:
        self.left -= 1
        if self.left < 0 or not isinstance(schema, dict):
            return
        kinds = [kind for kind in _types(schema) if kind in _CHECKS]
        if kinds and not any(_CHECKS[kind](value) for kind in kinds):
            yield f"{path} is not of type {' or '.join(kinds)}"
            return
        yield from self._choices(path, value, schema)
        if isinstance(value, dict):
            yield from self._object(path, value, schema)
        elif isinstance(value, list):
            for index, item in enumerate(value):
                yield from self.walk(f"{path}[{index}]"[:120], item, schema.get("items"))

    def _choices(self, path: str, value: Any, schema: JSON) -> Iterator[str]:
        options = schema.get("enum") if "const" not in schema else [schema["const"]]
        if isinstance(options, list) and not isinstance(value, dict | list) and not _among(value, options):
            yield f"{path} is {_shown(value)}, which is not one of the allowed values"
        branches = schema.get("anyOf") or schema.get("oneOf")
        branches = branches if isinstance(branches, list) else []
        if branches and all(next(self.walk(path, value, branch), None) for branch in branches):
            yield f"{path} fits none of the alternatives"

    def _object(self, path: str, value: JSON, schema: JSON) -> Iterator[str]:
        required, known = schema.get("required"), schema.get("properties")
        for key in required if isinstance(required, list) else ():
            if isinstance(key, str) and key not in value:
                yield f"{path}.{key} is missing"
        closed = schema.get("additionalProperties") is False and isinstance(known, dict)
        for key, item in value.items():
            if closed and isinstance(known, dict) and key not in known:
                yield f"{path}.{key} is not allowed"
            yield from self.walk(f"{path}.{key}"[:120], item, _below(schema, key))
