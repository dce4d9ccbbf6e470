"""From a recording to an observation: content codings, the kind of body, assembly, timing and the outcome."""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass, replace
from typing import Any

import orjson

from replay.completion import Assembler
from replay.exchange import (
    JSON,
    Answer,
    Arm,
    Ending,
    ErrorClass,
    Failure,
    Observation,
    Outcome,
    Recording,
    Timing,
)
from replay.failures import classify, http_failure, transport_failure
from replay.nesting import too_deep
from replay.sse import Decoder, Event

Chunks = tuple[tuple[float, bytes], ...]

GENERATION_PATHS = ("/v1/chat/completions", "/v1/completions")
_MAX_BODY = 64 * 2**20
_MALFORMED = Failure(
    outcome=Outcome.PROTOCOL_ERROR, error_class=ErrorClass.MALFORMED, message="", status=None, retryable=False
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Decoded:
    """What the body held; times are clock readings, not yet relative."""

    answer: Answer | None = None
    failure: Failure | None = None
    token_times: tuple[float, ...] = ()
    streamed: bool = False
    complete_at: float | None = None


def observe(
    recording: Recording,
    *,
    request_id: str,
    arm: Arm,
    at: float,
    path: str,
    earlier: tuple[Failure, ...] = (),
) -> Observation:
    """The observation that a recording amounts to. Never raises, whatever the bytes.

    ``at``: epoch seconds of the dispatch. ``path``: the request's path, which says what a good answer has to hold.
    """
    decoded = _decode(recording, path)
    failure = _failure(recording, decoded, at)
    if recording.ending is Ending.OVERSIZE and arm is not Arm.CANDIDATE:
        outcome, reason = Outcome.MIRROR_DROPPED, "answer_too_large"
    else:
        outcome, reason = (failure.outcome, failure.error_class.value) if failure else (Outcome.OK, "")
    return Observation(
        request_id=request_id,
        arm=arm,
        at=at,
        outcome=outcome,
        reason=reason,
        status=recording.status,
        headers=recording.headers,
        answer=decoded.answer,
        failure=failure,
        timing=_timing(recording, decoded, failure),
        earlier=earlier,
        raw=b"".join(data for _, data in recording.chunks) if recording.chunks else None,
    )


def _failure(recording: Recording, decoded: _Decoded, at: float) -> Failure | None:
    """The transport's verdict first, unless the answer was already whole when the transport broke."""
    if recording.status is not None and recording.status >= 400:
        body = b"".join(data for _, data in _plain(recording) or ())
        return http_failure(recording.status, recording.headers, body, now=at)
    if recording.ending is not Ending.COMPLETE and decoded.complete_at is None:
        return transport_failure(recording)
    return decoded.failure or (classify(recording, now=at) if decoded.complete_at is None else None)


def _timing(recording: Recording, decoded: _Decoded, failure: Failure | None) -> Timing:
    start = recording.sent_at
    times = tuple(at - start for at in decoded.token_times)
    last = recording.chunks[-1][0] if recording.chunks and failure is None else recording.ended_at
    return Timing(
        head_s=None if recording.head_at is None else recording.head_at - start,
        ttft_s=times[0] if times and decoded.streamed else None,
        e2e_s=(last if decoded.complete_at is None else decoded.complete_at) - start,
        content_times=times if decoded.streamed else (),
    )


def _decode(recording: Recording, path: str) -> _Decoded:
    if recording.status is None or recording.status >= 400 or not recording.chunks:
        return _empty(recording, path)
    chunks = _plain(recording)
    if chunks is None:
        return _Decoded(failure=_malformed(recording, "body does not match its content-encoding"))
    if _is_stream(recording, chunks):
        return _decode_stream(recording, chunks)
    return _decode_body(recording, chunks, path)


def _empty(recording: Recording, path: str) -> _Decoded:
    wanted = recording.ending is Ending.COMPLETE and recording.status == 200 and _generates(path)
    return _Decoded(failure=_malformed(recording, "empty body") if wanted else None)


def _is_stream(recording: Recording, chunks: Chunks) -> bool:
    kind = header(recording, "content-type") or ""
    return kind.startswith("text/event-stream") or (
        not kind and chunks[0][1].startswith((b"data:", b":", b"event:"))
    )


def _decode_stream(recording: Recording, chunks: Chunks) -> _Decoded:
    stream = _Stream()
    decoder = Decoder()
    for at, data in chunks:
        for event in decoder.feed(data):
            stream.event(at, event)
    if (cut := decoder.end()) is not None:
        stream.cut(chunks[-1][0], cut)
    if decoder.comments:
        stream.assembler.odd("stream.comments")
    broken = stream.failure(recording)
    answer = stream.assembler.finish(recording.status)
    failure = answer.error or broken
    complete_at = stream.complete_at if failure is None else None
    return _Decoded(
        answer=answer,
        failure=failure,
        token_times=tuple(stream.times),
        streamed=True,
        complete_at=complete_at,
    )


class _Stream:
    """The events of one streamed answer, taken in order."""

    __slots__ = ("assembler", "broken", "done_at", "finish_at", "times")

    def __init__(self) -> None:
        self.assembler = Assembler()
        self.times: list[float] = []
        self.done_at: float | None = None
        self.finish_at: float | None = None
        self.broken: bytes | None = None

    @property
    def complete_at(self) -> float | None:
        return self.finish_at if self.done_at is None else self.done_at

    def event(self, at: float, event: Event) -> None:
        if event.data == b"[DONE]":
            self.done_at = at
            return
        if self.done_at is not None:
            self.assembler.odd("stream.data_after_done")
            return
        chunk = parse_object(event.data)
        if chunk is None:
            self.broken = self.broken or event.data[:200]
            self.assembler.odd("stream.non_json_data_event")
            return
        if self.assembler.feed(chunk):
            self.times.append(at)
        if not self.assembler.finished:
            self.finish_at = None  # a further choice has begun
        elif self.finish_at is None:
            self.finish_at = at

    def cut(self, at: float, event: Event) -> None:
        """An event without its closing blank line: a strict client never sees it, but ``[DONE]`` still tells the end."""
        self.assembler.odd("stream.cut_event")
        if event.data == b"[DONE]":
            self.done_at = at

    def failure(self, recording: Recording) -> Failure | None:
        if self.broken is not None:
            return _malformed(recording, f"stream event is not JSON: {self.broken.decode(errors='replace')}")
        if self.complete_at is None:
            return _malformed(recording, "stream ended without a finish reason or [DONE]", ErrorClass.RESET)
        if self.done_at is None:
            self.assembler.odd("stream.done_missing")
        return None


def _decode_body(recording: Recording, chunks: Chunks, path: str) -> _Decoded:
    body = b"".join(data for _, data in chunks)
    value = parse_object(body)
    if value is None:
        return _Decoded(
            failure=_malformed(recording, "body is not a JSON object") if _generates(path) else None
        )
    assembler = Assembler()
    assembler.feed(value)
    answer = assembler.finish(recording.status)
    failure = answer.error
    if failure is None and _generates(path) and not answer.choices:
        failure = _malformed(recording, "answer holds no choices")
    return _Decoded(answer=answer, failure=failure)


def parse_object(data: bytes) -> JSON | None:
    """The JSON object in ``data``, NaN and infinities tolerated; ``None`` when it is something else or nested too deeply."""
    value: Any
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError:
        try:
            value = json.loads(data)
        except (ValueError, RecursionError):
            return None
    return value if isinstance(value, dict) and not too_deep(value) else None


def header(recording: Recording, name: str) -> str | None:
    """The first value of a header, lower-cased; ``None`` when absent."""
    return next((value.lower() for key, value in recording.headers if key.lower() == name), None)


def _plain(recording: Recording) -> Chunks | None:
    """The chunks without their content coding, each with its own arrival time; ``None`` when they do not decode."""
    coding = (header(recording, "content-encoding") or "identity").strip()
    if coding == "identity":
        return recording.chunks
    if coding not in ("gzip", "x-gzip", "deflate"):
        return None
    inflater = zlib.decompressobj(wbits=47)
    plain, left = [], _MAX_BODY
    try:
        for at, data in recording.chunks:
            piece = inflater.decompress(data, left)
            left -= len(piece)
            if left <= 0:
                return None
            plain.append((at, piece))
    except zlib.error:
        return None
    return tuple(plain)


def _generates(path: str) -> bool:
    return path.partition("?")[0].endswith(GENERATION_PATHS)


def _malformed(recording: Recording, message: str, error_class: ErrorClass = ErrorClass.MALFORMED) -> Failure:
    return replace(_MALFORMED, message=message, status=recording.status, error_class=error_class)
