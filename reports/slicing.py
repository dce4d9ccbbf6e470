"""What kind of request it is: the dimensions along which a report looks for the slice that broke. Pure."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterator
from hashlib import blake2b
from typing import Any

from replay.exchange import JSON
from reports.script import spoken

DIMENSIONS = ("route", "model", "language", "prompt_length", "turn", "streamed", "tools", "temperature")
"""In the order of a report; labels of other names, which a caller may add, follow them."""
_LENGTHS = (
    (0, "below 500 characters"),
    (500, "500 to 2,000 characters"),
    (2_000, "2,000 to 8,000 characters"),
    (8_000, "8,000 to 32,000 characters"),
    (32_000, "32,000 characters and more"),
)
_TURNS = ((0, "1"), (2, "2"), (3, "3 to 5"), (6, "6 and more"))
NOT_SAMPLED = "0"
"""The temperature at which a model is asked for its likeliest answer."""
UNSET = "not set"
"""The server's own temperature, which is above 0 with most."""
_LONGEST = 80
_DELIVERY = frozenset(
    ("user", "metadata", "stream", "stream_options", "safety_identifier", "prompt_cache_key", "store")
)


def labels(path: str, body: Any) -> dict[str, str]:
    """The labels of a request from its path and its parsed body, which may be anything; what is not known is absent.

    Language and turn are those of the last thing that the user said.
    """
    known = {"route": path.partition("?")[0][:_LONGEST]}
    if not isinstance(body, dict):
        return known
    said = list(_said(body))
    asked = [text for role, text in said if role == "user"]
    if isinstance(model := body.get("model"), str):
        known["model"] = model[:_LONGEST]
    if asked and (language := spoken(asked[-1])):
        known["language"] = language
    if said:
        known["prompt_length"] = _bucket(_LENGTHS, sum(len(text) for _, text in said))
        known["turn"] = _bucket(_TURNS, len(asked))
    known["streamed"] = "yes" if body.get("stream") is True else "no"
    known["tools"] = "offered" if body.get("tools") or body.get("functions") else "none"
    known["temperature"] = _temperature(body.get("temperature"))
    return known


def prompt_of(body: Any) -> str:
    """Equal for requests that ask the same with the same settings, whoever asks and however it comes; empty for no body."""
    if not isinstance(body, dict):
        return ""
    asked = {name: value for name, value in body.items() if name not in _DELIVERY}
    return blake2b(json.dumps(asked, sort_keys=True).encode(), digest_size=8).hexdigest()


def has_system_prompt(body: Any) -> bool:
    """Whether the request says how to answer, besides what."""
    if not isinstance(body, dict):
        return False
    return bool(body.get("system") or body.get("instructions")) or any(
        role in ("system", "developer") for role, _ in _said(body)
    )


def _said(body: JSON) -> Iterator[tuple[str, str]]:
    """Each message as (role, text): of a conversation, a prompt, or an input."""
    for key in ("messages", "prompt", "input"):
        value = body.get(key)
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, str):
                yield "user", one
            elif isinstance(one, dict) and "role" in one:
                yield str(one["role"]), _text(one.get("content"))


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else ()
    return "\n".join(
        part["text"] for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str)
    )


def _bucket(buckets: tuple[tuple[int, str], ...], size: int) -> str:
    return buckets[bisect_right(buckets, size, key=lambda bucket: bucket[0]) - 1][1]


def _temperature(value: Any) -> str:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return UNSET
    if value <= 0:
        return NOT_SAMPLED
    return "up to 0.5" if value <= 0.5 else "up to 1" if value <= 1 else "above 1"
