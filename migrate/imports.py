"""From the records of a log to the rows of captured requests, with what the log says of the baseline's answers. Pure."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, tzinfo
from typing import Any

from migrate.config import Redact
from migrate.headers import allowed, without_credentials
from migrate.redact import Redactor
from migrate.sampling import body_key, digest
from migrate.store import Rows, encode
from replay.decoding import observe
from replay.exchange import Answer, Arm, Ending, Failure, Observation, Recording, Request, Timing
from replay.formats import FORMATS, groups, read, read_lines
from replay.formats.record import Call, Item, Record, Reply, Skip, Use
from replay.formats.sources import Source
from replay.values import compact

SHOWN = 5
"""Skips that are told one by one, and the places that are told of each reason."""
_REBUILT = frozenset(("response-rebuilt", "stream-joined"))
_BATCH, _BATCH_BYTES = 200, 2**20
_HIDDEN = re.compile(rb"\[[a-z]+:[a-p]{12}\]")


Batch = list[Any]
"""Numbered lines that are not read yet, or items."""


@dataclass(frozen=True, slots=True)
class Part:
    """A batch, and the file that its numbers are of; empty where there is one alone, or they are of several together."""

    rows: Batch
    source: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How the records of an import are taken; the same in each of its processes."""

    form: str
    """The format."""
    run: str
    rules: Redact
    salt: bytes = field(repr=False)
    """Of the placeholders."""
    model: str | None = None
    """Asked for where a record names none."""
    zone: tzinfo = UTC
    """Of times that name none."""
    strict: bool = False
    """A batch ends at the first record that cannot be used."""
    unread: bool = False
    """Batches hold lines."""


