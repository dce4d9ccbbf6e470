"""Where requests and their copies went: one set of words for ``/status``, the live page, ``/metrics`` and the terminal. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from migrate.tap import OUTCOMES
from replay.exchange import JSON

_LOST = ("queue_full", "mirror_down", "tap_failed")
_NOT_SENT = "not_sent."


def withheld(mirror: JSON) -> dict[str, int]:
    """Mirrored requests that the candidate was not asked, by reason, the most frequent first. The store says so of each.

    ``mirror``: its status, empty before the first.
    """
    counters = mirror.get("counters", {})
    return _occurred(
        {name.removeprefix(_NOT_SENT): counters[name] for name in counters if name.startswith(_NOT_SENT)}
    )


def lost(counters: Mapping[str, int], mirror: JSON) -> dict[str, int]:
    """Requests of which there is neither a copy nor a record, by reason; ``mirror_full``: its memory was taken."""
    full = mirror.get("counters", {}).get("mirror_full", 0)
    return _occurred({name: counters[name] for name in _LOST} | {"mirror_full": full})


def summary(status: JSON) -> str:
    """``/status`` in one line: what passed, was mirrored, withheld, lost, and why the others were not mirrored."""
    counters, mirror = status["counters"], status["mirror"]
    rest = [name for name in OUTCOMES if name != "mirrored" and name not in _LOST and counters[name]]
    parts = [f"passed {counters['passed']:,}", f"mirrored {counters['mirrored']:,}"]
    parts += _told("withheld", withheld(mirror))
    parts += _told("lost", lost(counters, mirror))
    parts += [f"{_words(name)} {counters[name]:,}" for name in rest]
    return " · ".join(parts)


def _told(what: str, reasons: Mapping[str, int]) -> Iterator[str]:
    if reasons:
        each = ", ".join(f"{_words(name)} {count:,}" for name, count in reasons.items())
        yield f"{what} {sum(reasons.values()):,} ({each})"


def _words(name: str) -> str:
    return name.replace("_", " ").replace(".", ": ")


def _occurred(reasons: Mapping[str, int]) -> dict[str, int]:
    return dict(sorted(((name, n) for name, n in reasons.items() if n), key=lambda one: -one[1]))
