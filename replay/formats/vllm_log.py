"""vLLM's own log. Nothing in it can be sent again: no bodies, or rendered prompts that were cut; each line says which."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from replay.formats.record import Item, Skip
from replay.formats.sources import Source

MARK = b"Received request"
HINT = "vLLM's log holds no requests that could be sent again; record with: migrate capture"


def read(sources: Sequence[Source]) -> Iterator[Item]:
    """A skip for each line."""
    for source in sources:
        for line, data in source.lines():
            reason, detail = _why(data) if isinstance(data, bytes) else (data.reason, data.detail)
            yield Skip(line=line, reason=reason, detail=detail)


def _why(data: bytes) -> tuple[str, str]:
    if MARK in data:
        if b"prompt: '" in data or b'prompt: "' in data:
            return "request-truncated", "rendered prompt, cut by --max-log-len"
        return "request-missing", "vLLM logs parameters without the prompt"
    if b'"POST /' in data:
        return "request-missing", "access line without a body"
    if b"Generated response" in data:
        return "request-missing", "answer without its request"
    return "not-a-model-call", "engine line"