@dataclass(slots=True)
class Tally:
    """What became of records."""

    taken: Counter[str] = field(default_factory=Counter)
    """By source, as ``Part`` names it."""
    answered: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    notes: Counter[str] = field(default_factory=Counter)
    places: dict[str, list[str]] = field(default_factory=dict)
    """By the reason of a skip, where the first ones were."""

    def skip(self, skip: Skip, source: str) -> None:
        """Counts one; ``source``: as in ``Part``."""
        self.skipped[skip.reason] += 1
        self._place(skip.reason, [f"{source} record {skip.line}".lstrip()])

    def add(self, other: Tally) -> None:
        """Counts the other's too, which come later."""
        self.taken.update(other.taken)
        self.answered += other.answered
        self.skipped.update(other.skipped)
        self.notes.update(other.notes)
        for reason, places in other.places.items():
            self._place(reason, places)

    def _place(self, reason: str, places: list[str]) -> None:
        known = self.places.setdefault(reason, [])
        known += places[: SHOWN - len(known)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """What became of a batch: the rows to store, and its first skips."""

    rows: Rows
    tally: Tally
    skips: tuple[Skip, ...]
    source: str


def unread(form: str) -> bool:
    """Whether lines of a format can be read apart from their file, and so by another process."""
    return FORMATS[form].by_line


def batches(sources: Sequence[Source], form: str, *, zone: tzinfo = UTC) -> Iterator[Part]:
    """The lines, where ``unread``, or the items of sources, some at a time."""
    for group in groups(sources, form):
        rows = group[0].lines() if unread(form) else read(group, form, zone)
        name = group[0].name if len(group) < len(sources) else ""
        yield from (Part(batch, name) for batch in batched(rows))


def batched(rows: Iterator[Any]) -> Iterator[Batch]:
    """Rows, some at a time: at most 200, and lines of at most about 1 MiB."""
    batch: Batch = []
    size = 0
    for row in rows:
        batch.append(row)
        if isinstance(row, tuple) and isinstance(row[1], bytes):
            size += len(row[1])
        if len(batch) == _BATCH or size >= _BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


class Importer:
    """Makes rows of parts, redacted. A function of the plan and the part."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._redactor = Redactor(plan.rules, plan.salt)

    def __call__(self, part: Part) -> Taken:
        plan, tally = self._plan, Tally()
        records: list[Request | Observation] = []
        skips: list[Skip] = []
        items: Iterable[Item] = read_lines(part.rows, plan.form, plan.zone) if plan.unread else part.rows
        for item in items:
            taken = self._taken(item, tally)
            if not isinstance(taken, Skip):
                records += taken
                tally.taken[part.source] += 1
                continue
            tally.skip(taken, part.source)
            skips += [taken] if len(skips) < SHOWN else []
            if plan.strict:
                break
        rows = encode(plan.run, records)
        return Taken(rows=rows, tally=tally, skips=tuple(skips), source=part.source)

    def _taken(self, item: Item, tally: Tally) -> Skip | list[Request | Observation]:
        if isinstance(item, Skip):
            return item
        line = item.line
        if item.use is Use.TIMING or item.request is None:
            detail = "times and lengths without a request; give requests with --prompts"
            return Skip(line=line, reason="times-only", detail=detail)
        if item.model is None and self._plan.model is None:
            return Skip(line=line, reason="model-missing", detail="no model is named; give one with --model")
        request = self._request(item, item.request)
        seen = observed(item, request.id)
        tally.answered += seen is not None
        tally.notes.update(item.notes)
        return [request] if seen is None else [request, self._redactor.observation(seen)]

    def _request(self, record: Record, asked: Call) -> Request:
        body: Any = asked.body
        if record.model is None and isinstance(body, dict):
            body = {"model": self._plan.model, **body}
        alone = f"{record.line}:{_place(record)}"
        conversation = record.session or (
            body_key("conversation", body, alone) if isinstance(body, dict) else alone
        )
        request = Request(
            id="",
            at=_place(record),
            method=asked.method,
            path=without_credentials(asked.path),
            headers=allowed(asked.headers),
            body=compact(body).encode(),
            conversation=digest(conversation),
        )
        kept, _ = self._redactor.request(request)
        return replace(kept, id=_name(self._plan.form, record, kept.body))


def _name(form: str, record: Record, body: bytes) -> str:
    """What a request is called whenever its log is imported, under whatever name, salt and together with whatever else: its
    place, its time, and what may be stored of its body without the placeholders.

    The place comes first: ids that grow are stored several times faster.
    """
    told = f"{form}\0{record.captured_at}\0{record.offset_s}\0".encode()
    hidden = _HIDDEN.sub(b"[]", body)
    return f"{record.line:08x}{hashlib.blake2b(told + hidden, digest_size=12).hexdigest()}"


def _place(record: Record) -> float:
    """When the request was sent. Requests from a source without dates are placed by seconds from its start."""
    if record.captured_at is not None:
        return record.captured_at
    return record.offset_s if record.offset_s is not None else record.line * 1e-3


def observed(record: Record, request_id: str) -> Observation | None:
    """What the log says of the answer, as an observation of the baseline; ``None`` when it says nothing.

    A failure needs no body: its status says it. No finding about the wire rests on an answer that was put together from fields.
    """
    said = record.response
    if said is None or record.request is None:
        return None
    if said.body is None and said.stream is None and (said.status or 0) < 400:
        return None
    recording, path = _recording(record, said), record.request.path
    seen = observe(recording, request_id=request_id, arm=Arm.BASELINE, at=_place(record), path=path)
    answer, failure = seen.answer, seen.failure
    if not recording.chunks or not _REBUILT.isdisjoint(record.notes):
        answer, failure = _without_wire(answer, failure)
    timed = said.stream is not None and any(at is not None for at, _ in said.stream)
    timing = Timing(
        head_s=record.ttfb_s,
        ttft_s=seen.timing.ttft_s if timed else record.ttft_s,
        e2e_s=record.duration_s,
        content_times=seen.timing.content_times if timed else (),
    )
    return replace(
        seen, answer=answer, failure=failure, timing=timing, reason=seen.reason or "imported", raw=None
    )


def _recording(record: Record, said: Reply) -> Recording:
    """The answer as a socket would have seen it, as far as the log says."""
    if said.stream is not None:
        kind = "text/event-stream"
        pieces = tuple((at or 0.0, text.encode("utf-8", "surrogatepass")) for at, text in said.stream)
    else:
        kind = "application/json"
        body = said.body if isinstance(said.body, str) else compact(said.body)
        pieces = () if said.body is None else ((0.0, body.encode("utf-8", "replace")),)
    known = any(name.lower() == "content-type" for name, _ in said.headers)
    return Recording(
        sent_at=0.0,
        head_at=record.ttfb_s,
        status=said.status if said.status is not None else 200,
        headers=said.headers if known else (*said.headers, ("Content-Type", kind)),
        chunks=pieces,
        ended_at=record.duration_s or 0.0,
        ending=Ending.COMPLETE,
    )


def _without_wire(answer: Answer | None, failure: Failure | None) -> tuple[Answer | None, Failure | None]:
    """Without what only bytes from a wire can show."""
    return (
        replace(answer, oddities=()) if answer is not None and answer.oddities else answer,
        None if failure is None else replace(failure, envelope=""),
    )
