"""A whole run in columns, put together from sheets: what is judged, and what a report counts, draws and names. Pure."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from replay.exchange import JSON, Arm
from reports.causes import Cause, together
from reports.columns import LANGUAGE, MOST_VALUES, RATES, Answers, Columns, in_order, most_frequent
from reports.counted import Counted, Counting
from reports.judgement import Severity
from reports.sheets import ARMS, LABELLED, OF_A_PAIR, OF_AN_ARM, Sheet, sheet
from reports.shown import Item
from reports.stats import Flags, Floats


class Names:
    """The ids of pairs by their place; kept as one text, because of a million hardly any is asked for."""

    def __init__(self) -> None:
        self._text = bytearray()
        self._ends = array("Q", [0])

    def add(self, names: Sequence[str]) -> None:
        """Of the next pairs."""
        for name in names:
            self._text += name.encode("utf-8", "surrogatepass")
            self._ends.append(len(self._text))

    def __getitem__(self, place: int) -> str:
        name = self._text[self._ends[place] : self._ends[place + 1]]
        return name.decode("utf-8", "surrogatepass")


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
    leading: NDArray[np.int32]
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

    def label(self, dimension: str) -> tuple[tuple[str, ...], NDArray[np.signedinteger[Any]]]:
        """A dimension's values, and the place of each pair's among them; -1 where it is not known."""
        for column, (name, values) in enumerate(self.columns.dimensions):
            if name == dimension:
                return values, self.columns.slices[:, column]
        return (), np.full(len(self), -1, dtype=np.int32)


def of_items(items: Sequence[Item]) -> Gathered:
    """Items that are at hand."""
    return gather([sheet(items)])


def gather(sheets: Iterable[Sheet]) -> Gathered:
    """Sheets that follow each other in time; each may be forgotten when the next one is read."""
    whole = _Growing()
    for page in sheets:
        whole.add(page)
    if not whole.size:
        whole.add(sheet(()))
    return Gathered(
        columns=_columns(whole),
        ids=whole.ids,
        severity=whole.take("severity"),
        similarity=whole.take("similarity"),
        leading=whole.take("leading"),
        prompt=whole.take("prompt"),
        system=whole.take("system"),
        answer={arm: whole.take(f"{name}.answer") for arm, name in ARMS.items()},
        prompt_tokens={arm: whole.take(f"{name}.prompt_tokens") for arm, name in ARMS.items()},
        gaps={
            arm: Timed(requests=whole.with_gaps[name], seconds=whole.gaps[name].all())
            for arm, name in ARMS.items()
        },
        causes=whole.causes,
    )


_ROOM = 2**20
"""Rows for which there is room from the beginning. What is not filled takes no memory."""


class _Growing:
    """Arrays that get longer with each sheet, in place: a run is never held twice."""

    def __init__(self) -> None:
        self.size = 0
        self.ids = Names()
        self.gaps = {name: Counting() for name in ARMS.values()}
        self.with_gaps = dict.fromkeys(ARMS.values(), 0)
        self.causes: tuple[Cause, ...] = ()
        self._words: dict[str, dict[str, int]] = {}
        """What the codes in an array stand for, by its name."""
        self._arrays: dict[str, NDArray[Any]] = {}

    def add(self, page: Sheet) -> None:
        said, rows = page.words, len(page)
        for name, part in page.arrays.items():
            words = said["codes"].get(name)
            self._put(name, part if words is None else self._places(name, words)[part], rows)
        for name in self._arrays.keys() - page.arrays.keys():  # labels that nothing on this sheet has
            self._put(name, np.full(rows, -1, dtype=np.int32), rows)
        for name in ARMS.values():
            self.gaps[name].add(page.gaps[name])
            self.with_gaps[name] += said["with_gaps"][name]
        self.causes = together([*self.causes, *map(_cause, said["causes"])])
        self.ids.add(said["ids"])
        self.size += rows

    def take(self, name: str) -> NDArray[Any]:
        """Once; a column of which nothing is known, or that says the same of all, takes no memory."""
        known = self._arrays.pop(name, None)
        if known is None:
            return np.broadcast_to(np.array(np.nan), (self.size,))
        found = known[: self.size]
        alike = found.ndim == 1 and self.size > 0 and bool((found == found[0]).all())
        return np.broadcast_to(found[0], found.shape) if alike else found

    def coded(self, name: str) -> tuple[list[str], NDArray[np.int32]]:
        """The words of an array, and the place of each pair's among them; -1 where there is none."""
        return list(self._words.get(name, ())), self.take(name)

    def labels(self) -> set[str]:
        """The dimensions that are left."""
        return {name.removeprefix(LABELLED) for name in self._arrays if name.startswith(LABELLED)}

    def _places(self, name: str, words: Sequence[str]) -> NDArray[np.int32]:
        known = self._words.setdefault(name, {})
        return np.array([*(known.setdefault(word, len(known)) for word in words), -1], dtype=np.int32)

    def _put(self, name: str, part: NDArray[Any], rows: int) -> None:
        """What nothing is known of, on this sheet or on those before, is NaN, or -1 in codes; all else is always known."""
        if name not in self._arrays:
            if rows and not len(part):
                return
            self._arrays[name] = np.empty((_ROOM, *part.shape[1:]), dtype=part.dtype)
            self._arrays[name][: self.size] = _unknown(part, self.size)
        whole, end = self._arrays[name], self.size + rows
        if end > len(whole):
            whole.resize((2 * end, *part.shape[1:]), refcheck=False)
        whole[self.size : end] = part if len(part) == rows else _unknown(part, rows)


