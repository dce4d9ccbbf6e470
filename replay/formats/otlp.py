"""OpenTelemetry's JSON, a line for each batch: spans, with the log events that belong to them in files beside them.

Sixty-four-bit integers are texts by the rule and numbers in the wild; ids are hexadecimal, or base64 from other writers.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

from replay.exchange import JSON
from replay.formats import genai, openinference
from replay.formats.dialogue import DETAILS
from replay.formats.fields import Unusable, listed, loaded, mapping, moment, number, text
from replay.formats.record import Item, Record, each
from replay.formats.sources import Source
from replay.formats.spans import Event, Span
from replay.values import compact, too_deep

_HEX = re.compile(r"(?:[0-9a-fA-F]{16}){1,2}")
_ERROR = (2, "STATUS_CODE_ERROR")

_Logs = dict[tuple[str, str], list[bytes]]


def matches(first: JSON) -> bool:
    """Whether a first record is a batch of spans or of log events."""
    return bool({"resourceSpans", "resourceLogs"} & first.keys())


def read(sources: Sequence[Source]) -> Iterator[Item]:
    """Each span with its log events, then the events whose span is in none of the files.

    Log events are held in memory: they come in no order, and before their span or after it.
    """
    logs: _Logs = {}
    of_logs = [source for source in sources if "resourceLogs" in source.first]
    broken = [row for source in of_logs for row in _keep(source, logs)]
    spans = (
        row
        for source in sources
        if source not in of_logs
        for row in _inner(source, "resourceSpans", "scopeSpans", "spans")
    )
    yield from each(
        enumerate(chain(spans, _left(logs), broken), 1), lambda line, row: _record(line, row, logs)
    )


def _keep(source: Source, logs: _Logs) -> Iterator[Any]:
    """Keeps the log events of model calls; yields what is no log record."""
    for row in _inner(source, "resourceLogs", "scopeLogs", "logRecords"):
        if not isinstance(row, dict) or too_deep(row):
            yield row
        elif _name(row).startswith("gen_ai."):
            logs.setdefault((_id(row.get("traceId")), _id(row.get("spanId"))), []).append(
                compact(row).encode()
            )


def _left(logs: _Logs) -> Iterator[JSON]:
    """Log events that no span has asked for, once all spans were read."""
    for kept in logs.values():
        yield {"logRecords": [loaded(data) for data in kept]}


def _inner(source: Source, outer: str, middle: str, inner: str) -> Iterator[Any]:
    """The spans or log records of a source, out of two layers that say who wrote them."""
    for _, group in source.objects(outer):
        if not isinstance(group, dict) or not isinstance(group.get(middle), list):
            yield group if isinstance(group, bytes | Unusable) else Unusable("malformed", f"no {middle}")
            continue
        for scope in group[middle]:
            yield from listed(mapping(scope).get(inner))


def _record(line: int, row: JSON, logs: _Logs) -> Record:
    if "logRecords" in row:
        return _alone(line, _events(row["logRecords"]))
    span = _span(row, logs)
    kind = span.attributes.get(openinference.KIND)
    if kind is None:
        return genai.record(line, span, set())
    if kind != "LLM":
        raise Unusable("not-a-model-call", f"{openinference.KIND} {kind}")
    return openinference.record(line, span, set())


def _alone(line: int, events: tuple[Event, ...]) -> Record:
    """A call from log events alone; only the event with all details is enough for it."""
    whole = next((event for event in events if event.name == DETAILS), None)
    if whole is None:
        raise Unusable("request-missing", "log events without their span; give the file of spans too")
    return genai.record(line, Span(attributes=whole.attributes, start=whole.at), {"captured-at-end"})


def _span(row: JSON, logs: _Logs) -> Span:
    trace = _id(row.get("traceId"))
    status = mapping(row.get("status"))
    kept = logs.pop((trace, _id(row.get("spanId"))), [])
    noted = [_event(mapping(one)) for one in listed(row.get("events"))]
    return Span(
        attributes=_attributes(row.get("attributes")),
        events=(*noted, *_events(loaded(data) for data in kept)),
        start=_time(row.get("startTimeUnixNano")),
        end=_time(row.get("endTimeUnixNano")),
        trace=trace or None,
        failed=status.get("code") in _ERROR,
        message=text(status.get("message")) or "",
        dropped=any(number(row.get(name)) for name in ("droppedAttributesCount", "droppedEventsCount")),
    )


def _events(rows: Iterable[Any]) -> tuple[Event, ...]:
    """Log records as events, in the order of time."""
    events = [_event(mapping(row)) for row in rows]
    return tuple(sorted(events, key=lambda event: event.at or 0.0))


def _event(row: JSON) -> Event:
    return Event(
        name=_name(row),
        at=_time(row.get("timeUnixNano")) or _time(row.get("observedTimeUnixNano")),
        attributes=_attributes(row.get("attributes")),
        body=_value(row.get("body")),
    )


def _name(row: JSON) -> str:
    """The name of an event; older writers kept it in an attribute."""
    given = text(row.get("eventName")) or text(row.get("name"))
    return given or str(_attributes(row.get("attributes")).get("event.name"))


def _attributes(pairs: Any) -> dict[str, Any]:
    return {str(pair.get("key")): _value(pair.get("value")) for pair in map(mapping, listed(pairs))}


def _value(value: Any) -> Any:
    value = mapping(value)
    if "intValue" in value:
        found = number(value["intValue"])
        return None if found is None else int(found)
    if "arrayValue" in value:
        return [_value(one) for one in listed(mapping(value["arrayValue"]).get("values"))]
    if "kvlistValue" in value:
        return _attributes(mapping(value["kvlistValue"]).get("values"))
    return next(
        (value[name] for name in ("stringValue", "boolValue", "doubleValue", "bytesValue") if name in value),
        None,
    )


def _time(nanoseconds: Any) -> float | None:
    return moment(nanoseconds, set()) if number(nanoseconds) else None


def _id(value: Any) -> str:
    """An id in hexadecimal; empty when there is none."""
    given = text(value) or ""
    if _HEX.fullmatch(given):
        return given.lower()
    try:
        return base64.b64decode(given, validate=True).hex()
    except (binascii.Error, ValueError):
        return given
