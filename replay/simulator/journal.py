"""What arrived and when each chunk left, one JSON line a request, for tests and accuracy benchmarks."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from replay.exchange import Headers


@dataclass(slots=True, kw_only=True)
class Trace:
    """One exchange as the sender saw it; times are readings of the monotonic clock."""

    path: str
    arrived: float
    """The whole request was read."""
    request_id: str | None
    """The client's X-Request-Id; ``None`` when it sent none."""
    id: str | None = None
    """The answer's id; ``None`` when there was no answer."""
    status: int | None = None
    fault: str | None = None
    """What happened instead of an answer; ``None`` for one that is complete on the wire."""
    chunks: list[tuple[float, int, int | None]] = field(default_factory=list)
    """Written at, bytes, index of the token it carries (``None``: no token)."""
    ended: str = "complete"
    """``complete``, ``client_left`` or ``reset``."""
    ended_at: float | None = None


class Journal:
    """The two files, either of which may be absent. Every line is written at once, whole."""

    def __init__(self, *, log_requests: Path | None, truth: Path | None) -> None:
        self._requests = _opened(log_requests)
        self._truth = _opened(truth)

    @property
    def timed(self) -> bool:
        """Somebody wants to know when each chunk was written."""
        return self._truth is not None

    def request(
        self, *, at: float, monotonic: float, method: str, path: str, headers: Headers, body: bytes
    ) -> None:
        """Notes a request as it arrived, credentials included; a body that is not JSON is noted as text."""
        if self._requests is None:
            return
        noted = {"at": at, "monotonic": monotonic, "method": method, "path": path}
        _append(self._requests, noted | {"headers": headers, "body": _decoded(body)})

    def exchange(self, trace: Trace) -> None:
        """Notes when the chunks of an exchange were written."""
        if self._truth is not None:
            _append(self._truth, trace)

    def close(self) -> None:
        """Closes both files."""
        for file in (self._requests, self._truth):
            if file is not None:
                file.close()


def _opened(path: Path | None) -> BinaryIO | None:
    return None if path is None else path.open("ab", buffering=0)


def _append(file: BinaryIO, record: Any) -> None:
    file.write(orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE))


def _decoded(body: bytes) -> Any:
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        return body.decode("utf-8", "replace")
