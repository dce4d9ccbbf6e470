"""From the records of a log to captured requests in a store, with what the log says of the baseline's answers."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

from migrate.redact import Redactor
from migrate.sampling import body_key, digest
from migrate.store import Writer
from replay.decoding import observe
from replay.exchange import Arm, Ending, Observation, Recording, Request, Timing
from replay.formats.record import Call, Record, Skip, Use
from replay.values import compact

UNDATED = 1e8
"""Requests from a source without dates are placed by seconds from its start, far below any real time."""
_REBUILT = frozenset(("response-rebuilt", "stream-joined"))


@dataclass(slots=True)
class Tally:
    """What became of the records of an import."""

    taken: int = 0
    answered: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    notes: Counter[str] = field(default_factory=Counter)


class Importer:
    """Hands records to a store's writer, redacted. ``key`` names the source, so that the same one again adds nothing.

    ``model`` is asked for where a record names none.
    """

    def __init__(self, redactor: Redactor, writer: Writer, *, key: bytes, model: str | None) -> None:
        self._redactor, self._writer, self._key, self._model = redactor, writer, key, model
        self.tally = Tally()

    def take(self, record: Record) -> Skip | None:
        """Stores one record. Returns why it cannot be used, or ``None``."""
        skip = self._unusable(record)
        if skip is not None:
            self.tally.skipped[skip.reason] += 1
            return skip
        request = self._request(record)
        self._offer(self._redactor.request(request)[0])
        if (seen := observed(record, request.id)) is not None:
            self.tally.answered += 1
            self._offer(self._redactor.observation(seen))
        self.tally.taken += 1
        self.tally.notes.update(record.notes)
        return None

    def _unusable(self, record: Record) -> Skip | None:
        if record.use is Use.TIMING or record.request is None:
            return Skip(line=record.line, reason="times-only", detail="times and lengths without a request")
        if record.model is None and self._model is None:
            return Skip(
                line=record.line, reason="model-missing", detail="no model is named; give one with --model"
            )
        return None

    def _request(self, record: Record) -> Request:
        asked = record.request or Call(method="", path="")
        body: Any = asked.body
        if record.model is None and isinstance(body, dict):
            body = {"model": self._model, **body}
        name = hashlib.blake2b(f"{record.line}".encode(), key=self._key, digest_size=16).hexdigest()
        conversation = record.session or (
            body_key("conversation", body, name) if isinstance(body, dict) else name
        )
        return Request(
            id=name,
            at=record.captured_at if record.captured_at is not None else _place(record),
            method=asked.method,
            path=asked.path,
            headers=asked.headers,
            body=compact(body).encode(),
            conversation=digest(conversation),
        )

    def _offer(self, value: Request | Observation) -> None:
        """An import may wait; the writer's bound is what keeps memory constant."""
        self._writer.put(value)


def _place(record: Record) -> float:
    return record.offset_s if record.offset_s is not None else record.line * 1e-3


def observed(record: Record, request_id: str) -> Observation | None:
    """What the log says of the answer, as an observation of the baseline; ``None`` when it says nothing.

    No finding about the wire rests on an answer that was put together from fields.
    """
    said = record.response
    if said is None or (said.body is None and said.stream is None) or record.request is None:
        return None
    pieces = (
        tuple((at or 0.0, text.encode("utf-8", "surrogatepass")) for at, text in said.stream)
        if said.stream is not None
        else (
            (
                0.0,
                (said.body if isinstance(said.body, str) else compact(said.body)).encode("utf-8", "replace"),
            ),
        )
    )
    kind = "text/event-stream" if said.stream is not None else "application/json"
    known = any(name.lower() == "content-type" for name, _ in said.headers)
    recording = Recording(
        sent_at=0.0,
        head_at=record.ttfb_s,
        status=said.status if said.status is not None else 200,
        headers=said.headers if known else (*said.headers, ("Content-Type", kind)),
        chunks=pieces,
        ended_at=record.duration_s or 0.0,
        ending=Ending.COMPLETE,
    )
    at = record.captured_at if record.captured_at is not None else _place(record)
    seen = observe(recording, request_id=request_id, arm=Arm.BASELINE, at=at, path=record.request.path)
    answer = seen.answer
    if answer is not None and _REBUILT & set(record.notes):
        answer = replace(answer, oddities=())
    timed = said.stream is not None and any(at is not None for at, _ in said.stream)
    timing = Timing(
        head_s=record.ttfb_s,
        ttft_s=seen.timing.ttft_s if timed else record.ttft_s,
        e2e_s=record.duration_s,
        content_times=seen.timing.content_times if timed else (),
    )
    return replace(seen, answer=answer, timing=timing, reason=seen.reason or "imported", raw=None)
