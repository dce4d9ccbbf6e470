"""From a recording to an observation: content coding, kind of body, assembly by interface, timing, outcome, and what was odd."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

import orjson

from replay import embeddings, messages, responses
from replay.coding import Chunks, joined, plain
from replay.completion import Completion
from replay.exchange import (
    JSON,
    Answer,
    Arm,
    Ending,
    ErrorClass,
    Failure,
    Observation,
    Oddity,
    Outcome,
    Recording,
    Timing,
)
from replay.failures import classify, envelope_of, http_failure, transport_failure
from replay.oddities import Oddities
from replay.sse import Decoder
from replay.values import may_be_deep, too_deep

GENERATION_PATHS = ("/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/messages")
_TELLING = 64
"""Bytes by which a body is told to be a stream."""
LARGE_EVENT = 64 * 1024
"""Line readers of several clients give up beyond this."""
_MALFORMED = Failure(
    outcome=Outcome.PROTOCOL_ERROR, error_class=ErrorClass.MALFORMED, message="", status=None, retryable=False
)
_JSON_KINDS = ("application/json", "application/problem+json", "text/json")

Assembler = Completion | responses.Responses | messages.Messages


@dataclass(frozen=True, slots=True, kw_only=True)
class _Decoded:
    """What the body held; times are clock readings, not yet relative."""

    answer: Answer | None = None
    failure: Failure | None = None
    token_times: tuple[float, ...] = ()
    counted_at: float | None = None
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
    chunks, problem = plain(recording.chunks, header(recording, "content-encoding"))
    decoded = _decode(recording, chunks, problem, path)
    failure = _failure(recording, decoded, chunks, at)
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
        raw=joined(recording.chunks) if recording.chunks else None,
    )


def _failure(recording: Recording, decoded: _Decoded, chunks: Chunks, at: float) -> Failure | None:
    """The transport's verdict first, unless the answer was whole already, or had said what went wrong, when it broke."""
    if recording.status is not None and recording.status >= 400:
        return http_failure(recording.status, recording.headers, joined(chunks), now=at)
    told = decoded.failure is not None and decoded.failure.code == "error.mid_stream"
    if recording.ending is not Ending.COMPLETE and decoded.complete_at is None and not told:
        return transport_failure(recording)
    return decoded.failure or (classify(recording, now=at) if decoded.complete_at is None else None)


def _timing(recording: Recording, decoded: _Decoded, failure: Failure | None) -> Timing:
    start = recording.sent_at
    times = tuple(at - start for at in decoded.token_times) if decoded.streamed else ()
    last = recording.chunks[-1][0] if recording.chunks and failure is None else recording.ended_at
    return Timing(
        head_s=None if recording.head_at is None else recording.head_at - start,
        ttft_s=times[0] if times else None,
        e2e_s=(last if decoded.complete_at is None else decoded.complete_at) - start,
        generated_s=None if decoded.counted_at is None else decoded.counted_at - start,
        connect_s=recording.connect_s,
        content_times=times,
    )


def _decode(recording: Recording, chunks: Chunks, problem: str, path: str) -> _Decoded:
    if recording.status is None or recording.status >= 400:
        return _Decoded()
    if problem and not chunks:
        return _Decoded(failure=_malformed(recording, problem, code="envelope.coding"))
    decoded = _decode_plain(recording, chunks, path)
    if problem and recording.ending is Ending.COMPLETE:
        return _badly_coded(recording, decoded, problem)
    return decoded


def _badly_coded(recording: Recording, decoded: _Decoded, problem: str) -> _Decoded:
    """A whole answer in a coding that does not end as it should is one; anything less is the coding's fault."""
    if decoded.failure is not None or decoded.answer is None:
        return replace(
            decoded, failure=_malformed(recording, problem, code="envelope.coding"), complete_at=None
        )
    odd = Oddity(code="envelope.coding_end", evidence=problem)
    return replace(decoded, answer=replace(decoded.answer, oddities=(*decoded.answer.oddities, odd)))


