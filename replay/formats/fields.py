"""Single fields of a log, read with patience: what is not what it should be is ``None``. Pure."""

from __future__ import annotations

import ast
import json
import math
import re
import warnings
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

import orjson

from replay.exchange import JSON, Headers
from replay.values import may_be_deep, too_deep

CREDENTIALS = frozenset(
    {
        "authorization",
        "proxy-authorization",
        "cookie",
        "set-cookie",
        "x-api-key",
        "api-key",
        "x-goog-api-key",
        "x-amz-security-token",
        "helicone-auth",
        "x-portkey-api-key",
        "cf-aig-authorization",
    }
)
_HOPS = frozenset(
    {
        "content-length",
        "content-encoding",
        "transfer-encoding",
        "connection",
        "keep-alive",
        "proxy-connection",
        "te",
        "trailer",
        "upgrade",
    }
)
_FRACTION = re.compile(r"(\.\d{6})\d+")
_DIGITS = re.compile(r"\d{1,30}(?:\.\d{1,30})?", re.ASCII)
_SECRETS = re.compile(
    r"(?<=[?&])(?:api[-_]?key|key|(?:access[-_])?token|sig(?:nature)?)=[^&]*&?", re.IGNORECASE
)
_STATUS = re.compile(r"\b([45]\d\d)\b", re.ASCII)
_NAMED = {
    "BadRequestError": 400,
    "AuthenticationError": 401,
    "PermissionDeniedError": 403,
    "NotFoundError": 404,
    "ConflictError": 409,
    "UnprocessableEntityError": 422,
    "RateLimitError": 429,
    "InternalServerError": 500,
}
"""The statuses that the official client's exceptions stand for."""
_PATHS = ("chat/completions", "completions", "responses", "embeddings", "messages")
_DETAIL = 200
_LAST = 4e9
"""Epoch seconds of the year 2096: what is later is no time of a log."""


class Unusable(Exception):
    """Raised within a reader of a format; becomes a Skip.

    ``detail`` may hold words of the log: what is long is cut, and what a terminal would obey becomes U+FFFD.
    """

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(reason, detail)  # so that it can be pickled
        self.reason = reason
        self.detail = "".join(char if char.isprintable() else "\ufffd" for char in detail[:_DETAIL])


def mapping(value: Any) -> dict[str, Any]:
    """The object, or an empty one."""
    return value if isinstance(value, dict) else {}


def listed(value: Any) -> list[Any]:
    """The list, or an empty one."""
    return value if isinstance(value, list) else []


def count(value: Any) -> int | None:
    """A number of tokens; 0 means that the source does not know."""
    if isinstance(value, str) and _DIGITS.fullmatch(value.strip()):
        value = int(float(value.strip()))
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 2**53 else None


def text(value: Any) -> str | None:
    """A text that is not empty."""
    return value if isinstance(value, str) and value else None


def number(value: Any) -> float | None:
    """A finite number, also from its text."""
    if isinstance(value, bool) or value in (None, "", "-"):
        return None
    try:
        found = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return found if math.isfinite(found) else None


def lasting(value: Any) -> float | None:
    """A duration; a negative one is unknown."""
    found = number(value)
    return None if found is None or found < 0 else found


def seconds(milliseconds: Any) -> float | None:
    """A duration in milliseconds as seconds."""
    found = lasting(milliseconds)
    return None if found is None else found / 1000


def status_of(value: Any) -> int | None:
    """A status of HTTP, also from its text."""
    found = number(value)
    return int(found) if found is not None and 100 <= found < 600 and found == int(found) else None


def status_in(words: str) -> int | None:
    """The status that an error's text names, as a number or by an exception of the official client."""
    if found := _STATUS.search(words):
        return int(found[1])
    return next((status for name, status in _NAMED.items() if name in words), None)


