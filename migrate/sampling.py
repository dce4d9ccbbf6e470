"""Which requests are mirrored: a stable hash of what makes requests belong together. Pure.

A request's position in [0, 1) depends on its key alone, so a conversation is mirrored whole, every process and every
restart agrees, and a larger share contains the smaller one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import orjson

from replay.exchange import JSON

_SALT = b"llm-migrate/shadow"
"""Keeps this draw independent of any other that hashes the same key, such as a rollout."""

_ROLLOUT = b"llm-migrate/canary"

_FIRST_ROLES = ("system", "developer", "user")


def digest(key: str) -> str:
    """The key's hash, 32 hexadecimal digits: names a conversation without holding its text."""
    return hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=16, key=_SALT).hexdigest()


def position(conversation: str) -> float:
    """Where a conversation's ``digest`` falls in [0, 1): its first 52 bits as a fraction."""
    return int(conversation[:13], 16) / 2**52


def rollout(conversation: str) -> float:
    """Where a conversation's ``digest`` falls in [0, 1) when traffic is moved: below the share, the candidate answers it.

    A larger share keeps everybody whom the smaller one had; who is recorded has nothing to do with it.
    """
    found = hashlib.blake2b(conversation.encode(), digest_size=8, key=_ROLLOUT).digest()
    return (int.from_bytes(found, "big") >> 12) / 2**52


def header_key(sample_by: str, headers: Mapping[str, str]) -> str | None:
    """The key when requests are sampled by a header and this one carries it; ``headers`` is keyed in lower case."""
    if not sample_by.startswith("header:"):
        return None
    value = headers.get(sample_by.removeprefix("header:").lower())
    return f"header:{value}" if value else None


def body_key(sample_by: str, body: JSON, request_id: str) -> str:
    """The key of a request without a sampling header.

    ``request``: every request for itself. Everything else, also a missing header: the ``user`` field, else the first
    system and user message (or prompt, or input), else the request itself.
    """
    if sample_by == "request":
        return f"request:{request_id}"
    user = body.get("user")
    if isinstance(user, str | int) and str(user):
        return f"user:{user}"
    opening = _opening(body)
    return f"opening:{_canonical(opening)}" if opening else f"request:{request_id}"


def stateful_reason(body: JSON) -> str | None:
    """The part of a request that leans on what one server holds, so that no other server can answer it alike.

    ``None`` for stateless generation. ``store`` is not one of them: the answer does not depend on it, and a copy never
    carries it.
    """
    for field in ("previous_response_id", "conversation"):
        if body.get(field):
            return field
    if body.get("background") is True:
        return "background"
    if isinstance(body.get("prompt"), Mapping) and body["prompt"].get("id"):
        return "prompt.id"
    for field in ("messages", "input", "tools", "tool_resources", "file_ids", "attachments"):
        reason = _reference(body.get(field))
        if reason:
            return reason
    return "file_ids" if body.get("file_ids") else None


def _opening(body: JSON) -> list[Any]:
    """The first message of each opening role, whatever the interface calls its messages."""
    messages = body.get("messages", body.get("input"))
    if not isinstance(messages, list):
        return [part for part in (body.get("instructions"), messages, body.get("prompt")) if part]
    first: dict[str, Any] = {}
    for message in messages:
        role = message.get("role") if isinstance(message, Mapping) else None
        if role in _FIRST_ROLES:
            first.setdefault(role, message.get("content"))
        if role == "user":
            break
    return [[role, content] for role, content in first.items()]


_REFERENCES = ("file_id", "file_ids", "vector_store_ids", "container")


def _reference(node: Any) -> str | None:
    """The first field below ``node`` that names something stored on a server."""
    stack = [node]
    while stack:
        here = stack.pop()
        if isinstance(here, list):
            stack.extend(part for part in here if isinstance(part, list | dict))
        elif isinstance(here, dict):
            for field in _REFERENCES:
                if here.get(field):
                    return field
            if here.get("type") == "item_reference":
                return "item_reference"
            stack.extend(
                here[field]
                for field in ("content", "file", "image_file", "source", "file_search")
                if field in here
            )
            audio = here.get("audio")
            if isinstance(audio, Mapping) and audio.get("id"):
                return "audio.id"
    return None


def _canonical(value: Any) -> str:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