def _decode_plain(recording: Recording, chunks: Chunks, path: str) -> _Decoded:
    kind = (header(recording, "content-type") or "").partition(";")[0].strip()
    if not any(data for _, data in chunks):
        return _empty(recording, path)
    odd = Oddities()
    if _is_stream(kind, chunks):
        if kind != "text/event-stream":
            odd.add("stream.content_type", kind or "no content type")
        return _Stream(odd, path).decode(recording, chunks)
    return _decode_body(recording, joined(chunks), kind, path, odd)


def _empty(recording: Recording, path: str) -> _Decoded:
    """No body. What was asked for was text, so that 204 and redirects are no answers either."""
    if recording.ending is not Ending.COMPLETE or not generates(path):
        return _Decoded()
    return _Decoded(
        failure=_malformed(recording, f"HTTP {recording.status} with an empty body", code="envelope.empty")
    )


def _is_stream(kind: str, chunks: Chunks) -> bool:
    """What the first bytes look like; the content type only decides where they could be either."""
    start = _start(chunks).removeprefix(b"\xef\xbb\xbf").lstrip()
    if start.startswith((b"data:", b"event:", b"id:", b"retry:")):
        return True
    if start.startswith(b":"):
        return kind not in _JSON_KINDS
    return kind == "text/event-stream" and not start.startswith((b"{", b"["))


def _start(chunks: Chunks) -> bytes:
    """The first bytes that are no white space, however they were cut, and a few more."""
    start = b""
    for _, data in chunks:
        start = (start + data).lstrip() if not start.strip(b"\xef\xbb\xbf \r\n\t") else start + data
        if len(start) >= _TELLING:
            break
    return start[:_TELLING]


