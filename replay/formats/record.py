"""The neutral record of an imported call, and what every importer needs to make one. Pure.

What a source does not say is ``None``; what was put together or assumed is in ``notes``, and no finding may rest on it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from replay.exchange import JSON, Headers
from replay.formats.fields import Unusable, count, loaded, mapping, parsed

_REDACTED = re.compile(r"redacted-by-litellm|__REDACTED__|REDACTED_BY_LITELM|<redacted>|^\*{3,}$")
_TRUNCATED = re.compile(
    r"\(litellm_truncated skipped \d+ chars|\[truncated\]\s*$|^\[(?:image|file|audio) omitted\]$"
)
_OF_ANSWERS = {"response-rebuilt", "stream-joined", "stream-no-times"}
_QUESTIONS = ("messages", "prompt", "input")
_EVENTS = ("data:", "event:", ":", "id:")


class Use(StrEnum):
    """What a record is good for."""

    PAIR = "pair"
    REPLAY = "replay"
    TIMING = "timing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """The request as far as the source has it; ``body`` is a JSON value, ``None`` in a record of times only."""

    method: str
    path: str
    headers: Headers = ()
    body: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """The answer: a JSON ``body``, or the text of a ``stream`` in the pieces that the source kept, timed where it says."""

    status: int | None = None
    headers: Headers = ()
    body: Any = None
    stream: tuple[tuple[float | None, str], ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One model call of a log."""

    line: int
    """Position of the request in its source, from 1; blank lines do not count."""
    use: Use
    captured_at: float | None = None
    """Epoch seconds at which the request was sent."""
    request: Call | None = None
    response: Reply | None = None
    ttft_s: float | None = None
    duration_s: float | None = None
    ttfb_s: float | None = None
    """Time to headers; never a time to the first token."""
    offset_s: float | None = None
    """Seconds from the start of a trace."""
    model: str | None = None
    user: str | None = None
    session: str | None = None
    trace: str | None = None
    cost_usd: float | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Skip:
    """A source record that cannot become one, and why."""

    line: int
    reason: str
    detail: str


Item = Record | Skip


def each(rows: Iterable[tuple[int, Any]], one: Callable[[int, JSON], Record]) -> Iterator[Item]:
    """What ``one`` makes of each numbered row, as a line of JSON or an object; a row that is unusable is a skip."""
    for line, row in rows:
        try:
            record = one(line, parsed(row))
            yield record if isinstance(row, bytes) and not _suspect(row) else uncut(record)
        except Unusable as why:
            yield Skip(line=line, reason=why.reason, detail=why.detail)


def made(
    line: int,
    *,
    request: Call,
    response: Reply | None,
    notes: Iterable[str],
    use: Use | None = None,
    **more: Any,
) -> Record:
    """A record with the notes, the model and the token counts that follow from its parts.

    Raises Unusable when the request asks nothing.
    """
    told = set(notes)
    if use is not Use.TIMING:
        _asked(request.path, request.body)
        model = more.get("model") or request.body.get("model")
        more["model"] = model if isinstance(model, str) and model else None
        if more["model"] is None:
            told.add("model-missing")
    answered = response is not None and (response.body is not None or response.stream is not None)
    if answered and response is not None:
        counted = _usage(response)
        more["input_tokens"] = more.get("input_tokens") or counted[0]
        more["output_tokens"] = more.get("output_tokens") or counted[1]
    elif "response-truncated" not in told:
        told.add("response-missing")
    return Record(
        line=line,
        use=use or (Use.PAIR if answered else Use.REPLAY),
        request=request,
        response=response,
        notes=tuple(sorted(told)),
        **more,
    )


