"""One classification of everything that can go wrong with a request, whatever the dialect of the server that says it."""

from __future__ import annotations

import math
from email.utils import parsedate_to_datetime
from typing import Any

import orjson

from replay.exchange import JSON, Ending, ErrorClass, Failure, Headers, Outcome, Recording

_OVERFLOW_WORDS = (
    "context length",
    "maximum context",
    "longer than this model",
    "max_seq_len",
    "max_num_tokens",
    "too long",
)
_BY_STATUS = {
    401: ErrorClass.AUTH,
    403: ErrorClass.AUTH,
    404: ErrorClass.NOT_FOUND,
    408: ErrorClass.TIMEOUT,
    413: ErrorClass.CONTEXT_OVERFLOW,
    429: ErrorClass.RATE_LIMITED,
    502: ErrorClass.GATEWAY,
    503: ErrorClass.OVERLOADED,
    504: ErrorClass.GATEWAY,
    529: ErrorClass.OVERLOADED,
}
_RETRYABLE = frozenset(
    {
        ErrorClass.RATE_LIMITED,
        ErrorClass.OVERLOADED,
        ErrorClass.GATEWAY,
        ErrorClass.CONNECT,
        ErrorClass.RESET,
        ErrorClass.SERVER,
    }
)
_ENDINGS = {
    Ending.CONNECT_FAILED: (Outcome.CONNECT_ERROR, ErrorClass.CONNECT, "no connection"),
    Ending.TIMEOUT: (Outcome.TIMEOUT, ErrorClass.TIMEOUT, "time limit passed"),
    Ending.RESET: (
        Outcome.PROTOCOL_ERROR,
        ErrorClass.RESET,
        "connection broke before the answer was complete",
    ),
    Ending.OVERSIZE: (Outcome.PROTOCOL_ERROR, ErrorClass.MALFORMED, "answer larger than the limit"),
    Ending.CLIENT_LEFT: (Outcome.CLIENT_CANCELLED, ErrorClass.RESET, "the client left"),
}


def classify(recording: Recording, *, now: float) -> Failure | None:
    """The failure that the transport and the status line show; ``None`` when both look well.

    ``now``: epoch seconds, to turn a Retry-After date into a delay. An error inside a 200 is found by decoding.
    """
    if recording.ending is not Ending.COMPLETE:
        return transport_failure(recording)
    if recording.status is not None and recording.status >= 400:
        body = b"".join(data for _, data in recording.chunks)
        return http_failure(recording.status, recording.headers, body, now=now)
    return None


def transport_failure(recording: Recording) -> Failure:
    """The failure of an exchange that did not end well."""
    outcome, error_class, message = _ENDINGS[recording.ending]
    return Failure(
        outcome=outcome,
        error_class=error_class,
        message=recording.detail or message,
        status=recording.status,
        retryable=error_class in _RETRYABLE and not recording.chunks,
    )


def http_failure(status: int, headers: Headers, body: bytes, *, now: float) -> Failure:
    """The failure behind an error status, from any envelope: OpenAI's, a flat one, a bare string, HTML or nothing."""
    envelope = _object(body)
    message = error_message(envelope) or f"HTTP {status} without an error message"
    html = envelope is None and b"<html" in body[:1024].lower()
    error_class = ErrorClass.GATEWAY if html and status >= 500 else class_of(status, message, envelope)
    return Failure(
        outcome=Outcome.HTTP_ERROR,
        error_class=error_class,
        message=message[:500],
        status=status,
        retryable=error_class in _RETRYABLE,
        retry_after_s=retry_after(headers, now=now),
    )


def body_failure(envelope: JSON, status: int | None) -> Failure:
    """The failure behind an error object in the body of an answer whose status line said 200."""
    message = error_message(envelope) or "error without a message"
    inner = envelope.get("error")
    code = inner.get("code") if isinstance(inner, dict) else envelope.get("code")
    stated = (
        int(code)
        if isinstance(code, int | str)
        and str(code)[:4].isascii()
        and str(code)[:4].isdigit()
        and len(str(code)) == 3
        else 500
    )
    error_class = class_of(stated, message, envelope)
    return Failure(
        outcome=Outcome.HTTP_ERROR,
        error_class=error_class,
        message=message[:500],
        status=status,
        retryable=error_class in _RETRYABLE,
    )


def class_of(status: int, message: str, envelope: JSON | None) -> ErrorClass:
    """The class of an error status; wording only decides where the status is shared by several causes."""
    inner = envelope.get("error") if envelope else None
    code = inner.get("code") if isinstance(inner, dict) else None
    if status in (400, 413, 422) and (code == "context_length_exceeded" or _speaks_of_overflow(message)):
        return ErrorClass.CONTEXT_OVERFLOW
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    return ErrorClass.SERVER if status >= 500 else ErrorClass.BAD_REQUEST


def error_message(envelope: JSON | None) -> str | None:
    """The message in an error envelope of any dialect; ``None`` when there is none."""
    if envelope is None:
        return None
    inner = envelope.get("error")
    places: tuple[Any, ...] = (inner, inner.get("message") if isinstance(inner, dict) else None)
    for place in (*reversed(places), envelope.get("message"), envelope.get("detail")):
        if isinstance(place, str) and place:
            return place
    return None


def retry_after(headers: Headers, *, now: float) -> float | None:
    """Seconds to wait as the server asks, never negative; ``None`` when it does not say, or says it in no known dialect."""
    found = {name.lower(): value.strip() for name, value in headers}
    if (milliseconds := _number(found.get("retry-after-ms"))) is not None:
        return milliseconds / 1000
    value = found.get("retry-after")
    if value is None:
        return None
    if (seconds := _number(value)) is not None:
        return seconds
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - now)
    except (ValueError, OverflowError):
        return None


def _number(text: str | None) -> float | None:
    try:
        number = float(text) if text is not None else math.nan
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 else None


def _speaks_of_overflow(message: str) -> bool:
    lowered = message.lower()
    return any(words in lowered for words in _OVERFLOW_WORDS)


def _object(body: bytes) -> JSON | None:
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    return value if isinstance(value, dict) else None