class _Stream:
    """The events of one streamed answer, taken in order."""

    __slots__ = (
        "assembler",
        "broken",
        "counted_at",
        "decoder",
        "done_at",
        "finish_at",
        "largest",
        "odd",
        "path",
        "times",
    )

    def __init__(self, odd: Oddities, path: str) -> None:
        self.odd = odd
        self.path = path
        self.decoder = Decoder()
        self.assembler: Assembler | None = None
        self.times: list[float] = []
        self.done_at: float | None = None
        self.finish_at: float | None = None
        self.counted_at: float | None = None
        self.broken: bytes | None = None
        self.largest = 0

    def decode(self, recording: Recording, chunks: Chunks) -> _Decoded:
        feed, loads, take = self.decoder.feed, orjson.loads, self.times.append
        quick = _never
        for at, read in chunks:
            for data, name in feed(read):
                try:
                    chunk = loads(data)
                except orjson.JSONDecodeError:
                    chunk = None
                if not name and len(data) <= LARGE_EVENT and quick(chunk):
                    take(at)
                    continue
                self._event(at, data, name, chunk)
                over = self.assembler is None or self.done_at is not None
                quick = _never if over else self.assembler.quick  # type: ignore[union-attr]
        if (cut := self.decoder.end()) is not None:
            self._cut(chunks[-1][0], cut[0])
        self._peculiar()
        self._error_line()
        broken = self._failure(recording)
        answer = (self.assembler or Completion(self.odd)).finish(recording.status)
        failure = broken
        if answer.error:
            failure = replace(answer.error, status=recording.status, code="error.mid_stream")
        elif failure is None and not answer.choices and generates(self.path):
            failure = _malformed(recording, "stream holds no choices", code="envelope.choices_missing")
        return _Decoded(
            answer=replace(answer, error=failure if answer.error else None, streamed=True),
            failure=failure,
            token_times=tuple(self.times),
            counted_at=self.counted_at,
            streamed=True,
            complete_at=self._complete_at if failure is None else None,
        )

    @property
    def _complete_at(self) -> float | None:
        return self.finish_at if self.done_at is None else self.done_at

    def _event(self, at: float, data: bytes, name: bytes, chunk: Any) -> None:
        """One event with all that may be in it. ``chunk`` is its JSON, where it was plain JSON."""
        self.odd.event = data
        self.largest = max(self.largest, len(data))
        if data.strip() == b"[DONE]":
            self.done_at = at if self.done_at is None else self.done_at
            return
        if self.done_at is not None:
            self.odd.add("stream.data_after_done")
            return
        if not isinstance(chunk, dict):
            chunk = loose(data, self.odd)
        if chunk is None or too_deep(chunk):
            if not data.strip():
                self.odd.add("stream.empty_event", name)
                return
            self.broken = self.broken or data[:200]
            self.odd.add("stream.non_json_data_event")
            return
        if self.assembler is None and chunk.get("type") in _SIGNS_OF_LIFE:
            return  # belongs to any interface
        assembler = self.assembler = self.assembler or assembler_for(chunk, self.odd)
        if assembler.feed(chunk, name):
            self.times.append(at)
        if assembler.counted and self.counted_at is None:
            self.counted_at = at
        if not assembler.finished:
            self.finish_at = None  # a further choice has begun
        elif self.finish_at is None:
            self.finish_at = at

    def _cut(self, at: float, data: bytes) -> None:
        """An event without its closing blank line: a strict client never sees it, but ``[DONE]`` still tells the end."""
        self.odd.add("stream.cut_event", data)
        if data.strip() == b"[DONE]" and self.done_at is None:
            self.done_at = at

    def _peculiar(self) -> None:
        """What the framing showed, which some client or other stumbles over."""
        decoder = self.decoder
        for seen, code in (
            (decoder.comments, "stream.comments"),
            (decoder.joined, "client_risk.multi_line_data"),
            (decoder.marked, "client_risk.byte_order_mark"),
        ):
            if seen:
                self.odd.add(code, f"{int(seen)} times")
        if decoder.empty:
            self.odd.add("stream.empty_event", f"{decoder.empty} events with fields and no data")
        if decoder.unknown is not None:
            self.odd.add("stream.unknown_field", decoder.unknown)
        if decoder.too_long:
            self.odd.add("stream.too_long", f"{decoder.too_long} events")
        if self.largest > LARGE_EVENT:
            self.odd.add("client_risk.large_event", f"{self.largest} bytes")

    def _error_line(self) -> None:
        """``error: {…}``, a field of its own that some servers use."""
        line = self.decoder.unknown
        told = parse_object(line[6:]) if line is not None and line.startswith(b"error:") else None
        if told is not None:
            self.odd.event = line or b""
            self.assembler = self.assembler or Completion(self.odd)
            self.assembler.feed({"error": told})

    def _failure(self, recording: Recording) -> Failure | None:
        """Why this is no whole answer; None when it is."""
        if (
            self.assembler is None
            and self.broken is None
            and self.done_at is None
            and self.decoder.unknown is not None
        ):
            words = (
                f"the answer is no stream of events: {self.decoder.unknown[:120].decode(errors='replace')}"
            )
            return _malformed(recording, words, code="envelope.not_json")
        assembler = self.assembler
        if assembler is not None and assembler.failure is not None:
            return None  # the error says it better
        if self.broken is not None:
            words = f"stream event is not JSON: {self.broken.decode(errors='replace')}"
            return _malformed(recording, words, code="stream.non_json_data_event")
        if self._complete_at is None:
            words = "stream ended without a finish reason or [DONE]"
            return _malformed(recording, words, ErrorClass.RESET, code="stream.truncated")
        if self.done_at is None and isinstance(assembler, Completion):
            self.odd.add("stream.done_missing", "")
        elif isinstance(assembler, Completion) and not assembler.finished:
            self.odd.add("finish.missing", "[DONE]")
        return None


_SIGNS_OF_LIFE = ("ping", "keepalive")


