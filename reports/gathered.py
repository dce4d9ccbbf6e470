"""A whole run in columns, put together from sheets: what is judged, and what a report counts, draws and names. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from replay.exchange import JSON, Arm
from reports.causes import Cause, together
from reports.columns import LANGUAGE, MOST_VALUES, RATES, Answers, Columns, in_order, most_frequent
from reports.counted import Counted
from reports.judgement import Severity
from reports.sheets import ARMS, OF_A_PAIR, OF_AN_ARM, Sheet, sheet
from reports.shown import Item
from reports.stats import Flags, Floats


class Names:
    """The ids of pairs by their place; kept as JSON, because of a million hardly any is asked for."""

    def __init__(self, parts: Iterable[Sequence[str]]) -> None:
        self._parts: list[bytes] = []
        starts = [0]
        for part in parts:
            self._parts.append(json.dumps(part).encode())
            starts.append(starts[-1] + len(part))
        self._starts = np.array(starts)

    def __getitem__(self, place: int) -> str:
        part = int(np.searchsorted(self._starts, place, side="right")) - 1
        name: str = json.loads(self._parts[part])[place - self._starts[part]]
        return name


@dataclass(frozen=True, slots=True, kw_only=True)
class Timed:
    """One metric of one arm over its answered requests."""

    requests: int
    """Those that have the metric."""
    seconds: Counted
    """Gaps are to the microsecond."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered:
    """All pairs in time order; an array has a value for each."""

    columns: Columns
    ids: Names
    severity: NDArray[np.int8]
    """Of the comparison, as ``compare.model.rank`` has it; -1 without one."""
    similarity: Floats
    """NaN where there is none."""
    leading: NDArray[np.int64]
    """A number for each category of the gravest finding."""
    prompt: NDArray[np.uint64]
    """Equal where the same was asked; 0 where it is not known."""
    system: Flags
    """It has a system prompt."""
    answer: dict[Arm, NDArray[np.uint64]]
    """Equal where the same was answered; 0 without an answer."""
    prompt_tokens: dict[Arm, NDArray[np.int64]]
    """As the arm counted them; 0 where it did not."""
    gaps: dict[Arm, Timed]
    """Between chunks of answers."""
    causes: tuple[Cause, ...]

    def __len__(self) -> int:
        return len(self.columns)

    def timed(self, metric: str, arm: Arm) -> Timed:
        """``metric`` is ``ttft``, ``itl`` or ``e2e``."""
        if metric == "itl":
            return self.gaps[arm]
        answers = getattr(self.columns, ARMS[arm])
        seconds = (answers.ttft if metric == "ttft" else answers.e2e)[answers.answered]
        known = seconds[~np.isnan(seconds)]
        return Timed(requests=known.size, seconds=Counted.of(known))

    def label(self, dimension: str) -> tuple[tuple[str, ...], NDArray[np.int32]]:
        """A dimension's values, and the place of each pair's among them; -1 where it is not known."""
        for column, (name, values) in enumerate(self.columns.dimensions):
            if name == dimension:
                return values, self.columns.slices[:, column]
        return (), np.full(len(self), -1, dtype=np.int32)


def of_items(items: Sequence[Item]) -> Gathered:
    """Items that are at hand."""
    return gather([sheet(items)])


def gather(sheets: Iterable[Sheet]) -> Gathered:
    """Sheets that follow each other in time. They are used up."""
    pages = list(sheets) or [sheet(())]
    whole, words = _Whole(pages), [page.words for page in pages]
    return Gathered(
        columns=_columns(whole, words),
        ids=Names(said.pop("ids") for said in words),
        severity=whole.take("severity"),
        similarity=whole.take("similarity"),
        leading=whole.coded("leading", [said["leading"] for said in words])[1],
        prompt=whole.take("prompt"),
        system=whole.take("system"),
        answer={arm: whole.take(f"{name}.answer") for arm, name in ARMS.items()},
        prompt_tokens={arm: whole.take(f"{name}.prompt_tokens") for arm, name in ARMS.items()},
        gaps={arm: _gaps(pages, name) for arm, name in ARMS.items()},
        causes=together(_cause(said) for page in words for said in page["causes"]),
    )


class _Whole:
    """Arrays of all sheets; each is handed over once, so that little is held twice."""

    def __init__(self, pages: Sequence[Sheet]) -> None:
        self._pages = pages
        self.sizes = [len(page) for page in pages]

    def take(self, name: str) -> NDArray[Any]:
        """One after the other; a column of which nothing is known takes no memory."""
        parts = self.parts(name)
        if sum(self.sizes) and not sum(map(len, parts)):
            return np.broadcast_to(np.array(np.nan), (sum(self.sizes),))
        return np.concatenate(
            [
                part if len(part) == size else np.full(size, np.nan)
                for part, size in zip(parts, self.sizes, strict=True)
            ]
        )

    def parts(self, name: str) -> list[NDArray[Any]]:
        """Each sheet's."""
        return [page.arrays.pop(name) for page in self._pages]

    def coded(self, name: str, words: Sequence[Sequence[str]]) -> tuple[list[str], NDArray[np.int64]]:
        """The words of all sheets, and the place of each pair's among them; -1 stays."""
        return _together(words, self.parts(name))