def _unknown(part: NDArray[Any], rows: int) -> NDArray[Any]:
    value = {"f": np.nan, "i": -1}.get(part.dtype.kind, 0)
    return np.full((rows, *part.shape[1:]), value, dtype=part.dtype)


def _columns(whole: _Growing) -> Columns:
    known, heard = zip(*(whole.coded(f"{name}.language") for name in ARMS.values()), strict=True)
    languages = _languages(known[:2], heard[:2])
    version = {name: whole.coded(f"{name}.version") for name in ARMS.values()}
    versions = tuple(sorted({one for words, _ in version.values() for one in words}))

    def arm(name: str, words: Sequence[str], said: NDArray[np.int32]) -> Answers:
        return Answers(
            **{key: whole.take(f"{name}.{key}") for key in OF_AN_ARM},
            version=_placed(versions, *version[name]),
            traits=_traits(whole.take(f"{name}.rates"), _placed(languages, words, said), len(languages)),
        )

    baseline, candidate, repeat = map(arm, ARMS.values(), known, heard)
    dimensions, slices = _slices(whole)
    of_a_pair: dict[str, Any] = {name: whole.take(name) for name in OF_A_PAIR}
    return Columns(
        position=np.arange(whole.size, dtype=np.int32),
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


def _languages(known: Sequence[Sequence[str]], heard: Sequence[NDArray[np.int32]]) -> tuple[str, ...]:
    """Those that most answers of both arms are in."""
    counts: Counter[str] = Counter()
    for words, said in zip(known, heard, strict=True):
        found = np.bincount(said + 1, minlength=len(words) + 1)[1:].tolist()
        counts.update(dict(zip(words, found, strict=True)))
    spoken = sorted((name for name, count in counts.items() if count), key=lambda name: (-counts[name], name))
    return tuple(spoken[:MOST_VALUES])


def _placed(order: Sequence[str], words: Sequence[str], codes: NDArray[np.int32]) -> NDArray[np.int32]:
    """Codes in these words, as places in their order; of a word that is not in it, the place behind the last."""
    place = {word: at for at, word in enumerate(order)}
    return np.array([*(place.get(word, len(order)) for word in words), -1], dtype=np.int32)[codes]


def _traits(rates: NDArray[np.int8], said: NDArray[np.int32], languages: int) -> NDArray[np.int8]:
    """With a column for each language, by what each answer is in."""
    traits = np.empty((len(rates), len(RATES) + languages), dtype=np.int8)
    traits[:, : len(RATES)] = rates
    for one in range(languages):
        traits[:, len(RATES) + one] = np.where(said < 0, -1, said == one)
    return traits


def _slices(whole: _Growing) -> tuple[tuple[tuple[str, tuple[str, ...]], ...], NDArray[np.int8]]:
    """The dimensions with their most frequent values, and each pair's place."""
    order, dimensions = in_order(whole.labels()), []
    slices = np.empty((whole.size, len(order)), dtype=np.int8)
    for column, name in enumerate(order):
        values, slices[:, column] = most_frequent(*whole.coded(f"{LABELLED}{name}"))
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


def _cause(said: JSON) -> Cause:
    return Cause(**said | {"severity": Severity(said["severity"])})
