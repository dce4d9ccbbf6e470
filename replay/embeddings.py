"""The embeddings API: vectors, as lists of numbers or as base64 of little-endian float32."""

from __future__ import annotations

import array
import base64
import binascii
import math
import sys
from typing import Any

from replay.completion import usage_of
from replay.exchange import JSON, Answer, Usage
from replay.oddities import Oddities


def speaks(value: JSON) -> bool:
    """Whether a JSON object is an answer of this interface."""
    data = value.get("data")
    return isinstance(data, list) and bool(data) and isinstance(data[0], dict) and "embedding" in data[0]


def read(value: JSON, odd: Oddities) -> Answer:
    """The vectors in the order of their index."""
    found: dict[int, tuple[float, ...]] = {}
    for position, item in enumerate(value["data"]):
        entry = item if isinstance(item, dict) else {}
        index = entry.get("index")
        if not isinstance(index, int):
            odd.add("envelope.index_missing")
            index = position
        if index in found:
            odd.add("envelope.index_ambiguous")
        found[index] = _vector(entry.get("embedding"), odd)
    usage = value.get("usage")
    model = value.get("model")
    stated: Usage | None = usage_of(usage) if isinstance(usage, dict) else None
    return Answer(
        usage=stated,
        model=model if isinstance(model, str) else None,
        embeddings=tuple(found[index] for index in sorted(found)),
        oddities=odd.all(),
        extra=odd.fields(),
    )


def _vector(value: Any, odd: Oddities) -> tuple[float, ...]:
    numbers: list[Any] = value if isinstance(value, list) else []
    if isinstance(value, str):
        try:
            packed = array.array("f", base64.b64decode(value, validate=True))
        except (binascii.Error, ValueError):
            odd.add("envelope.wrong_type", "embedding")
            return ()
        if sys.byteorder == "big":
            packed.byteswap()
        numbers = packed.tolist()
    try:
        found = tuple(float(n) for n in numbers if isinstance(n, int | float) and not isinstance(n, bool))
    except OverflowError:
        found = ()
    if len(found) < len(numbers) or not all(map(math.isfinite, found)):
        odd.add("envelope.nonstandard_number", "embedding")
        return ()
    return found
