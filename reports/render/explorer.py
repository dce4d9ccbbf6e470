"""The pairs of a report as a reader looks through them: by what can be filtered, and where their times stand. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from reports.document import Document
from reports.render.curl import curl
from reports.render.text import plain
from reports.render.wording import Part, compared
from reports.render.words import quantity
from reports.shown import Shown, Side

CHOSEN = {
    "worst": "worst",
    "finding": "some of every finding",
    "slow": "slowest",
    "unlike": "least alike",
    "slice": "some of every kind of request",
    "clean": "alike, by chance",
}
"""Why a pair is in the file, for people."""
BARS = 1_000.0
"""The width of the slower side's times."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Something to filter by."""

    key: str
    """Short, and one word."""
    text: str
    pairs: int
    """Of the file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """All that there is to filter by, the most frequent first."""

    chosen: tuple[Choice, ...]
    findings: tuple[Choice, ...]
    slices: tuple[tuple[str, tuple[Choice, ...]], ...]
    """By dimension; the route is the first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A piece of one side's time, 0 to ``BARS``."""

    kind: str
    """``head`` until the headers, ``first`` until the first token, ``stream`` until the end; ``wait`` is the longest wait within
    the stream and lies on it."""
    start: float
    width: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """One pair, ready to be written."""

    pair: Shown
    keys: str
    """Of the choices that it belongs to."""
    texts: dict[str, tuple[Part, ...]]
    """By arm."""
    spans: dict[str, tuple[Span, ...]]
    words: dict[str, str]
    """The times in words."""
    curls: dict[str, str]


def opened(document: Document) -> tuple[list[Opened], Choices]:
    """The pairs of the document, the worst first."""
    pairs = (*document.worst, *document.sample)
    keys, choices = _choices(pairs)
    return [_opened(document, pair, keys) for pair in pairs], choices


def _opened(document: Document, pair: Shown, keys: dict[tuple[str, str], str]) -> Opened:
    sides = {"baseline": pair.baseline, "candidate": pair.candidate}
    longest = max((side.e2e_s or 0.0 for side in sides.values()), default=0.0)
    return Opened(
        pair=pair,
        keys=" ".join(keys[one] for one in _kinds(pair)),
        texts=_texts(pair),
        spans={name: tuple(_spans(side, longest)) for name, side in sides.items()},
        words={name: ", ".join(_told(side)) for name, side in sides.items()},
        curls={
            arm: curl(pair.asked, target, key="BASELINE_KEY" if arm == "baseline" else None)
            for arm, target in document.targets.items()
        },
    )


def _texts(pair: Shown) -> dict[str, tuple[Part, ...]]:
    """Each side's words, those marked that differ where both answered."""
    old, new = (plain(side.text, lines=True) for side in (pair.baseline, pair.candidate))
    if pair.baseline.outcome == pair.candidate.outcome == "ok":
        return dict(zip(("baseline", "candidate"), compared(old, new), strict=True))
    return {"baseline": (Part(text=old, differs=False),), "candidate": (Part(text=new, differs=False),)}


def _spans(side: Side, longest: float) -> Iterable[Span]:
    """In the order in which they are drawn."""
    if side.e2e_s is None or not longest:
        return
    start = 0.0
    for kind, end in (("head", side.head_s), ("first", side.ttft_s), ("stream", side.e2e_s)):
        if end is not None and end > start:
            yield _span(kind, start, end, longest)
            start = end
    if side.wait_s is not None:
        yield _span("wait", *side.wait_s, longest)


def _span(kind: str, start: float, end: float, longest: float) -> Span:
    scale = BARS / longest
    return Span(kind=kind, start=round(start * scale, 1), width=round((end - start) * scale, 1))


def _told(side: Side) -> Iterable[str]:
    times = (("headers", side.head_s), ("first token", side.ttft_s), ("end", side.e2e_s))
    yield from (f"{name} {quantity(at, 's')}" for name, at in times if at is not None)
    if side.wait_s is not None:
        yield f"longest wait {quantity(side.wait_s[1] - side.wait_s[0], 's')}"


def _choices(pairs: Sequence[Shown]) -> tuple[dict[tuple[str, str], str], Choices]:
    counts = Counter(kind for pair in pairs for kind in _kinds(pair))
    order = sorted(counts, key=lambda kind: (-counts[kind], kind))
    keys = {kind: f"k{number}" for number, kind in enumerate(order)}

    def of(group: str) -> tuple[Choice, ...]:
        return tuple(
            Choice(key=keys[kind], text=kind[1], pairs=counts[kind]) for kind in order if kind[0] == group
        )

    dimensions = dict.fromkeys(name for pair in pairs for name in pair.labels)
    return keys, Choices(
        chosen=of("chosen "),
        findings=of("finding "),
        slices=tuple((name, of(name)) for name in dimensions),
    )


def _kinds(pair: Shown) -> list[tuple[str, str]]:
    """(group, value); no dimension has a name that ends in a space."""
    findings = dict.fromkeys(finding.category for finding in pair.findings)
    return [
        ("chosen ", pair.chosen),
        *(("finding ", category) for category in findings),
        *pair.labels.items(),
    ]