def _never(chunk: Any) -> bool:
    return False


def assembler_for(chunk: JSON, odd: Oddities) -> Assembler:
    """The reader of the interface that an object belongs to; errors and everything unknown go to chat completions."""
    if responses.speaks(chunk):
        return responses.Responses(odd)
    if messages.speaks(chunk):
        return messages.Messages(odd)
    return Completion(odd)


def _decode_body(recording: Recording, body: bytes, kind: str, path: str, odd: Oddities) -> _Decoded:
    odd.event = body
    value = parse_object(body, odd) or _listed_error(body)
    if value is None:
        if not generates(path):
            return _Decoded(answer=Answer(oddities=odd.all()) if odd.all() else None)
        shape = envelope_of(None, body)
        what = {"html": "an HTML page", "text": "text"}.get(shape, "no JSON object")
        failure = _malformed(
            recording, f"the answer is {what}, not JSON: {body[:120].decode(errors='replace')}"
        )
        return _Decoded(failure=replace(failure, code="envelope.not_json", envelope=shape))
    if kind and kind not in _JSON_KINDS and not kind.endswith("+json"):
        odd.add("envelope.content_type", kind)
    if embeddings.speaks(value):
        return _Decoded(answer=embeddings.read(value, odd))
    assembler = assembler_for(value, odd)
    assembler.feed(value)
    answer = assembler.finish(recording.status)
    if answer.error is not None:
        error = replace(answer.error, status=recording.status)
        return _Decoded(answer=replace(answer, error=error), failure=error)
    if generates(path) and not answer.choices:
        missing = _malformed(recording, "answer holds no choices", code="envelope.choices_missing")
        return _Decoded(answer=answer, failure=missing)
    if answer.choices and not all(choice.finish_reason for choice in answer.choices):
        missing_finish = Oddity(code="finish.missing", evidence="finish_reason: null")
        answer = replace(answer, oddities=(*answer.oddities, missing_finish))
    return _Decoded(answer=answer)


def _listed_error(body: bytes) -> JSON | None:
    """An error object in a list, as some relays wrap it."""
    if not body.lstrip().startswith(b"["):
        return None
    inner = parse_object(b'{"list":' + body + b"}")
    first = inner["list"][0] if inner and isinstance(inner["list"], list) and inner["list"] else None
    return first if isinstance(first, dict) and first.get("error") else None


def parse_object(data: bytes, odd: Oddities | None = None) -> JSON | None:
    """The JSON object in ``data``, NaN and infinities tolerated; ``None`` when it is something else or nested too deeply."""
    try:
        value: Any = orjson.loads(data)
    except orjson.JSONDecodeError:
        value = loose(data, odd or Oddities())
    return value if isinstance(value, dict) and not (may_be_deep(data) and too_deep(value)) else None


def loose(data: bytes, odd: Oddities) -> JSON | None:
    """The object in what is almost JSON: numbers that JSON does not know, bytes that are not UTF-8, a byte-order mark."""
    text = data.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace")
    try:
        value = json.loads(text, parse_constant=lambda word: odd.add("envelope.nonstandard_number", word))
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    if "\ufffd" in text and not _is_utf8(data):
        odd.add("text.invalid_utf8")
    return value


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def header(recording: Recording, name: str) -> str | None:
    """The first value of a header, lower-cased; ``None`` when absent."""
    return next((value.lower() for key, value in recording.headers if key.lower() == name), None)


def generates(path: str) -> bool:
    """Whether requests to that path ask for generated text."""
    return path.partition("?")[0].endswith(GENERATION_PATHS)


def _malformed(
    recording: Recording, message: str, error_class: ErrorClass = ErrorClass.MALFORMED, *, code: str = ""
) -> Failure:
    return replace(
        _MALFORMED,
        message=message[:500],
        status=recording.status,
        error_class=error_class,
        code=code,
    )
