"""Builders of recordings: what a socket would have delivered, with made-up times."""

from __future__ import annotations

from collections.abc import Iterable

import orjson

from replay.decoding import observe
from replay.exchange import Arm, Ending, Headers, Observation, Recording

CHAT = "/v1/chat/completions"
SSE: Headers = (("Content-Type", "text/event-stream; charset=utf-8"),)
JSON_TYPE: Headers = (("Content-Type", "application/json"),)


def recording(
    pieces: Iterable[bytes],
    *,
    status: int | None = 200,
    headers: Headers = SSE,
    ending: Ending = Ending.COMPLETE,
    step: float = 0.01,
) -> Recording:
    """Sent at 100.0; the head and then each piece arrive ``step`` seconds apart."""
    chunks = tuple((100.0 + step * (n + 2), piece) for n, piece in enumerate(pieces))
    ended = chunks[-1][0] if chunks else 100.0 + step
    return Recording(
        sent_at=100.0,
        head_at=None if status is None else 100.0 + step,
        status=status,
        headers=headers,
        chunks=chunks,
        ended_at=ended,
        ending=ending,
    )


def seen(rec: Recording, *, path: str = CHAT, arm: Arm = Arm.CANDIDATE) -> Observation:
    return observe(rec, request_id="r1", arm=arm, at=1_000.0, path=path)


def event(value: object) -> bytes:
    return b"data: " + orjson.dumps(value) + b"\n\n"


def delta(index: int = 0, finish: str | None = None, **fields: object) -> bytes:
    return event({"choices": [{"index": index, "delta": fields, "finish_reason": finish}]})


DONE = b"data: [DONE]\n\n"


def codes(got: Observation) -> list[str]:
    """The codes of what was odd."""
    return [oddity.code for oddity in got.answer.oddities] if got.answer else []
