"""One classification of everything that can go wrong with a request, whatever the dialect of the server that says it."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from email.utils import parsedate_to_datetime
from typing import Any

import orjson

from replay.exchange import JSON, Ending, ErrorClass, Failure, Headers, Outcome, Recording
from replay.values import compact, too_deep

LONGEST_WAIT_S = 3_600.0
"""A server that asks for more is taken to ask for this."""

_OVERFLOW = re.compile(
    r"context.{0,20}(?:length|window|limit|size)|maximum (?:context|sequence|input|prompt)|max(?:imum)?_(?:seq|model|input)_len"
    r"|max_num_tokens|longer than (?:this|the) model|prompt\b.{0,40}\btoo (?:long|large)|input (?:is |was )?too long"
    r"|too many tokens|token count.{0,40}exceeds|maximum number of tokens|`inputs` tokens \+"
    r"|exceeds?.{0,40}\b(?:context|token limit)",
    re.IGNORECASE | re.DOTALL,
)
_UNKNOWN_MODEL = re.compile(
    r"\bmodels?\b.{0,200}\b(?:not exist|not found|unknown|no such)|(?:unknown|invalid|no such) model|not a valid model"
    r"|DeploymentNotFound|deployment .{0,40}does not exist|no endpoints found for|^model: ",
    re.IGNORECASE | re.DOTALL,
)
_UNKNOWN_MODEL_WORDS = frozenset(
    ("model_not_found", "invalid_model", "model_not_supported", "deploymentnotfound")
)
_REJECTED = (
    re.compile(r"extra_forbidden.{0,80}?['\"]loc['\"]: ?[(\[] ?['\"]body['\"], ?['\"]([\w.-]+)", re.DOTALL),
    re.compile(
        r"['\"]loc['\"]: ?[(\[] ?['\"]body['\"], ?['\"]([\w.-]+)['\"][^{}]{0,200}extra_forbidden", re.DOTALL
    ),
    re.compile(r"\(['\"]([\w.-]+)['\"] was unexpected\)"),
    re.compile(r"extra inputs are not permitted[^'\"`]{0,80}['\"`]([\w.-]+)['\"`]", re.IGNORECASE),
    re.compile(
        r"(?:unrecognized|unknown|unsupported|unexpected|extra) [\w ]{0,20}(?:argument|parameter|field|key|property)s?"
        r"[\w ]{0,20}?:? *['\"`]?([\w.-]+)(?=['\"`]|\.?\s*$| is\b)",
        re.IGNORECASE,
    ),
    re.compile(
        r"['\"`]([\w.-]+)['\"`] (?:is|are) not (?:a )?(?:supported|recognized|permitted|allowed)",
        re.IGNORECASE,
    ),
)
_OFFERED = (
    r"(?:tools?|tool use|functions?|function calling|images?|image inputs?|audio|video|vision|multi-?modal|logprobs|embeddings?"
    r"|thinking|reasoning|guided decoding|grammars?|json(?:_schema|_object)?|response_format|structured outputs?|streaming|chat"
    r"|completions?|n ?> ?1|best_of)"
)
_LACKING = re.compile(
    rf"(?:not|n't) support (?:\w+ )?[`'\"]?{_OFFERED}\b"
    rf"|\b{_OFFERED}[`'\"]? (?:is|are) not (?:yet )?(?:supported|enabled|implemented)"
    r"|tool choice requires --|tools param requires --|is not a multimodal model|at most 0 (?:image|audio|video)"
    r"|no endpoints found that (?:can handle|support)",
    re.IGNORECASE,
)
_TOO_LONG = re.compile(
    r"context.{0,20}(?:length|window)|max(?:imum)?[ _](?:context|sequence|input|prompt|model)?[ _]?(?:length|len)\b"
    r"|longer than (?:this|the) model|(?:prompt|input)\b.{0,40}\btoo (?:long|large)|`inputs` tokens \+"
    r"|max_(?:seq|model|input)_len",
    re.IGNORECASE | re.DOTALL,
)
"""What a prompt beyond the context is called; a throttle, or a cache that is full, counts tokens too."""
_CORE = frozenset(("model", "messages", "prompt", "input"))
"""Fields without which there is no request: who refuses them serves nobody."""
_TRY_AGAIN = re.compile(
    r"(?:try again|retry) (?:in|after) ((?:[\d.]{1,12} ?[a-z]{1,7} ?){1,3})", re.IGNORECASE
)
_PART = re.compile(r"([\d.]{1,12}) ?([a-z]{1,7})", re.IGNORECASE)
_GENERIC = frozenset(("invalid_request_error", "badrequesterror", "bad_request", "invalid_argument"))
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
_BY_WORD = {
    "rate_limit_exceeded": 429,
    "rate_limit_error": 429,
    "insufficient_quota": 429,
    "resource_exhausted": 429,
    "overloaded_error": 529,
    "unavailable": 503,
    "service_unavailable": 503,
    "serviceunavailable": 503,
    "authentication_error": 401,
    "invalid_api_key": 401,
    "unauthenticated": 401,
    "permission_error": 403,
    "permission_denied": 403,
    "not_found_error": 404,
    "notfounderror": 404,
    "not_found": 404,
    "model_not_found": 404,
    "invalid_request_error": 400,
    "badrequesterror": 400,
    "bad_request": 400,
    "invalid_argument": 400,
    "context_length_exceeded": 400,
    "request_too_large": 413,
    "deadline_exceeded": 504,
    "timeout_error": 504,
    "overloaded": 529,
    "too_many_requests": 429,
}
"""Types and codes in the body, of every dialect, by the status that they stand for."""
_ENDINGS = {
    Ending.NOT_SENT: (Outcome.NOT_SENT, ErrorClass.CONNECT, "this machine had no means to send it"),
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
        retryable=error_class.retryable and not recording.chunks,
    )


def http_failure(status: int, headers: Headers, body: bytes, *, now: float) -> Failure:
    """The failure behind an error status, from any envelope: OpenAI's, a flat one, a bare string, HTML or nothing."""
    envelope = _object(body)
    message = error_message(envelope) or _plain_words(body) or f"HTTP {status} without an error message"
    shape = envelope_of(envelope, body)
    page = shape == "html" and (status >= 500 or status in (403, 413))
    hop = page or 520 <= status <= 530  # what stands before the server, and speaks for itself
    error_class = ErrorClass.GATEWAY if hop and status != 529 else class_of(status, message, envelope)
    return Failure(
        outcome=Outcome.HTTP_ERROR,
        error_class=error_class,
        message=message[:500],
        status=status,
        retryable=_retryable(status, headers, envelope, error_class),
        retry_after_s=retry_after(headers, envelope, now=now),
        code=_code(status, error_class, message, envelope),
        envelope=shape,
    )


