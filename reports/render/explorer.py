"""The pairs of a report as a reader looks through them: by what can be filtered, and where their times stand. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
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


@dataclass(frozen=True, slots=True)
class Kind:
    """What some pairs have in common, to filter by."""

    group: str
    """A dimension of requests, ``_CHOSEN`` or ``_FINDING``."""
    text: str


_CHOSEN, _FINDING = "chosen ", "finding "
"""No dimension has a name that ends in a space."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A kind that is offered."""

    key: str
    """Short, and one word."""
    text: str
    pairs: int
    """How many there are."""


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
    kinds: dict[Kind, str]
    """Its own, with their keys."""
    texts: dict[str, tuple[Part, ...]]
    """By arm."""
    spans: dict[str, tuple[Span, ...]]
    words: dict[str, str]
    """The times in words."""
    curls: dict[str, str]


def opened(document: Document) -> list[Opened]:
    """The pairs of the document, the worst first."""
    pairs = (*document.worst, *document.sample)
    known = dict.fromkeys(kind for pair in pairs for kind in _kinds(pair))
    keys = {kind: f"k{number}" for number, kind in enumerate(known)}
    return [_opened(document, pair, {kind: keys[kind] for kind in _kinds(pair)}) for pair in pairs]


def choices(some: Iterable[Opened]) -> Choices:
    """What these pairs can be filtered by."""
    counts = Counter(kind for one in some for kind in one.kinds.items())
    order = sorted(counts, key=lambda found: (-counts[found], found[0].text))

    def of(group: str) -> tuple[Choice, ...]:
        return tuple(
            Choice(key=key, text=kind.text, pairs=counts[kind, key])
            for kind, key in order
            if kind.group == group
        )

    groups = dict.fromkeys(kind.group for kind, _ in counts)
    return Choices(
        chosen=of(_CHOSEN),
        findings=of(_FINDING),
        slices=tuple((name, of(name)) for name in groups if name not in (_CHOSEN, _FINDING)),
    )


def _kinds(pair: Shown) -> dict[Kind, None]:
    return dict.fromkeys(
        [
            Kind(_CHOSEN, pair.chosen),
            *(Kind(_FINDING, finding.category) for finding in pair.findings),
            *(Kind(*label) for label in pair.labels.items()),
        ]
    )


def _opened(document: Document, pair: Shown, kinds: dict[Kind, str]) -> Opened:
    sides = {"baseline": pair.baseline, "candidate": pair.candidate}
    longest = max((side.e2e_s or 0.0 for side in sides.values()), default=0.0)
    return Opened(
        pair=pair,
        kinds=kinds,
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
