"""The logs that people have, each format in a file of its own, told apart by their content."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import ijson

from replay.formats import (
    chat_jsonl,
    goreplay,
    har,
    langfuse,
    litellm_payload,
    openai_batch,
    timing,
    vllm_log,
)
from replay.formats.record import Item
from replay.formats.sources import Source

__all__ = ["FORMATS", "Undetected", "detect", "read"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """How a format is read, and by what it is known. ``columns``: those of its CSV form."""

    read: Callable[[Sequence[Source]], Iterator[Item]]
    matches: Callable[[dict[str, Any]], bool] = lambda first: False
    columns: Callable[[Sequence[str]], bool] = lambda names: False
    starts: Callable[[bytes], bool] = lambda head: False


FORMATS: dict[str, Format] = {
    "goreplay": Format(
        read=goreplay.read, starts=lambda head: goreplay.FIRST.match(head.lstrip(b"\n")) is not None
    ),
    "vllm-log": Format(
        read=vllm_log.read, starts=lambda head: vllm_log.MARK in head and not head.startswith(b"{")
    ),
    "har": Format(read=har.read, matches=har.matches),
    "litellm-payload": Format(read=litellm_payload.read, matches=litellm_payload.matches),
    "openai-batch": Format(read=openai_batch.read, matches=openai_batch.matches),
    "langfuse": Format(read=langfuse.read, matches=langfuse.matches, columns=langfuse.columns),
    "access-log": Format(read=timing.read_access_log, matches=timing.is_access_log),
    "mooncake": Format(read=timing.read_mooncake, matches=timing.is_mooncake),
    "azure-trace": Format(read=timing.read_azure, columns=lambda names: set(timing.AZURE) <= set(names)),
    "burstgpt": Format(read=timing.read_burstgpt, columns=lambda names: set(timing.BURSTGPT) <= set(names)),
    "chat-jsonl": Format(read=chat_jsonl.read, matches=chat_jsonl.matches),
}
"""In the order in which they are asked; ``chat-jsonl`` only when nothing else fits."""


UNREAD: dict[str, Callable[[dict[str, Any]], bool]] = {
    "otlp": lambda first: bool({"resourceSpans", "resourceLogs"} & first.keys()),
    "bedrock": lambda first: first.get("schemaType") == "ModelInvocationLog",
    "litellm-spendlogs": lambda first: {"request_id", "call_type", "spend"} <= first.keys(),
    "openai-responses": lambda first: first.get("object") == "response",
    "openai-stored": lambda first: first.get("object") == "chat.completion",
    "helicone": lambda first: {"request_created_at", "response_status"} <= first.keys(),
    "portkey": lambda first: {"ai_org", "req_units", "res_units"} <= first.keys(),
    "cloudflare": lambda first: (
        {"RequestBody", "ResponseBody"} <= first.keys() or {"cached", "tokens_in", "provider"} <= first.keys()
    ),
    "mlflow": lambda first: "trace_id" in (first.get("info") or {}),
    "phoenix": lambda first: {"span_kind", "attributes"} <= first.keys(),
}
"""Formats that are told apart and not read yet."""


class Undetected(ValueError):
    """No format, or several, fit; the message says what to do."""


def detect(source: Source) -> str:
    """The format of a source, by its first 64 KiB. Raises Undetected."""
    head = source.head
    found = [name for name, one in FORMATS.items() if one.starts(head)]
    if not found:
        first = _first_value(head)
        if first is not None:
            unread = [name for name, fits in UNREAD.items() if fits(first)]
            if unread:
                raise Undetected(f"{source.name} looks like {unread[0]}, which is not read yet")
            found = [name for name, one in FORMATS.items() if one.matches(first)]
        else:
            names = next(csv.reader([head.decode("utf-8", "replace").split("\n", 1)[0].strip()]), [])
            found = [name for name, one in FORMATS.items() if one.columns(names)]
    found = [name for name in found if name != "chat-jsonl"] or found
    if len(found) == 1:
        return found[0]
    if found:
        raise Undetected(f"{source.name} may be {' or '.join(found)}; say which with --format")
    raise Undetected(
        f"{source.name} is in no format that is known ({', '.join(FORMATS)}); say which with --format"
    )


def read(sources: Sequence[Source], name: str) -> Iterator[Item]:
    """The records and skips of sources that belong together, in one pass."""
    return FORMATS[name].read(sources)


def _first_value(head: bytes) -> dict[str, Any] | None:
    """The first object of a JSON document, list or lines, as far as the head holds it."""
    start = head.lstrip()
    if start[:1] not in (b"{", b"["):
        return None
    keys: dict[str, Any] = {}
    depth = 1 if start.startswith(b"{") else 2
    path: list[str] = []
    try:
        for prefix, event, value in ijson.parse(start if len(start) < 64 * 1024 else start + b" "):
            if event == "map_key" and prefix.count(".") <= depth:
                path = [*[part for part in prefix.split(".") if part not in ("", "item")], value]
                _put(keys, path, None)
            elif path and event in ("string", "number", "boolean", "null"):
                _put(keys, path, value)
            elif event == "end_map" and prefix in ("", "item"):
                break
    except ijson.JSONError:
        pass
    for name in ("data", "result"):
        inner = keys.get(name)
        if depth == 1 and isinstance(inner, dict) and inner:
            return inner
    return keys or None


def _put(keys: dict[str, Any], path: list[str], value: Any) -> None:
    here = keys
    for part in path[:-1]:
        if not isinstance(here.get(part), dict):
            here[part] = {}
        here = here[part]
    if not isinstance(here.get(path[-1]), dict):
        here[path[-1]] = value
