"""Values to rows and back, without a database. A value that comes back equals the one that went in.

Text may hold lone surrogates (a server sent them as JSON escapes); those are kept as escapes.
"""

from __future__ import annotations

import hashlib
import json
import math
import sys
import zlib
from array import array
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import orjson

from replay.exchange import (
    Answer,
    Arm,
    Choice,
    ErrorClass,
    Failure,
    Headers,
    Observation,
    Oddity,
    Outcome,
    Request,
    Timing,
    ToolCall,
    Usage,
)

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

Row = dict[str, Any]
Bodies = dict[str, bytes]
"""Content by its hash, compressed."""

_MAX_BODY = 256 * 2**20
_ZLIB = b"\x78"
"""How bodies begin in stores of the first schema."""
_PACKER = zstd.ZstdCompressor(level=1)
"""One for all, of any thread: setting up another takes longer than it takes to compress a body."""


@dataclass(frozen=True, slots=True)
class Rows:
    """What records are in a database: the rows of two tables, and the bodies that they point to."""

    requests: list[Row] = field(default_factory=list)
    observations: list[Row] = field(default_factory=list)
    bodies: Bodies = field(default_factory=dict)


def encode(run: str, records: Iterable[Request | Observation]) -> Rows:
    """The rows of records of a run."""
    rows = Rows()
    for record in records:
        if isinstance(record, Request):
            row, bodies = request_rows(run, record)
            rows.requests.append(row)
        else:
            row, bodies = observation_rows(run, record)
            rows.observations.append(row)
        rows.bodies.update(bodies)
    return rows


def request_rows(run: str, request: Request) -> tuple[Row, Bodies]:
    """The row of a request and the body it points to."""
    key, packed = pack(request.body)
    row = {
        "run": run,
        "id": request.id,
        "at": request.at,
        "method": request.method,
        "path": request.path,
        "headers": dump(request.headers).decode(),
        "conversation": request.conversation,
        "body": key,
        "side": request.side and request.side.value,
    }
    return row, {key: packed}


def observation_rows(run: str, seen: Observation) -> tuple[Row, Bodies]:
    """The row of an observation and the bodies it points to: the decoded answer, and the raw body where it was kept."""
    held: Bodies = {}
    row = {
        "run": run,
        "request": seen.request_id,
        "arm": seen.arm.value,
        "at": seen.at,
        "outcome": seen.outcome.value,
        "reason": seen.reason,
        "status": seen.status,
        "earlier": dump(seen.earlier).decode(),
        "head_s": finite(seen.timing.head_s),
        "ttft_s": finite(seen.timing.ttft_s),
        "e2e_s": finite(seen.timing.e2e_s),
        "generated_s": finite(seen.timing.generated_s),
        "lag_s": finite(seen.timing.lag_s),
        "connect_s": finite(seen.timing.connect_s),
        "output_tokens": seen.output_tokens,
        "content_times": pack_times(seen.timing.content_times),
        "headers": dump(seen.headers).decode(),
        "failure": None if seen.failure is None else dump(seen.failure).decode(),
        "answer": None if seen.answer is None else _hold(held, dump(seen.answer)),
        "raw": None if seen.raw is None else _hold(held, seen.raw),
    }
    return row, held


def request_value(row: Mapping[str, Any], body: bytes) -> Request:
    """The request that a row stands for; ``body`` is its unpacked body."""
    return Request(
        id=row["id"],
        at=_moment(row["at"]),
        method=row["method"],
        path=row["path"],
        headers=_headers(row["headers"]),
        body=body,
        conversation=row["conversation"],
        side=Arm(row["side"]) if row["side"] else None,
    )


