"""The logs that people have, each format in a file of its own, told apart by their content."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import Any, cast

from replay.formats import (
    bedrock,
    chat_jsonl,
    cloudflare,
    goreplay,
    har,
    helicone,
    langfuse,
    litellm_payload,
    litellm_spendlogs,
    mitmproxy,
    mlflow,
    openai_batch,
    openai_responses,
    openai_stored,
    otlp,
    phoenix,
    portkey,
    timing,
    vllm_log,
)
from replay.formats.record import Item, Record
from replay.formats.sources import Source

__all__ = ["FORMATS", "Undetected", "detect", "groups", "read", "read_lines", "sources_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """How a format is read, and by what it is known."""

    read: Callable[[Sequence[Source]], Iterator[Item]]
    matches: Callable[[dict[str, Any]], bool] = lambda first: False
    """By the first record of JSON."""
    columns: Callable[[set[str]], bool] = lambda names: False
    """By the columns of CSV."""
    starts: Callable[[bytes], bool] = lambda head: False
    """By the beginning of what is neither."""
    joined: bool = False
    """Whether one call may be spread over several files."""
    by_line: bool = False
    """Whether every line is a call of its own, so that lines can be read apart from their file."""


FORMATS: dict[str, Format] = {
    "goreplay": Format(
        read=goreplay.read,
        starts=lambda head: goreplay.FIRST.match(head.lstrip(b"\n")) is not None,
        joined=True,
    ),
    "vllm-log": Format(
        read=vllm_log.read, starts=lambda head: vllm_log.MARK in head and not head.startswith(b"{")
    ),
    "mitmproxy": Format(read=mitmproxy.read, starts=lambda head: mitmproxy.FIRST.match(head) is not None),
    "har": Format(read=har.read, matches=har.matches),
    "otlp": Format(read=otlp.read, matches=otlp.matches, joined=True),
    "bedrock": Format(read=bedrock.read, matches=bedrock.matches),
    "litellm-payload": Format(read=litellm_payload.read, matches=litellm_payload.matches, by_line=True),
    "litellm-spendlogs": Format(
        read=litellm_spendlogs.read, matches=litellm_spendlogs.matches, columns=litellm_spendlogs.columns
    ),
    "openai-batch": Format(read=openai_batch.read, matches=openai_batch.matches, joined=True),
    "openai-responses": Format(read=openai_responses.read, matches=openai_responses.matches, joined=True),
    "openai-stored": Format(read=openai_stored.read, matches=openai_stored.matches, joined=True),
    "langfuse": Format(read=langfuse.read, matches=langfuse.matches, columns=langfuse.columns),
    "helicone": Format(read=helicone.read, matches=helicone.matches, columns=helicone.columns),
    "portkey": Format(read=portkey.read, matches=portkey.matches),
    "cloudflare": Format(read=cloudflare.read, matches=cloudflare.matches),
    "mlflow": Format(read=mlflow.read, matches=mlflow.matches),
    "phoenix": Format(read=phoenix.read, matches=phoenix.matches),
    "access-log": Format(read=timing.read_access_log, matches=timing.is_access_log, by_line=True),
    "mooncake": Format(read=timing.read_mooncake, matches=timing.is_mooncake, by_line=True),
    "azure-trace": Format(read=timing.read_azure, columns=timing.AZURE.issubset),
    "burstgpt": Format(read=timing.read_burstgpt, columns=timing.BURSTGPT.issubset),
    "chat-jsonl": Format(read=chat_jsonl.read, matches=chat_jsonl.matches, by_line=True),
}
"""In the order in which they are asked; ``chat-jsonl`` only when nothing else fits."""


class Undetected(ValueError):
    """No format, or several, fit; the message says what to do."""


def sources_of(paths: Iterable[Path]) -> list[Source]:
    """The sources at some paths; a folder is the files in it, by name, but for hidden ones and pipes. Raises OSError."""
    return [Source(file) for path in paths for file in (_within(path) if path.is_dir() else [path])]


def _within(folder: Path) -> list[Path]:
    """A folder within it is not left out in silence: reading it is an error."""
    return sorted(
        one for one in folder.iterdir() if (one.is_file() or one.is_dir()) and not one.name.startswith(".")
    )


def detect(source: Source) -> str:
    """The format of a source, by its first 64 KiB. Raises Undetected."""
    head = source.head
    found = [name for name, one in FORMATS.items() if one.starts(head)]
    if not found and source.first:
        found = [name for name, one in FORMATS.items() if one.matches(source.first)]
    elif not found:
        found = [name for name, one in FORMATS.items() if one.columns(_columns(head))]
    found = [name for name in found if name != "chat-jsonl"] or found
    if len(found) == 1:
        return found[0]
    if found:
        raise Undetected(f"{source.name} may be {' or '.join(found)}; say which with --format")
    raise Undetected(
        f"{source.name} is in no format that is known ({', '.join(FORMATS)}); say which with --format"
    )


def _columns(head: bytes) -> set[str]:
    """The names in the first line, where it is one of CSV."""
    try:
        return set(next(csv.reader([head.decode("utf-8", "replace").split("\n", 1)[0].strip()]), []))
    except csv.Error:
        return set()


def groups(sources: Sequence[Source], name: str) -> list[Sequence[Source]]:
    """The sources that have to be read together; a call has one place within its group."""
    return [sources] if FORMATS[name].joined else [[source] for source in sources]


def read(sources: Sequence[Source], name: str, zone: tzinfo = UTC) -> Iterator[Item]:
    """The records and skips of sources that belong together, in one pass. ``zone``: of times that name none."""
    items = FORMATS[name].read(sources)
    return items if zone is UTC else (_moved(item, zone) for item in items)


def read_lines(lines: Iterable[tuple[int, Any]], name: str, zone: tzinfo = UTC) -> Iterator[Item]:
    """The records and skips of some lines, as ``Source.lines`` gave them, of a format that is read by line."""
    return read([cast("Source", _Lines(lines))], name, zone)


@dataclass(frozen=True, slots=True)
class _Lines:
    """A source of which only lines are asked."""

    taken: Iterable[tuple[int, Any]]

    def lines(self) -> Iterator[tuple[int, Any]]:
        return iter(self.taken)


def _moved(item: Item, zone: tzinfo) -> Item:
    """The readers take a time without an offset as UTC and note it; here it is one of ``zone``, and assumed no more."""
    if not isinstance(item, Record) or "time-zone-assumed" not in item.notes:
        return item
    at = item.captured_at
    if at is not None:
        at = datetime.fromtimestamp(at, UTC).replace(tzinfo=zone).timestamp()
    return replace(
        item, captured_at=at, notes=tuple(note for note in item.notes if note != "time-zone-assumed")
    )