def _together(
    words: Sequence[Sequence[str]], codes: Sequence[NDArray[Any]]
) -> tuple[list[str], NDArray[np.int64]]:
    """Codes that each count in words of their own, as codes in the words of all."""
    known: dict[str, int] = {}
    places = [np.array([*(known.setdefault(one, len(known)) for one in some), -1]) for some in words]
    return list(known), np.concatenate([place[code] for place, code in zip(places, codes, strict=True)])


def _columns(whole: _Whole, words: Sequence[JSON]) -> Columns:
    spoken = [
        whole.coded(f"{name}.language", [said["languages"] for said in words]) for name in ARMS.values()
    ]
    known = spoken[0][0]  # the same for all arms
    heard = np.concatenate([codes for _, codes in spoken[:2]])
    languages = most_frequent(*_present(known, heard))[0][:MOST_VALUES]
    versions = tuple(sorted({version for said in words for version in said["versions"]}))
    dimensions, slices = _slices(whole, [dict(said["dimensions"]) for said in words])

    def arm(name: str, said: NDArray[np.int64]) -> Answers:
        version = whole.coded(f"{name}.version", [page["versions"] for page in words])
        return Answers(
            **{key: whole.take(f"{name}.{key}") for key in OF_AN_ARM},
            version=_placed(versions, *version),
            traits=_traits(whole.take(f"{name}.rates"), said, [known.index(one) for one in languages]),
        )

    baseline, candidate, repeat = (
        arm(name, said) for name, (_, said) in zip(ARMS.values(), spoken, strict=True)
    )
    of_a_pair: dict[str, Any] = {name: whole.take(name) for name in OF_A_PAIR}
    return Columns(
        position=np.arange(sum(whole.sizes)),
        baseline=baseline,
        candidate=candidate,
        repeat=repeat,
        session=_sessions(whole.take("session")),
        versions=versions,
        traits=(*RATES, *(f"{LANGUAGE}{name}" for name in languages)),
        slices=slices,
        dimensions=dimensions,
        **of_a_pair,
    )


def _present(words: Sequence[str], codes: NDArray[np.int64]) -> tuple[list[str], NDArray[np.int64]]:
    """Only words that occur."""
    counts = np.bincount(codes + 1, minlength=len(words) + 1)[1:]
    place = np.append(np.cumsum(counts > 0) - 1, -1)
    return [word for word, count in zip(words, counts, strict=True) if count], place[codes]


def _placed(order: Sequence[str], words: Sequence[str], codes: NDArray[np.int64]) -> NDArray[np.int32]:
    """Codes in these words, as places in their order."""
    return np.array([*map(order.index, words), -1], dtype=np.int32)[codes]


def _traits(rates: NDArray[np.int8], said: NDArray[np.int64], languages: Sequence[int]) -> NDArray[np.int8]:
    """With a column for each of the languages, by what each answer is in."""
    spoken = [np.where(said < 0, -1, said == one).astype(np.int8) for one in languages]
    return np.concatenate([rates, *(one[:, None] for one in spoken)], axis=1)


def _slices(
    whole: _Whole, words: Sequence[dict[str, Sequence[str]]]
) -> tuple[tuple[tuple[str, tuple[str, ...]], ...], NDArray[np.int32]]:
    """The dimensions with their most frequent values, and each pair's place."""
    codes = whole.parts("slices")
    dimensions = []
    order = in_order({name for said in words for name in said})
    slices = np.empty((sum(whole.sizes), len(order)), dtype=np.int32)
    for column, name in enumerate(order):
        found = [
            part[:, list(said).index(name)] if name in said else np.full(len(part), -1)
            for part, said in zip(codes, words, strict=True)
        ]
        values, places = most_frequent(*_together([said.get(name, ()) for said in words], found))
        slices[:, column] = places
        dimensions.append((name, values))
    return tuple(dimensions), slices


def _sessions(digests: NDArray[np.uint64]) -> NDArray[np.int64]:
    """A number per session, in the order in which they come; a pair without one is its own."""
    numbers = -1 - np.arange(digests.size)
    known = digests != 0
    _, first, place = np.unique(digests[known], return_index=True, return_inverse=True)
    number = np.empty(first.size, dtype=np.int64)
    number[np.argsort(first)] = np.arange(first.size)
    numbers[known] = number[place]
    return numbers


def _gaps(pages: Sequence[Sheet], name: str) -> Timed:
    parts = (Counted(page.arrays[f"{name}.gaps"], page.arrays[f"{name}.gap_counts"]) for page in pages)
    return Timed(
        requests=sum(page.words["with_gaps"][name] for page in pages), seconds=Counted.together(parts)
    )


def _cause(said: JSON) -> Cause:
    return Cause(**said | {"severity": Severity(said["severity"])})
