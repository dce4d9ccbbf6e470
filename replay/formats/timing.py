"""Logs of times and lengths alone: access logs of nginx and Envoy, and public traces. They make schedules, not questions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from replay.exchange import JSON
from replay.formats.fields import Unusable, count, lasting, moment, number, seconds, status_of, text
from replay.formats.record import Call, Item, Record, Reply, Use, each, made
from replay.formats.sources import Source

_MODEL_PATHS = ("/completions", "/responses", "/messages", "/embeddings")
AZURE = frozenset(("TIMESTAMP", "ContextTokens", "GeneratedTokens"))
BURSTGPT = frozenset(("Timestamp", "Request tokens", "Response tokens", "Log Type"))


def is_access_log(first: JSON) -> bool:
    """Whether a first record is a line of nginx's or Envoy's log."""
    envoy = {"response_code", "response_flags", "duration"} & first.keys()
    return bool({"request_time", "upstream_response_time"} & first.keys()) or (
        "response_flags" in first or ("start_time" in first and bool(envoy))
    )


def is_mooncake(first: JSON) -> bool:
    """Whether a first record is one of a Mooncake trace."""
    return {"hash_ids", "input_length"} <= first.keys()


def read_access_log(sources: Sequence[Source]) -> Iterator[Item]:
    """Each line of each source."""
    for source in sources:
        yield from each(source.lines(), _access)


def _access(line: int, row: JSON) -> Record:
    envoy = "request_time" not in row and "msec" not in row and "time_iso8601" not in row
    return (_envoy if envoy else _nginx)(line, row)


def _nginx(line: int, row: JSON) -> Record:
    """The log's time is the end of the request; status 499 says that the client left."""
    notes: set[str] = set()
    method, path = _asked(row)
    end = moment(number(row.get("msec")) or row.get("time_iso8601") or row.get("time"), notes)
    duration = lasting(row.get("request_time"))
    if end is None or duration is None:
        raise Unusable("malformed", "no time" if end is None else "no request_time")
    status = status_of(row.get("status"))
    return _timed(
        line,
        method,
        path,
        notes,
        status=None if status == 499 else status,
        captured_at=round(max(end - duration, 0.0), 6),
        duration_s=duration,
        ttfb_s=_added(row.get("upstream_header_time")),
        trace=text(row.get("request_id")),
    )


def _envoy(line: int, row: JSON) -> Record:
    notes: set[str] = set()
    start = moment(row.get("start_time"), notes)
    if start is None:
        raise Unusable("malformed", "no start_time")
    method, path = _asked(row)
    return _timed(
        line,
        method,
        path,
        notes,
        status=status_of(row.get("response_code")),
        captured_at=start,
        duration_s=seconds(row.get("duration")),
        ttfb_s=seconds(row.get("response_duration")),
        trace=text(row.get("request_id")) or text(row.get("x-request-id")) or text(row.get("x_request_id")),
    )


def _asked(row: JSON) -> tuple[str, str]:
    words = str(row.get("request") or "").split(" ")
    method = text(row.get("request_method")) or text(row.get("method")) or words[0]
    path = (
        text(row.get("request_uri"))
        or text(row.get("uri"))
        or text(row.get("path"))
        or (words[1] if words[1:] else "")
    )
    if method != "POST" or not path.partition("?")[0].endswith(_MODEL_PATHS):
        raise Unusable("not-a-model-call", f"{method} {path.partition('?')[0]}")
    return method, path


def _timed(line: int, method: str, path: str, notes: set[str], *, status: int | None, **times: Any) -> Record:
    return made(
        line,
        use=Use.TIMING,
        request=Call(method=method, path=path),
        response=None if status is None else Reply(status=status),
        notes=notes,
        **times,
    )


def _added(value: Any) -> float | None:
    """Seconds up to the first byte; a list is one entry for each upstream that was tried, one after the other."""
    parts = [lasting(part.strip()) for part in str(value or "").replace(":", ",").split(",")]
    known = [part for part in parts if part is not None]
    return round(sum(known), 6) if known else None


def read_azure(sources: Sequence[Source]) -> Iterator[Item]:
    """Azure's public inference traces."""
    for source in sources:
        yield from each(source.rows(), _Azure())


def read_mooncake(sources: Sequence[Source]) -> Iterator[Item]:
    """Mooncake's traces: milliseconds from the start."""
    for source in sources:
        yield from each(source.lines(), _mooncake)


def read_burstgpt(sources: Sequence[Source]) -> Iterator[Item]:
    """BurstGPT: seconds from an origin; no response tokens means that the call failed."""
    for source in sources:
        yield from each(source.rows(), _BurstGPT())


class _Azure:
    """The rows of one trace, whose start is that of the first."""

    def __init__(self) -> None:
        self._origin: float | None = None

    def __call__(self, line: int, row: JSON) -> Record:
        if missing := [name for name in AZURE if row.get(name) is None]:
            raise Unusable("malformed", f"{len(AZURE) - len(missing)} of {len(AZURE)} columns")
        notes: set[str] = set()
        at, tokens = moment(row["TIMESTAMP"], notes), count(row["ContextTokens"])
        if at is None or tokens is None:
            raise Unusable("malformed", "no time" if at is None else f"ContextTokens {row['ContextTokens']}")
        self._origin = at if self._origin is None else self._origin
        return Record(
            line=line,
            use=Use.TIMING,
            captured_at=at,
            offset_s=round(at - self._origin, 6),
            input_tokens=tokens,
            output_tokens=count(row["GeneratedTokens"]),
            notes=tuple(sorted(notes)),
        )


class _BurstGPT:
    """The rows of one trace, whose start is that of the first."""

    def __init__(self) -> None:
        self._origin: float | None = None

    def __call__(self, line: int, row: JSON) -> Record:
        at, tokens = number(row.get("Timestamp")), count(row.get("Request tokens"))
        if at is None or tokens is None:
            raise Unusable(
                "malformed", "no Timestamp" if at is None else f"Request tokens {row.get('Request tokens')}"
            )
        self._origin = at if self._origin is None else self._origin
        output = count(row.get("Response tokens"))
        return Record(
            line=line,
            use=Use.TIMING,
            offset_s=round(at - self._origin, 6),
            duration_s=lasting(row.get("Elapsed time")),
            session=text(row.get("Session ID")),
            model=text(row.get("Model")),
            input_tokens=tokens,
            output_tokens=output,
            notes=() if output else ("response-missing",),
        )


def _mooncake(line: int, row: JSON) -> Record:
    at, tokens = number(row.get("timestamp")), count(row.get("input_length"))
    if at is None or tokens is None:
        raise Unusable(
            "malformed", "no timestamp" if at is None else f"input_length {row.get('input_length')}"
        )
    return Record(
        line=line,
        use=Use.TIMING,
        offset_s=at / 1000,
        input_tokens=tokens,
        output_tokens=count(row.get("output_length")),
    )