def _retryable(status: int, headers: Headers, envelope: JSON | None, error_class: ErrorClass) -> bool:
    """As the official client decides: what the server says, else 408, 409, 429 and everything from 500 up; no quota refills."""
    told = next((value.strip().lower() for name, value in headers if name.lower() == "x-should-retry"), None)
    if told in ("true", "false"):
        return told == "true"
    if "insufficient_quota" in _words(envelope):
        return False
    return (
        status in (408, 409, 429)
        or status >= 500
        or (error_class.retryable and error_class is not ErrorClass.GATEWAY)
    )


def body_failure(envelope: JSON, status: int | None, *, code: str = "error.in_200") -> Failure:
    """The failure behind an error object in the body of an answer whose status line said 200."""
    message = error_message(envelope) or "error without a message"
    stated = _stated_status(envelope)
    error_class = class_of(stated or 500, message, envelope)
    return Failure(
        outcome=Outcome.HTTP_ERROR,
        error_class=error_class,
        message=message[:500],
        status=status,
        retryable=error_class.retryable,
        retry_after_s=retry_after((), envelope, now=0.0),
        code=code,
        envelope=envelope_of(envelope, b""),
    )


def class_of(status: int, message: str, envelope: JSON | None) -> ErrorClass:
    """The class of an error status; words in the body only decide where the status is shared by several causes."""
    words = _words(envelope)
    known = [word for word in words if word in _BY_WORD]
    exact = next((word for word in known if word not in _GENERIC), None)
    if exact is not None and _BY_WORD[exact] == 429:
        return ErrorClass.RATE_LIMITED
    overflows = "context_length_exceeded" in words or _OVERFLOW.search(message)
    if status in (400, 413, 422) and overflows and "string_above_max_length" not in words:
        return ErrorClass.CONTEXT_OVERFLOW
    if status in (400, 500) and known:  # what servers answer when they do not know better
        status = _BY_WORD[exact or known[0]]
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    return ErrorClass.SERVER if status >= 500 else ErrorClass.BAD_REQUEST


def error_message(envelope: JSON | None) -> str | None:
    """The message in an error envelope of any dialect; ``None`` when there is none."""
    if envelope is None:
        return None
    inner = _inner(envelope)
    for place in (
        inner.get("message"),
        envelope.get("error"),
        envelope.get("message"),
        envelope.get("detail"),
        envelope.get("errors"),
    ):
        if isinstance(place, str) and place:
            return place[:4_000]
        if isinstance(place, list) and place:
            return compact(place[:5])[:4_000]
    return None


def envelope_of(envelope: JSON | None, body: bytes) -> str:
    """The shape of an error: what a client's parser has to know."""
    if envelope is None:
        text = body[:2_048].lstrip().lower()
        return "html" if text.startswith(b"<") or b"<html" in text else "text" if text else "empty"
    error = envelope.get("error")
    if isinstance(error, dict):
        return "anthropic" if envelope.get("type") == "error" else "openai"
    if isinstance(error, str):
        return "string"
    if isinstance(envelope.get("message"), str):
        return "flat"
    return "detail" if "detail" in envelope else "other"


