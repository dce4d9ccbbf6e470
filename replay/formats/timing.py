"""Logs of times and lengths alone: access logs of nginx and Envoy, and public traces. They make schedules, not questions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from replay.exchange import JSON
from replay.formats.record import (
    Call,
    Item,
    Record,
    Reply,
    Skip,
    Unusable,
    Use,
    count,
    made,
    moment,
    number,
    parsed,
    text,
)
from replay.formats.sources import Source

_MODEL_PATHS = ("/completions", "/responses", "/messages", "/embeddings")
AZURE = ("TIMESTAMP", "ContextTokens", "GeneratedTokens")
BURSTGPT = ("Timestamp", "Request tokens", "Response tokens", "Log Type")


def is_access_log(first: JSON) -> bool:
    """Whether a first record is a line of nginx's or Envoy's log."""
    return bool({"request_time", "upstream_response_time"} & first.keys()) or bool(
        {"response_flags", "start_time"} & first.keys()
    )


def is_mooncake(first: JSON) -> bool:
    """Whether a first record is one of a Mooncake trace."""
    return {"hash_ids", "input_length"} <= first.keys()


def read_access_log(sources: Sequence[Source]) -> Iterator[Item]:
    """Each line of each source."""
    for source in sources:
        for line, data in source.lines():
            try:
                row = parsed(data)
                envoy = "request_time" not in row and "msec" not in row and "time_iso8601" not in row
                yield (_envoy if envoy else _nginx)(line, row)
            except Unusable as why:
                yield Skip(line=line, reason=why.reason, detail=why.detail)


def _nginx(line: int, row: JSON) -> Record:
    """The log's time is the end of the request."""
    notes: set[str] = set()
    method, path = _asked(row)
    end = moment(number(row.get("msec")) or row.get("time_iso8601") or row.get("time"), notes)
    duration = number(row.get("request_time"))
    if end is None or duration is None:
        raise Unusable("malformed", "no time" if end is None else "no request_time")
    status = number(row.get("status"))
    return _timed(
        line,
        method,
        path,
        notes,
        status=None if status in (None, 0.0, 499.0) else int(status or 0),
        captured_at=round(end - duration, 6),
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
    status, duration, first = (
        number(row.get(key)) for key in ("response_code", "duration", "response_duration")
    )
    return _timed(
        line,
        method,
        path,
        notes,
        status=None if status in (None, 0.0) else int(status or 0),
        captured_at=start,
        duration_s=None if duration is None else duration / 1000,
        ttfb_s=None if first is None else first / 1000,
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
        raise Unusable("not-a-model-call", f"{method} {path}")
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
    parts = [number(part.strip()) for part in str(value or "").replace(":", ",").split(",")]
    known = [part for part in parts if part is not None]
    return round(sum(known), 6) if known else None


def read_azure(sources: Sequence[Source]) -> Iterator[Item]:
    """Azure's public inference traces."""
    for source in sources:
        origin: float | None = None
        for line, row in source.rows():
            missing = [name for name in AZURE if row.get(name) is None]
            notes: set[str] = set()
            at = moment(row.get("TIMESTAMP"), notes)
            tokens = number(row.get("ContextTokens"))
            if missing:
                yield Skip(
                    line=line,
                    reason="malformed",
                    detail=f"{len(AZURE) - len(missing)} of {len(AZURE)} columns",
                )
            elif at is None or not tokens or tokens <= 0:
                detail = "no time" if at is None else f"ContextTokens {row['ContextTokens']}"
                yield Skip(line=line, reason="malformed", detail=detail)
            else:
                origin = at if origin is None else origin
                yield Record(
                    line=line,
                    use=Use.TIMING,
                    captured_at=at,
                    offset_s=round(at - origin, 6),
                    input_tokens=int(tokens),
                    output_tokens=count(row["GeneratedTokens"]),
                    notes=tuple(sorted(notes)),
                )


def read_mooncake(sources: Sequence[Source]) -> Iterator[Item]:
    """Mooncake's traces: milliseconds from the start."""
    for source in sources:
        for line, data in source.lines():
            try:
                yield _mooncake(line, parsed(data))
            except Unusable as why:
                yield Skip(line=line, reason=why.reason, detail=why.detail)


def _mooncake(line: int, row: JSON) -> Record:
    at, length = number(row.get("timestamp")), count(row.get("input_length"))
    if at is None or length is None:
        raise Unusable(
            "malformed", "no timestamp" if at is None else f"input_length {row.get('input_length')}"
        )
    return Record(
        line=line,
        use=Use.TIMING,
        offset_s=at / 1000,
        input_tokens=length,
        output_tokens=count(row.get("output_length")),
    )


def read_burstgpt(sources: Sequence[Source]) -> Iterator[Item]:
    """BurstGPT: seconds from an origin; no response tokens means that the call failed."""
    for source in sources:
        origin: float | None = None
        for line, row in source.rows():
            at, length = number(row.get("Timestamp")), count(row.get("Request tokens"))
            if at is None or length is None:
                detail = "no Timestamp" if at is None else f"Request tokens {row.get('Request tokens')}"
                yield Skip(line=line, reason="malformed", detail=detail)
                continue
            origin = at if origin is None else origin
            output = count(row.get("Response tokens"))
            yield Record(
                line=line,
                use=Use.TIMING,
                offset_s=round(at - origin, 6),
                duration_s=number(row.get("Elapsed time")),
                session=text(row.get("Session ID")),
                model=text(row.get("Model")),
                input_tokens=length,
                output_tokens=output,
                notes=() if output else ("response-missing",),
            )
