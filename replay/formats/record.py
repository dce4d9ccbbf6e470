"""The neutral record of an imported call, and what every importer needs to make one. Pure.

What a source does not say is ``None``; what was put together or assumed is in ``notes``, and no finding may rest on it.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from enum import StrEnum
from typing import Any

import orjson

from replay.exchange import JSON, Headers
from replay.values import MAX_DEPTH, too_deep

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
_REDACTED = re.compile(r"redacted-by-litellm|__REDACTED__|REDACTED_BY_LITELM|<redacted>|^\*{3,}$")
_TRUNCATED = re.compile(
    r"\(litellm_truncated skipped \d+ chars|\[truncated\]\s*$|^\[(?:image|file|audio) omitted\]$"
)
_SIGNS = ("redacted", "REDACTED", "***", "truncated", "omitted]")
"""One of these stands in every text that the two patterns above find; looking for them is much faster."""
_FRACTION = re.compile(r"(\.\d{6})\d+")


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


class Unusable(Exception):
    """Raised within an importer; becomes a Skip."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason, self.detail = reason, detail


Item = Record | Skip


def made(
    line: int,
    *,
    request: Call | None,
    response: Reply | None,
    notes: Iterable[str],
    use: Use | None = None,
    **more: Any,
) -> Record:
    """A record with the notes and token counts that follow from its parts.

    Raises Unusable when the request was cut or redacted: the candidate would answer another question.
    """
    told = set(notes)
    body = request.body if request is not None else None
    if request is not None and use is not Use.TIMING:
        whole(body)
        model = body.get("model") if isinstance(body, dict) else None
        more.setdefault("model", model if isinstance(model, str) and model else None)
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


def whole(body: Any) -> None:
    """Raises Unusable when a request's body is missing, redacted or cut."""
    if body in (None, "", {}):
        raise Unusable("request-missing", "no body")
    for text in _strings(body):
        if not any(sign in text for sign in _SIGNS):
            continue
        if found := _REDACTED.search(text):
            raise Unusable("request-redacted", f"messages hold {found[0]}")
        if found := _TRUNCATED.search(text):
            raise Unusable("request-truncated", f"a text was cut: {found[0][:40]}")


def _strings(value: Any) -> Iterable[str]:
    stack = [value]
    while stack:
        here = stack.pop()
        if isinstance(here, str):
            yield here
        elif isinstance(here, dict):
            stack.extend(here.values())
        elif isinstance(here, list):
            stack.extend(here)


def _usage(response: Reply) -> tuple[int | None, int | None]:
    usage = response.body.get("usage") if isinstance(response.body, dict) else None
    if usage is None and response.stream is not None:
        text = "".join(piece for _, piece in response.stream)
        found = [line for line in text.split("\n") if line.startswith("data:") and '"usage"' in line]
        for line in reversed(found):
            value = loaded(line[5:])
            if isinstance(value, dict) and isinstance(value.get("usage"), dict):
                usage = value["usage"]
                break
    if not isinstance(usage, dict):
        return None, None
    return count(usage.get("prompt_tokens", usage.get("input_tokens"))), count(
        usage.get("completion_tokens", usage.get("output_tokens"))
    )


def count(value: Any) -> int | None:
    """A number of tokens; 0 means that the source does not know."""
    if isinstance(value, str) and value.strip().isdecimal():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def text(value: Any) -> str | None:
    """A text that is not empty."""
    return value if isinstance(value, str) and value else None


def number(value: Any) -> float | None:
    """A finite number, also from its text."""
    if isinstance(value, bool) or value in (None, "", "-"):
        return None
    try:
        found = float(value)
    except (TypeError, ValueError):
        return None
    return found if math.isfinite(found) else None


def moment(value: Any, notes: set[str], zone: tzinfo = UTC) -> float | None:
    """Epoch seconds from a number (its size says the unit) or an ISO text; one without an offset is in ``zone`` and noted."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        scale = next((unit for most, unit in ((1e11, 1), (1e14, 1e3), (1e17, 1e6)) if value < most), 1e9)
        return value / scale
    if not isinstance(value, str) or not value.strip():
        return None
    words = value.strip().strip('"').strip()
    if re.fullmatch(r"\d+(?:\.\d+)?", words):
        return moment(float(words), notes)
    try:
        found = datetime.fromisoformat(_FRACTION.sub(r"\1", words))
    except ValueError:
        return None
    if found.tzinfo is None:
        notes.add("time-zone-assumed")
        found = found.replace(tzinfo=zone)
    return found.timestamp()


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


def path_of(body: Mapping[str, Any]) -> str:
    """The path that a body belongs to."""
    if "messages" in body:
        return "/v1/chat/completions"
    if "prompt" in body:
        return "/v1/completions"
    embeds = "encoding_format" in body or "dimensions" in body or "embed" in str(body.get("model", ""))
    return "/v1/embeddings" if embeds else "/v1/responses"


def loaded(value: str | bytes) -> Any:
    """The value in a JSON text; ``None`` when it is none, or nested too deeply."""
    try:
        found = orjson.loads(value)
    except orjson.JSONDecodeError:
        return None
    return None if _may_be_deep(value) and too_deep(found) else found


def _may_be_deep(text: str | bytes) -> bool:
    """Whether there are brackets enough; almost always there are not."""
    signs = (b"{", b"[") if isinstance(text, bytes) else ("{", "[")
    return sum(text.count(sign) for sign in signs) > MAX_DEPTH  # type: ignore[misc, arg-type]


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


def parsed(line: bytes) -> JSON:
    """The JSON object of a line. Raises Unusable."""
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError:
        raise Unusable("malformed", _why(line)) from None
    if not isinstance(value, dict):
        raise Unusable("malformed", "not a JSON object")
    if _may_be_deep(line) and too_deep(value):
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
    except ValueError:
        return "not UTF-8"
    return "not JSON"