def retry_after(headers: Headers, envelope: JSON | None = None, *, now: float) -> float | None:
    """Seconds to wait as the server asks: never negative, at most ``LONGEST_WAIT_S``; ``None`` when it does not say.

    Headers first (``retry-after-ms``; ``retry-after`` as seconds, also fractional, or as a date), then the body
    (``retry_after``, ``retry_after_ms``, ``retryDelay: "3s"``, "try again in 1.2s").
    """
    found = {name.lower(): value.strip() for name, value in headers}
    wait = _milliseconds(found.get("retry-after-ms"))
    if wait is None:
        wait = _seconds_or_date(found.get("retry-after"), now)
    if wait is None and envelope is not None:
        wait = next((one for one in _waits_in(envelope) if one is not None), None)
    return None if wait is None else min(wait, LONGEST_WAIT_S)


def _waits_in(envelope: JSON) -> Iterator[float | None]:
    inner = _inner(envelope)
    for place in (inner, envelope):
        yield _milliseconds(place.get("retry_after_ms"))
        yield _number(place.get("retry_after"))
    details = inner.get("details")
    for detail in details if isinstance(details, list) else ():
        delay = detail.get("retryDelay") if isinstance(detail, dict) else None
        yield _number(delay.removesuffix("s")) if isinstance(delay, str) else None
    told = _TRY_AGAIN.search(error_message(envelope) or "")
    if told:
        parts = [(_number(amount), _unit(unit)) for amount, unit in _PART.findall(told[1])]
        known = [amount * scale for amount, scale in parts if amount is not None and scale is not None]
        yield sum(known) if known else None


def _unit(word: str) -> float | None:
    """Seconds in a unit, by its beginning."""
    short = word.lower()
    return _UNITS.get("ms" if short == "ms" else short[:1])


_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3_600.0}


def _milliseconds(value: Any) -> float | None:
    amount = _number(value)
    return None if amount is None else amount / 1000


def _seconds_or_date(value: str | None, now: float) -> float | None:
    if value is None or (seconds := _number(value)) is not None:
        return seconds if value is not None else None
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - now)
    except (ValueError, OverflowError):
        return None


def _number(value: Any) -> float | None:
    """A finite number that is not negative, from a number or its text."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) and number >= 0 else None


def _code(status: int, error_class: ErrorClass, message: str, envelope: JSON | None) -> str:
    if error_class in (ErrorClass.NOT_FOUND, ErrorClass.BAD_REQUEST):
        words = set(_words(envelope))
        named = _inner(envelope).get("param") == "model" and error_class is ErrorClass.NOT_FOUND
        if named or words & _UNKNOWN_MODEL_WORDS or _UNKNOWN_MODEL.search(message):
            return "contract.model_unknown"
    if rejected_parameter(error_class, message):
        return "contract.param_rejected"
    said = error_class in (ErrorClass.NOT_FOUND, ErrorClass.BAD_REQUEST) and _LACKING.search(message)
    lacks = status == 501 or "not_supported_error" in _words(envelope) or said
    return "contract.unsupported" if lacks else ""


def beyond(failure: Failure, asked: Any) -> bool:
    """Whether the server says that it does not offer what was asked for: a feature, a field that is in the request ``asked``
    (its body as JSON has it; ``None``: not known), so long a prompt."""
    if failure.error_class is ErrorClass.CONTEXT_OVERFLOW:
        return failure.status == 413 or _TOO_LONG.search(failure.message) is not None
    if failure.code != "contract.param_rejected":
        return failure.code == "contract.unsupported"
    field = (rejected_parameter(failure.error_class, failure.message) or "").partition(".")[0]
    return isinstance(asked, dict) and field in asked and field not in _CORE


def rejected_parameter(error_class: ErrorClass, message: str) -> str | None:
    """The request's field that a server refuses to know; ``None`` when that was not the matter."""
    if error_class is not ErrorClass.BAD_REQUEST:
        return None
    return next((found[1] for pattern in _REJECTED if (found := pattern.search(message[:2_000]))), None)


def _stated_status(envelope: JSON) -> int | None:
    """The status that the body states itself, as a number or in a word."""
    for word in _words(envelope):
        if len(word) == 3 and word.isascii() and word.isdecimal() and 400 <= int(word) <= 599:
            return int(word)
    return next((_BY_WORD[word] for word in _words(envelope) if word in _BY_WORD), None)


def _words(envelope: JSON | None) -> list[str]:
    """Codes, types and statuses of an envelope, in lower case."""
    if envelope is None:
        return []
    places = (_inner(envelope), envelope)
    values = (place.get(key) for place in places for key in ("code", "type", "status", "error_type"))
    return [str(value).lower().replace(" ", "_") for value in values if isinstance(value, str | int)]


def _inner(envelope: JSON | None) -> JSON:
    error = envelope.get("error") if envelope else None
    return error if isinstance(error, dict) else envelope or {}


def _plain_words(body: bytes) -> str:
    """What a body that is no JSON says, in one line, without its tags."""
    text = re.sub(r"<[^<>]{0,500}>", " ", body[:4_096].decode("utf-8", "replace"))
    return " ".join(text.split())[:200]


def _object(body: bytes) -> JSON | None:
    """The JSON object of an error; some relays wrap it in a list."""
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError:
        try:
            value = json.loads(body)
        except (ValueError, RecursionError):
            return None
    if isinstance(value, list) and value:
        value = value[0]
    return value if isinstance(value, dict) and not too_deep(value) else None
