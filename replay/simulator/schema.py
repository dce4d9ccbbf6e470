"""A value that satisfies a JSON Schema, drawn from a hash."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeGuard

from replay.exchange import JSON
from replay.simulator import chance, pattern
from replay.simulator.ask import RefusalError, Wrong

_WORDS = (
    "north",
    "amber",
    "harbour",
    "seven",
    "copper",
    "evening",
    "ledger",
    "violet",
    "ferry",
    "granite",
    "summer",
)
_FORMATS = {
    "date-time": "2026-03-{0:02d}T09:30:00Z",
    "date": "2026-03-{0:02d}",
    "time": "09:30:{0:02d}Z",
    "duration": "PT{0}M",
    "email": "user{0}@example.com",
    "hostname": "host{0}.example.com",
    "ipv4": "192.0.2.{0}",
    "ipv6": "2001:db8::{0}",
    "uri": "https://example.com/{0}",
    "url": "https://example.com/{0}",
    "uuid": "00000000-0000-4000-8000-0000000000{0:02d}",
}
_ALIASES = {
    "dict": "object",
    "float": "number",
    "tuple": "array",
    "list": "array",
    "int": "integer",
    "str": "string",
}
"""Type names that some function catalogues write instead of the standard ones."""
_DEEP = 6
"""From this depth on only what is required is filled in, so that recursive schemas end."""
_DEEPEST = 24
_MOST = 100
"""Items of an array, and hundreds of letters, that are made however many are required."""


@dataclass(slots=True)
class _Draw:
    """What one value is drawn with: the root schema for references, chance, and how many parts may still be made."""

    root: JSON
    rng: random.Random
    left: int = 20_000


def value(schema: Any, *parts: object) -> Any:
    """A value that ``schema`` accepts, drawn from ``parts``.

    Understands types, const, enum, bounds, formats, simple patterns, properties, items, local ``$ref``,
    allOf, anyOf and oneOf. What it does not understand (``not``, ``if``, dependencies) it leaves unchecked.
    Raises RefusalError for what is no schema, as a backend that compiles it would.
    """
    root = schema if isinstance(schema, dict) else {}
    try:
        return _value(root, _Draw(root, chance.stream("schema", *parts)), 0)
    except (TypeError, ValueError, AttributeError, OverflowError) as error:
        raise RefusalError(Wrong.INVALID, f"Invalid JSON schema: {error}", param="schema") from None


def _value(schema: Any, draw: _Draw, depth: int) -> Any:
    draw.left -= 1
    if not isinstance(schema, dict) or depth > _DEEPEST or draw.left < 0:
        return _word(draw.rng)
    schema = _resolved(schema, draw.root)
    if "const" in schema:
        return schema["const"]
    if schema.get("enum"):
        return chance.pick(draw.rng, tuple(schema["enum"]))
    for choice in ("anyOf", "oneOf"):
        if schema.get(choice):
            return _value(_chosen(schema, choice, draw, depth), draw, depth + 1)
    kind = _kind(schema, draw.rng)
    if kind == "object":
        return _object(schema, draw, depth)
    if kind == "array":
        return _array(schema, draw, depth)
    return _scalar(kind, schema, draw.rng)


def _chosen(schema: JSON, choice: str, draw: _Draw, depth: int) -> JSON:
    """One alternative merged over what stands beside it; deep down the plainest."""
    options = tuple(option for option in schema[choice] if isinstance(option, dict)) or ({},)
    if depth >= _DEEP:
        options = (
            min(options, key=lambda option: ("$ref" in option, option.get("type") in ("object", "array"))),
        )
    beside = {key: item for key, item in schema.items() if key != choice}
    return _merged(beside, chance.pick(draw.rng, options))


def _resolved(schema: JSON, root: JSON) -> JSON:
    for _ in range(_DEEPEST):
        if isinstance(schema.get("$ref"), str):
            beside = {key: item for key, item in schema.items() if key != "$ref"}
            schema = _merged(beside, _pointed(schema["$ref"], root))
        elif schema.get("allOf"):
            merged = {key: item for key, item in schema.items() if key != "allOf"}
            for part in schema["allOf"]:
                merged = _merged(merged, part if isinstance(part, dict) else {})
            schema = merged
        else:
            break
    return schema


def _pointed(reference: str, root: JSON) -> JSON:
    node: Any = root
    for step in reference.removeprefix("#").split("/")[1:]:
        node = node.get(step.replace("~1", "/").replace("~0", "~"), {}) if isinstance(node, dict) else {}
    return node if isinstance(node, dict) else {}


def _merged(first: JSON, second: JSON) -> JSON:
    merged = {**first, **second}
    if "properties" in first and "properties" in second:
        merged["properties"] = {**first["properties"], **second["properties"]}
    if "required" in first and "required" in second:
        merged["required"] = list(dict.fromkeys([*first["required"], *second["required"]]))
    return merged


def _kind(schema: JSON, rng: random.Random) -> str:
    kind = schema.get("type")
    if isinstance(kind, list) and kind:
        kinds = tuple(item for item in kind if item != "null") or ("null",)
        kind = chance.pick(rng, kinds)
    if isinstance(kind, str):
        return _ALIASES.get(kind, kind)
    for name, key in (
        ("object", "properties"),
        ("array", "items"),
        ("array", "prefixItems"),
        ("number", "minimum"),
    ):
        if key in schema:
            return name
    return "string"


def _object(schema: JSON, draw: _Draw, depth: int) -> JSON:
    properties = schema.get("properties")
    properties = properties if isinstance(properties, dict) else {}
    required = [name for name in schema.get("required") or () if isinstance(name, str)]
    optional = [name for name in properties if name not in required]
    kept = [name for name in optional if draw.rng.random() < 0.5 and depth < _DEEP]
    missing = int(schema.get("minProperties", 0)) - len(required) - len(kept)
    kept += [name for name in optional if name not in kept][: max(0, missing)]
    names = [name for name in [*properties, *required] if name in required or name in kept]
    extra = schema.get("additionalProperties")
    rest = extra if isinstance(extra, dict) else {}
    return {name: _value(properties.get(name, rest), draw, depth + 1) for name in dict.fromkeys(names)}


def _array(schema: JSON, draw: _Draw, depth: int) -> list[Any]:
    first = list(schema.get("prefixItems") or ())
    low = min(int(schema.get("minItems", 0 if depth >= _DEEP else 1)), _MOST)
    high = min(int(schema.get("maxItems", max(low, 2))), max(low, 3))
    count = chance.between(draw.rng, low, max(low, high)) if depth < _DEEP else low
    items: list[Any] = []
    for _ in range(count * 8):
        if len(items) >= count:
            break
        wanted = first[len(items)] if len(items) < len(first) else schema.get("items", {})
        item = _value(wanted, draw, depth + 1)
        if not schema.get("uniqueItems") or item not in items:
            items.append(item)
    return items


def _scalar(kind: str, schema: JSON, rng: random.Random) -> Any:
    if kind == "null":
        return None
    if kind == "boolean":
        return rng.random() < 0.5
    if kind in ("integer", "number"):
        return _number(schema, rng, whole=kind == "integer")
    return _string(schema, rng)


def _number(schema: JSON, rng: random.Random, *, whole: bool) -> int | float:
    step = float(schema.get("multipleOf") or (1 if whole else 0.5))
    low, high = _bounds(schema, step)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    drawn = chance.between(rng, first, max(first, last)) * step
    if not low <= drawn <= high:
        drawn = (low + high) / 2
    return round(drawn) if whole else round(drawn, 9)


def _bounds(schema: JSON, step: float) -> tuple[float, float]:
    """Both ends included; an end that the schema leaves open lies 40 steps from the other."""
    lows, highs = [*_ends(schema, "minimum", 1, step)], [*_ends(schema, "maximum", -1, step)]
    if lows:
        bottom = max(lows)
        return bottom, min(highs, default=bottom + 40 * step)
    top = min(highs, default=41 * step)
    return min(step, top - 40 * step), top


def _ends(schema: JSON, name: str, inward: int, step: float) -> Iterator[float]:
    """The stated bounds on one side, an exclusive one moved inward by a whole step or a thousandth.

    The older way to write an exclusive bound is ``true`` beside the plain one.
    """
    plain, exclusive = schema.get(name), schema.get("exclusive" + name.capitalize())
    nudge = inward * (step if step >= 1 else 1e-3)
    if _is_number(plain):
        yield plain + nudge if exclusive is True else plain
    if _is_number(exclusive):
        yield exclusive + nudge


def _is_number(found: Any) -> TypeGuard[float]:
    return isinstance(found, int | float) and not isinstance(found, bool)


def _string(schema: JSON, rng: random.Random) -> str:
    if (
        isinstance(schema.get("pattern"), str)
        and (text := pattern.matching(schema["pattern"], rng)) is not None
    ):
        return text
    form = schema.get("format")
    if isinstance(form, str) and form in _FORMATS:
        return _FORMATS[form].format(chance.between(rng, 1, 28))
    low, high = min(int(schema.get("minLength", 0)), 100 * _MOST), schema.get("maxLength")
    text = _word(rng)
    while len(text) < low:
        text += " " + _word(rng)
    return text if high is None else text[: int(high)]


def _word(rng: random.Random) -> str:
    return chance.pick(rng, _WORDS)
