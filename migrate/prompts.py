"""Questions for times: logs that hold times and lengths alone, asked with requests of another file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from migrate.errors import ConfigError
from replay.exchange import JSON
from replay.formats import read_lines
from replay.formats.fields import loaded
from replay.formats.record import Call, Item, Record, Skip, Use
from replay.formats.sources import Source

_LIMITS = {
    "/v1/chat/completions": ("max_tokens", "max_completion_tokens"),
    "/v1/completions": ("max_tokens",),
    "/v1/responses": ("max_output_tokens",),
}
"""How many tokens an answer may have: the field to set, and its other names."""


@dataclass(slots=True)
class Prompts:
    """The requests of a file in order, over and over, read as they are used. ``model`` is asked for where one names none.

    A line is a request as chat-jsonl has it, or ``{"text": "…"}``. Raises ConfigError when it is neither, or names no model.
    """

    path: Path
    model: str | None
    count: int = field(default=0, init=False)
    """Requests in the file; 0 until its end was reached."""
    used: int = field(default=0, init=False)

    def __iter__(self) -> Iterator[Record]:
        while True:
            before = self.used
            for line, request in _requests(self.path):
                if request.model is None and self.model is None:
                    raise ConfigError(f"{self.path} line {line}: no model is named; give one with --model")
                self.used += 1
                yield request
            if before == self.used:
                raise ConfigError(f"{self.path} holds no requests; write one JSON object a line")
            self.count = self.count or self.used

    @property
    def turns(self) -> float | None:
        """How many times over they were used; ``None`` when each was needed once at most."""
        return self.used / self.count if self.count and self.used > self.count else None


def _requests(path: Path) -> Iterator[tuple[int, Record]]:
    for item in read_lines(((line, _asked(row)) for line, row in Source(path).lines()), "chat-jsonl"):
        if isinstance(item, Skip):
            raise ConfigError(f"{path} line {item.line}: {item.reason}: {item.detail}")
        yield item.line, item


def _asked(row: Any) -> Any:
    """The line, with a text as the one message of a chat."""
    value = loaded(row) if isinstance(row, bytes) and b'"text"' in row else None
    if (
        isinstance(value, dict)
        and isinstance(value.get("text"), str)
        and not {"messages", "prompt", "input"} & value.keys()
    ):
        return {"messages": [{"role": "user", "content": value.pop("text")}], **value}
    return row


def prompted(items: Iterable[Item], prompts: Prompts) -> Iterator[Item]:
    """The items, where times alone have become requests: the next prompt, sent when the log says, for as long an answer."""
    questions = iter(prompts)
    for item in items:
        timed = isinstance(item, Record) and item.use is Use.TIMING
        yield _question(item, next(questions)) if timed else item  # type: ignore[arg-type]


def _question(times: Record, prompt: Record) -> Record:
    call = prompt.request or Call(method="POST", path="")
    return replace(
        times,
        use=Use.REPLAY,
        request=replace(call, body=_limited(call, times.output_tokens)),
        response=None,
        model=prompt.model,
        notes=tuple(sorted({*times.notes, *_about(prompt), "request-rebuilt"})),
    )


def _about(prompt: Record) -> Iterable[str]:
    """What is noted of a prompt's request; whatever it was answered stays behind."""
    return (note for note in prompt.notes if note in ("path-assumed", "model-missing"))


def _limited(call: Call, tokens: int | None) -> JSON:
    """The body, with as many tokens as the log's answer had where it names no limit of its own."""
    body: JSON = call.body
    names = _LIMITS.get(call.path, ())
    if tokens is None or not names or any(body.get(name) is not None for name in names):
        return body
    return {**body, names[0]: tokens}