def moment(value: Any, notes: set[str]) -> float | None:
    """Epoch seconds from a number (its size says the unit) or an ISO text; one without an offset is UTC and noted."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        if not 0 <= value < _LAST * 1e9:
            return None
        return value / (1 if value < 1e11 else 1e3 if value < 1e14 else 1e6 if value < 1e17 else 1e9)
    if not isinstance(value, str) or not value.strip():
        return None
    words = value.strip().strip('"').strip()
    if _DIGITS.fullmatch(words):
        return moment(float(words), notes)
    try:
        found = datetime.fromisoformat(_FRACTION.sub(r"\1", words))
        if found.tzinfo is None:
            notes.add("time-zone-assumed")
            found = found.replace(tzinfo=UTC)
        at = found.timestamp()
        return at if at > 0 else None
    except (ValueError, OverflowError):
        return None


def passed(start: float | None, end: float | None) -> float | None:
    """Seconds from one moment to a later one, to the microsecond."""
    if start is None or end is None or end < start:
        return None
    return round(end - start, 6)


def headers(pairs: Iterable[tuple[str, str]], notes: set[str]) -> Headers:
    """The fields that say something about the call: no credentials (noted), no hop, length or pseudo fields."""
    kept = []
    for name, value in pairs:
        lower = name.lower()
        if lower in CREDENTIALS:
            notes.add("credentials-dropped")
        elif lower not in _HOPS and not name.startswith(":"):
            kept.append((name, value))
    return tuple(kept)


def target(path: str, notes: set[str]) -> str:
    """A path with its query, without the parameters that are credentials (noted)."""
    kept = _SECRETS.sub("", path)
    if kept != path:
        notes.add("credentials-dropped")
    return kept.rstrip("?&")


def path_of(body: Mapping[str, Any]) -> str:
    """The path that a body belongs to."""
    if "messages" in body:
        return "/v1/chat/completions"
    if "prompt" in body:
        return "/v1/completions"
    embeds = "encoding_format" in body or "dimensions" in body or "embed" in str(body.get("model", ""))
    return "/v1/embeddings" if embeds else "/v1/responses"


def known_path(address: str | None, notes: set[str]) -> str | None:
    """The path of a model call at the end of a provider's address, as our own backends have it."""
    path = _path(address or "").strip("/")
    found = next((one for one in _PATHS if f"/{path}".endswith(f"/{one}")), None)
    if found is not None and path not in (found, f"v1/{found}"):
        notes.add("path-assumed")
    return None if found is None else f"/v1/{found}"


def path_at(address: str | None, body: Mapping[str, Any], notes: set[str]) -> str:
    """The path of a call from a provider's address, else from its body. Raises Unusable where neither tells a model call."""
    if found := known_path(address, notes):
        return found
    if address is not None and "messages" not in body:
        raise Unusable("not-a-model-call", _path(address) or "an address without a path")
    notes.add("path-assumed")
    return path_of(body)


def _path(address: str) -> str:
    try:
        return urlsplit(address).path
    except ValueError:
        return ""


def with_model(body: JSON, model: Any, notes: set[str]) -> JSON:
    """The body, with the model that is known from beside it where it names none."""
    if "model" in body or text(model) is None:
        return body
    notes.add("request-rebuilt")
    return {"model": model, **body}


def loaded(value: str | bytes) -> Any:
    """The value in a JSON text; ``None`` when it is none, or nested too deeply."""
    try:
        found = orjson.loads(value)
    except orjson.JSONDecodeError:
        return None
    return None if may_be_deep(value) and too_deep(found) else found


def unfolded(value: Any) -> Any:
    """A value that may be JSON in a text, at most three times over; a text that is no JSON stays a text."""
    for _ in range(3):
        if not isinstance(value, str) or value.lstrip()[:1] not in ("{", "[", '"'):
            break
        inner = loaded(value)
        if inner is None:
            break
        value = inner
    return value


def literal(value: Any) -> Any:
    """As ``unfolded``, and a Python display (``{'role': 'user', 'content': None}``) where it is no JSON."""
    found = unfolded(value)
    if not isinstance(found, str) or found.lstrip()[:1] not in ("{", "["):
        return found
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an unknown escape in it is no concern of the person who imports
            inner = loaded(orjson.dumps(ast.literal_eval(found.strip())))
        return found if inner is None else inner
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return found


def parsed(row: Any) -> JSON:
    """The object of a row: the bytes of a line, a value that was read already, or why there is none. Raises Unusable."""
    if isinstance(row, Unusable):
        raise row
    if isinstance(row, bytes):
        try:
            value = orjson.loads(row)
        except orjson.JSONDecodeError:
            raise Unusable("malformed", _why(row)) from None
        deep = may_be_deep(row) and too_deep(value)
    else:
        value, deep = row, too_deep(row)
    if not isinstance(value, dict):
        raise Unusable("malformed", "not a JSON object")
    if deep:
        raise Unusable("malformed", "nested too deeply")
    return value


def _why(line: bytes) -> str:
    try:
        json.loads(line)
    except json.JSONDecodeError as error:
        return (
            "line ends inside a JSON string"
            if error.msg.startswith("Unterminated string")
            else f"not JSON: {error.msg}"
        )
    except RecursionError:
        return "nested too deeply"
    except ValueError:
        return "not UTF-8"
    return "not JSON: NaN, an infinite number, or half of a surrogate pair"
