"""Phoenix's spans, as its API lists them: OpenInference with ISO times, attributes flat or nested."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from replay.exchange import JSON
from replay.formats import openinference
from replay.formats.fields import Unusable, listed, mapping, moment, text
from replay.formats.record import Item, Record, each
from replay.formats.sources import Source
from replay.formats.spans import Event, Span, flat


def matches(first: JSON) -> bool:
    """Whether a first record is one of Phoenix's spans."""
    return {"context", "span_kind", "attributes"} <= first.keys()


def read(sources: Sequence[Source]) -> Iterator[Item]:
    """Each span of each page."""
    for source in sources:
        yield from each(source.objects("data"), _record)


def _record(line: int, row: JSON) -> Record:
    if row.get("span_kind") != "LLM":
        raise Unusable("not-a-model-call", f"span_kind {row.get('span_kind')}")
    notes: set[str] = set()
    span = Span(
        attributes=flat(mapping(row.get("attributes"))),
        events=tuple(_event(mapping(one), notes) for one in listed(row.get("events"))),
        start=moment(row.get("start_time"), notes),
        end=moment(row.get("end_time"), notes),
        trace=text(mapping(row.get("context")).get("trace_id")),
        failed=row.get("status_code") == "ERROR",
        message=text(row.get("status_message")) or "",
    )
    return openinference.record(line, span, notes)


def _event(event: JSON, notes: set[str]) -> Event:
    return Event(
        name=str(event.get("name")),
        at=moment(event.get("timestamp"), notes),
        attributes=flat(mapping(event.get("attributes"))),
    )
