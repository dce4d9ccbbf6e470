"""Spans of a trace, whoever wrote them: what the dialects of OpenTelemetry have in common. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from replay.formats.fields import Unusable, status_in, status_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that was noted within a span, or logged with its id."""

    name: str
    at: float | None
    attributes: Mapping[str, Any]
    body: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """One operation. Times are epoch seconds; ``attributes`` have dotted names, ``events`` are in the order of time."""

    attributes: Mapping[str, Any]
    events: tuple[Event, ...] = ()
    start: float | None = None
    end: float | None = None
    trace: str | None = None
    failed: bool = False
    message: str = ""
    """What its status says."""
    dropped: bool = False
    """Whether attributes or events were left out because there were too many."""

    @property
    def status(self) -> int | None:
        """The status of a call that failed, as far as anything in the span names one."""
        told = [self.attributes.get("http.response.status_code"), self.attributes.get("error.type")]
        known = next((status for value in told if (status := status_of(value) or 0) >= 400), None)
        thrown = [
            f"{event.attributes.get('exception.type')} {event.attributes.get('exception.message')}"
            for event in self.events
            if event.name == "exception"
        ]
        return known or status_in(" ".join([str(self.attributes.get("error.type")), self.message, *thrown]))


def numbered(fields: Mapping[str, Any], prefix: str) -> list[dict[str, Any]]:
    """What stands under ``prefix.0.…``, ``prefix.1.…``: a mapping for each number. Raises Unusable where one is missing."""
    found: dict[int, dict[str, Any]] = {}
    for name, value in fields.items():
        if name.startswith(prefix + "."):
            number, _, rest = name[len(prefix) + 1 :].partition(".")
            if number.isascii() and number.isdecimal() and len(number) < 10:
                found.setdefault(int(number), {})[rest] = value
    if sorted(found) != list(range(len(found))):
        raise Unusable("request-truncated", f"some of {prefix} are missing")
    return [found[number] for number in range(len(found))]


def flat(value: Any, prefix: str = "") -> dict[str, Any]:
    """Attributes under dotted names, whether they were nested or not."""
    if isinstance(value, dict):
        children = [(str(name), child) for name, child in value.items()]
    elif isinstance(value, list) and any(isinstance(child, dict) for child in value):
        children = [(str(number), child) for number, child in enumerate(value)]
    else:
        return {prefix: value}
    return {
        name: leaf
        for key, child in children
        for name, leaf in flat(child, f"{prefix}.{key}" if prefix else key).items()
    }
