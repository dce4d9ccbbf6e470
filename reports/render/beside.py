"""What stands beside the rules, short: what broke or moved, and how much was looked at. The JSON has every row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from reports.benchmark import Server
from reports.document import Document
from reports.render.words import count

_SHOWN = 5
_TRAITS = {
    "characters": "characters an answer",
    "tokens": "tokens an answer",
    "repetition": "answers that repeat themselves without end",
    "truncation": "answers cut off at their token limit",
    "refusal": "refusals",
    "tool_calls": "answers that call tools",
    "valid_json": "valid JSON where it was asked for",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """One of slices, quality, labels and servers."""

    name: str
    remarkable: tuple[str, ...]
    """What broke, moved or is too noisy, a line each; not escaped."""
    counts: str


def beside(document: Document) -> tuple[Beside, ...]:
    """Slices, quality, labels and the servers' own view, as far as there are any."""
    return tuple(part for find in (_slices, _quality, _labels, _servers) for part in find(document))


def trait(name: str) -> str:
    """What a row of quality counts, for people."""
    language = name.removeprefix("language:")
    return _TRAITS.get(name, name) if language == name else f"answers in {language}"


def _slices(document: Document) -> Iterator[Beside]:
    found = document.slices
    if not found.rows:
        return
    counts = f"{count(found.tested)} rules tested within slices, {_some(len(found.broke))} broke"
    if not found.tested:
        counts = "no two kinds of requests with enough pairs to test a rule within each"
    parts = [
        f"{count(n)} {what}"
        for n, what in ((found.too_thin, "too thin"), (found.too_noisy, "too noisy"))
        if n
    ]
    yield Beside(
        name="slices",
        remarkable=_first(f"{row.dimension} {row.value}: {row.reason}" for row in found.broke),
        counts="; ".join([counts, *parts]),
    )


def _quality(document: Document) -> Iterator[Beside]:
    moved = [drift for drift in document.quality if drift.named]
    if document.quality:
        yield Beside(
            name="quality",
            remarkable=_first(f"{trait(drift.name)}: {drift.reason}" for drift in moved),
            counts=f"{len(document.quality)} traits of answers counted in both arms, {_some(len(moved))} moved",
        )


def _labels(document: Document) -> Iterator[Beside]:
    grave = [label for label in document.labels if label.named or label.too_noisy]
    if document.labels:
        named = sum(label.named for label in grave)
        noisy = sum(label.too_noisy for label in grave)
        too_noisy = f", {noisy} too noisy to gate on" if noisy else ""
        yield Beside(
            name="labels",
            remarkable=_first(f"{label.label}: {label.reason}" for label in grave),
            counts=f"labels by which answers differ: {len(document.labels)}, {_some(named)} above the margin{too_noisy}",
        )


def _servers(document: Document) -> Iterator[Beside]:
    said = tuple(f"{arm}: {words}" for arm, one in document.told.items() if (words := one.words))
    load = tuple(f"{arm}: {_stated(seen)}" for arm, seen in document.servers.items())
    if said or load:
        counts = "means, and the largest seen, as their own metrics said" if load else "their own words"
        yield Beside(name="servers", remarkable=(*said, *load), counts=counts)


def _stated(seen: Server) -> str:
    """What a server said; what it did not is left out."""
    said = (
        (seen.running_mean, "running {:.1f}"),
        (seen.running_max, "at most {:.0f}"),
        (seen.waiting_mean, "waiting {:.1f}"),
        (seen.waiting_max, "at most {:.0f}"),
        (seen.kv_cache_max, "KV cache up to {:.0%}"),
        (seen.prefix_hit_share, "prefix hits {:.0%}"),
        (seen.queue_mean_s, "queue {:.3f} s"),
        (seen.preemptions, "preempted {:.0f}"),
    )
    return ", ".join(words.format(value) for value, words in said if value is not None)


def _first(lines: Iterable[str]) -> tuple[str, ...]:
    found = list(lines)
    more = len(found) - _SHOWN
    return (*found[:_SHOWN], f"and {more} more") if more > 0 else tuple(found)


def _some(number: int) -> str:
    return str(number) if number else "none"
