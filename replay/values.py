"""JSON values that anybody may have sent: how deep they are nested, and back to text. Pure.

``orjson`` reads 1,024 levels and writes 254, and recursion over a value ends at about 300: what is deeper than ``MAX_DEPTH`` is
refused where it is read, so that no later step can fail on it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import orjson

MAX_DEPTH = 200


def too_deep(value: Any) -> bool:
    """Whether objects and arrays are nested in ``value`` by more than ``MAX_DEPTH`` levels."""
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [
            child
            for node in level
            if isinstance(node, dict | list)
            for child in _children(node)
            if isinstance(child, dict | list)
        ]
        if not level:
            return False
    return True


def may_be_deep(text: bytes | str) -> bool:
    """Whether a JSON text has brackets enough for ``too_deep``. Almost none has, and counting is faster than looking."""
    if isinstance(text, str):
        return text.count("{") + text.count("[") > MAX_DEPTH
    return text.count(b"{") + text.count(b"[") > MAX_DEPTH


def _children(node: dict[str, Any] | list[Any]) -> Iterable[Any]:
    return node.values() if isinstance(node, dict) else node


def compact(value: Any, *, ordered: bool = False) -> str:
    """The value as JSON text, also with what ``orjson`` refuses to write: lone surrogates (as escapes) and huge integers.

    ``ordered``: keys sorted, so that equal values have one text.
    """
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS if ordered else 0).decode()
    except TypeError:
        return json.dumps(value, separators=(",", ":"), sort_keys=ordered)