def observation_value(row: Mapping[str, Any], answer: bytes | None, raw: bytes | None = None) -> Observation:
    """The observation that a row stands for, from its unpacked bodies."""
    return Observation(
        request_id=row["request"],
        arm=Arm(row["arm"]),
        at=_moment(row["at"]),
        outcome=Outcome(row["outcome"]),
        reason=row["reason"],
        status=row["status"],
        headers=_headers(row["headers"]),
        answer=None if answer is None else _answer(load(answer)),
        failure=None if row["failure"] is None else _failure(load(row["failure"])),
        timing=Timing(
            head_s=_seconds(row["head_s"]),
            ttft_s=_seconds(row["ttft_s"]),
            e2e_s=_seconds(row["e2e_s"]),
            generated_s=_seconds(row["generated_s"]),
            lag_s=_seconds(row["lag_s"]),
            connect_s=_seconds(row["connect_s"]),
            content_times=unpack_times(row["content_times"]),
        ),
        earlier=tuple(_failure(data) for data in load(row["earlier"])),
        raw=raw,
    )


def _seconds(value: Any) -> float | None:
    """A duration as it was written; raises ValueError when something else stands there now."""
    if value is None:
        return None
    if not isinstance(value, float | int) or not 0 <= value < math.inf:
        raise ValueError(f"{value!r} is no duration")
    return float(value)


def _moment(value: Any) -> float:
    if not isinstance(value, float | int) or not math.isfinite(value):
        raise ValueError(f"{value!r} is no time")
    return float(value)


def pack(content: bytes) -> tuple[str, bytes]:
    """The hash of some content, and the content compressed."""
    return hashlib.sha256(content).hexdigest(), _PACKER.compress(content, _PACKER.FLUSH_FRAME)


def unpack(packed: bytes) -> bytes:
    """The content behind packed bytes. Raises ValueError when they are damaged, or larger than any body we store."""
    try:
        older = packed.startswith(_ZLIB)
        unpacker: Any = zlib.decompressobj() if older else zstd.ZstdDecompressor()
        content: bytes = unpacker.decompress(packed, _MAX_BODY)
    except (zlib.error, zstd.ZstdError) as error:
        raise ValueError(str(error)) from None
    if not unpacker.eof:
        raise ValueError("stored body is cut off, or larger than any body that is stored")
    return content


def pack_times(times: tuple[float, ...]) -> bytes:
    """Chunk times as unsigned microseconds, four bytes each; the last representable time is 71 minutes."""
    return (
        zlib.compress(array("I", [min(max(round(t * 1e6), 0), 2**32 - 1) for t in times]).tobytes(), 1)
        if times
        else b""
    )


def unpack_times(packed: bytes) -> tuple[float, ...]:
    """Chunk times in seconds, rounded to the microsecond when they were packed."""
    return tuple(tick / 1e6 for tick in array("I", zlib.decompress(packed))) if packed else ()


def finite(number: float | None) -> float | None:
    """A number that a database column takes; NaN and infinities did not happen on any clock."""
    return number if number is not None and math.isfinite(number) else None


def dump(value: Any) -> bytes:
    """Compact JSON of a value, dataclasses as objects, lone surrogates as escapes."""
    try:
        return orjson.dumps(value)
    except TypeError:
        return json.dumps(value, separators=(",", ":"), default=asdict).encode()


def load(data: bytes | str) -> Any:
    """The value behind ``dump``."""
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        return json.loads(data)


def _hold(held: Bodies, content: bytes) -> str:
    key, packed = pack(content)
    held[key] = packed
    return key


def _headers(text: str) -> Headers:
    return tuple((name, value) for name, value in load(text))


def _failure(data: Row) -> Failure:
    outcome, error_class = Outcome(data.pop("outcome")), ErrorClass(data.pop("error_class"))
    return Failure(outcome=outcome, error_class=error_class, **data)


def _answer(data: Row) -> Answer:
    return Answer(
        choices=tuple(_choice(choice) for choice in data["choices"]),
        usage=None if data["usage"] is None else Usage(**data["usage"]),
        model=data["model"],
        error=None if data["error"] is None else _failure(data["error"]),
        oddities=tuple(Oddity(**oddity) for oddity in data["oddities"]),
        fingerprint=data["fingerprint"],
        streamed=data["streamed"],
        embeddings=tuple(tuple(vector) for vector in data["embeddings"]),
        extra=tuple((path, text) for path, text in data["extra"]),
    )


def _choice(data: Row) -> Choice:
    calls = tuple(ToolCall(**call) for call in data.pop("tool_calls"))
    return Choice(tool_calls=calls, media=tuple(data.pop("media")), **data)