def replied(
    said: Any, notes: set[str], *, status: int | None, headers: Headers = (), kind: str = ""
) -> Reply:
    """The answer that a log kept as text: an event stream without times, JSON, or words; ``kind`` is its content type.

    A value that was JSON already stays as it is. JSON that stops early costs the answer.
    """
    if not isinstance(said, str):
        return Reply(status=status, headers=headers, body=said)
    streams = kind.startswith("text/event-stream") or (not kind and said.startswith(_EVENTS))
    if not said:
        return Reply(status=status, headers=headers)
    if streams:
        notes.add("stream-no-times")
        return Reply(status=status, headers=headers, stream=((None, said),))
    body = loaded(said)
    if body is None and (kind.startswith("application/json") or said.lstrip()[:1] in ("{", "[")):
        notes.add("response-truncated")
        return Reply(status=status, headers=headers)
    return Reply(status=status, headers=headers, body=said if body is None else body)


def failed(notes: set[str], *, status: int | None, **error: Any) -> Reply:
    """An answer that is an error, put together from what is known: its ``message``, ``type`` and ``code``."""
    known = {name: value for name, value in error.items() if value not in (None, "")}
    notes.add("status-missing" if status is None else "status-inferred")
    if not known:
        return Reply(status=status)
    notes.add("response-rebuilt")
    return Reply(status=status, body={"error": known})


def _asked(path: str, body: Any) -> None:
    """Raises Unusable when a request asks nothing."""
    if not path.startswith("/"):
        raise Unusable("malformed", "the path does not begin with /")
    if not isinstance(body, dict) or not body:
        raise Unusable("request-missing", "no body")
    questions = [body[name] for name in _QUESTIONS if name in body]
    if not questions:
        raise Unusable("not-a-model-call", "a body without messages, prompt and input")
    if not any(questions):
        raise Unusable("request-missing", "an empty question")


def uncut(record: Record) -> Record:
    """The record, without an answer that was cut or redacted.

    Raises Unusable when the request was: the candidate would answer another question.
    """
    if record.request is None or record.use is Use.TIMING:
        return record
    if fault := _fault(record.request.body):
        raise Unusable(f"request-{fault[0]}", fault[1])
    said = record.response
    if said is None or not (
        fault := _fault(said.body if said.stream is None else [t for _, t in said.stream])
    ):
        return record
    note = "response-truncated" if fault[0] == "truncated" else "response-missing"
    return replace(
        record,
        use=Use.REPLAY,
        response=Reply(status=said.status, headers=said.headers),
        notes=tuple(sorted({*record.notes, note} - _OF_ANSWERS)),
    )


def _suspect(line: bytes) -> bool:
    """Whether a line holds what all lines hold with a text that the two patterns find; looking for it is much faster."""
    return (
        b"redacted" in line
        or b"REDACTED" in line
        or (b"*" in line and b"***" in line)  # one byte is found ten times faster
        or b"truncated" in line
        or b"omitted]" in line
    )


def _fault(value: Any) -> tuple[str, str] | None:
    """Whether a text in the value was redacted or truncated, and by what mark."""
    stack = [value]
    while stack:
        here = stack.pop()
        if isinstance(here, dict):
            stack.extend(here.values())
        elif isinstance(here, list):
            stack.extend(here)
        elif isinstance(here, str):
            if found := _REDACTED.search(here):
                return "redacted", f"a text holds {found[0]}"
            if found := _TRUNCATED.search(here):
                return "truncated", f"a text was cut: {found[0][:40]}"
    return None


def _usage(response: Reply) -> tuple[int | None, int | None]:
    usage = mapping(response.body).get("usage")
    if usage is None and response.stream is not None:
        text = "".join(piece for _, piece in response.stream)
        found = [line for line in text.split("\n") if line.startswith("data:") and '"usage"' in line]
        usage = next(
            (seen for line in reversed(found) if (seen := mapping(loaded(line[5:])).get("usage"))), None
        )
    usage = mapping(usage)
    return count(usage.get("prompt_tokens", usage.get("input_tokens"))), count(
        usage.get("completion_tokens", usage.get("output_tokens"))
    )
