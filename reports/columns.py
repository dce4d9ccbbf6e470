"""Pairs as columns: what the judge computes on, in time order. Built once per judgement, or straight from a store."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from replay.exchange import Outcome
from reports.judgement import Measured, Pair, Traits
from reports.labels import bits
from reports.slicing import DIMENSIONS
from reports.stats import Flags, Floats

BREAKER = "breaker_open"
"""The reason of a copy that was withheld because the candidate had just failed several times in a row."""

RATES = ("repetition", "truncation", "refusal", "tool_calls", "valid_json")
"""What of an answer's traits is yes or no."""
LANGUAGE = "language:"
"""Before the name of a language: the answer is in it."""
MOST_VALUES = 8
"""Values of a dimension that are looked at one by one, and languages of answers; the most frequent."""
OTHER = "all others"

CODE = {outcome: code for code, outcome in enumerate(Outcome)}
"""Of each outcome in ``Answers.outcome``."""
_FAILED = tuple(outcome for outcome in Outcome if outcome.failed)
_MISSING = tuple(outcome for outcome in Outcome if outcome.missing)


class Table:
    """Columns of equal length. Judging is mostly copying, so a part of a table cuts out a column when it is first read."""

    __slots__ = ("_of", "_rows")

    def take(self, where: NDArray[Any]) -> Self:
        """The rows at ``where``: a mask or indices."""
        if where.dtype != np.bool_:
            return self._part(where)
        rows = np.flatnonzero(where)
        if rows.size == where.size:
            return self
        if rows.size and rows[-1] - rows[0] + 1 == rows.size:  # a stretch of time needs no copy
            return self._part(slice(int(rows[0]), int(rows[-1]) + 1))
        return self._part(rows)

    def _part(self, rows: NDArray[Any] | slice) -> Self:
        part = object.__new__(type(self))
        object.__setattr__(part, "_of", self)
        object.__setattr__(part, "_rows", rows)
        return part

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """A field that is not there yet."""
            if name not in self.__dataclass_fields__:
                raise AttributeError(name)
            found = _cut(getattr(self._of, name), self._rows)
            object.__setattr__(self, name, found)
            return found


def _cut(column: Any, rows: NDArray[Any] | slice) -> Any:
    if isinstance(column, Table):
        return column._part(rows)  # noqa: SLF001 - of the same class
    if isinstance(column, tuple):
        return column
    return column[rows] if isinstance(rows, slice) else column.take(rows, axis=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers(Table):
    """One arm. Latencies in seconds, NaN where they did not happen."""

    outcome: NDArray[np.int8]
    """Index into ``tuple(Outcome)``."""
    withheld: Flags
    retried: Flags
    e2e: Floats
    ttft: Floats
    cached: Floats
    """Share of the prompt's tokens that came out of the server's prefix cache; NaN where it does not say."""
    itl: Floats
    """The p95 of an answer's gaps between content chunks: how long its reader had to wait at worst."""
    cost: Floats
    """US dollars; NaN without a price or without token counts."""
    characters: Floats
    tokens: Floats
    version: NDArray[np.int32]
    """Index into ``Columns.versions``; -1 where it is not known."""
    traits: NDArray[np.int8]
    """A column for each of ``Columns.traits``: 1 yes, 0 no, -1 not known."""

    @property
    def tpot(self) -> Floats:
        """Seconds per output token after the first: (e2e - TTFT) / (tokens - 1); NaN where one of them is not known."""
        more = np.where(self.tokens > 1, self.tokens - 1, np.nan)
        return (self.e2e - self.ttft) / more

    @property
    def failed(self) -> Flags:
        """Asked, and did not deliver."""
        return self._among(_FAILED)

    @property
    def missing(self) -> Flags:
        """Nothing is known about how well the backend serves it."""
        return self._among(_MISSING)

    @property
    def asked(self) -> Flags:
        """The backend got the request, whatever came of it."""
        return ~self.missing | self.having(Outcome.UNSERVED)

    @property
    def answered(self) -> Flags:
        """Delivered an answer."""
        return self.having(Outcome.OK)

    def having(self, outcome: Outcome) -> Flags:
        """Where the outcome is this one."""
        return np.equal(self.outcome, CODE[outcome], dtype=np.bool_)

    def _among(self, outcomes: Sequence[Outcome]) -> Flags:
        """A look at each of a few takes less than one into a table."""
        return reduce(np.logical_or, (self.having(outcome) for outcome in outcomes))


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns(Table):
    """All pairs, ordered by time of dispatch, then id."""

    position: NDArray[np.int32]
    at: Floats
    baseline: Answers
    candidate: Answers
    repeat: Answers
    repeated: Flags
    session: NDArray[np.int64]
    """A number per session; a pair without one is its own."""
    streamed: Flags
    comparable: Flags
    differs: NDArray[np.int8]
    """1 yes, 0 no, -1 not scored."""
    repeat_differs: NDArray[np.int8]
    differs_by: NDArray[np.int32]
    """The labels of the difference, a bit each (see ``reports.labels``); 0 without one."""
    repeat_differs_by: NDArray[np.int32]
    versions: tuple[str, ...]
    """What servers said of themselves, in order of name."""
    traits: tuple[str, ...]
    """Names of the columns of each arm's ``traits``."""
    slices: NDArray[np.signedinteger[Any]]
    """A column for each of ``dimensions``: an index into its values, -1 where it is not known."""
    dimensions: tuple[tuple[str, tuple[str, ...]], ...]
    """Each dimension with its values."""

    def __len__(self) -> int:
        return int(self.at.size)


_NONE = Measured(outcome=Outcome.NOT_SENT)


def columns(pairs: Sequence[Pair], *, most: int | None = MOST_VALUES) -> Columns:
    """The columns of ``pairs``. Raises ValueError for a time or latency that is NaN, infinite or negative.

    ``most``: of how many languages, and values of a dimension, is told; ``None``: of all.
    """
    pairs = sorted(pairs, key=lambda pair: (pair.at, pair.id))
    repeats = [pair.repeat or _NONE for pair in pairs]
    baselines, candidates = [pair.baseline for pair in pairs], [pair.candidate for pair in pairs]
    languages = _languages(baselines, candidates, *(() if most else (repeats,)))[:most]
    versions = _versions(baselines, candidates, repeats)
    dimensions, slices = _slices(pairs, most)
    return Columns(
        position=np.arange(len(pairs), dtype=np.int32),
        at=_numbers([pair.at for pair in pairs], "at", pairs),
        baseline=_answers(baselines, languages, versions, "baseline", pairs),
        candidate=_answers(candidates, languages, versions, "candidate", pairs),
        repeat=_answers(repeats, languages, versions, "baseline repeat", pairs),
        repeated=_flags([not repeat.outcome.missing for repeat in repeats]),
        session=_sessions(pairs),
        streamed=_flags([pair.streamed for pair in pairs]),
        comparable=_flags([pair.not_comparable is None for pair in pairs]),
        differs=_known([pair.differs for pair in pairs]),
        repeat_differs=_known([pair.repeat_differs for pair in pairs]),
        differs_by=_bits([pair.differs_by for pair in pairs]),
        repeat_differs_by=_bits([pair.repeat_differs_by for pair in pairs]),
        versions=tuple(versions),
        traits=(*RATES, *(f"{LANGUAGE}{name}" for name in languages)),
        slices=slices,
        dimensions=dimensions,
    )


def _answers(
    arm: list[Measured],
    languages: tuple[str, ...],
    versions: Mapping[str, int],
    name: str,
    pairs: Sequence[Pair],
) -> Answers:
    return Answers(
        outcome=np.array([CODE[one.outcome] for one in arm], dtype=np.int8),
        withheld=_flags([one.outcome.missing and one.reason == BREAKER for one in arm]),
        retried=_flags([one.attempts > 1 for one in arm]),
        e2e=_numbers([one.e2e_s for one in arm], f"{name}.e2e_s", pairs),
        ttft=_numbers([one.ttft_s for one in arm], f"{name}.ttft_s", pairs),
        cached=_numbers([one.cached for one in arm], f"{name}.cached", pairs),
        itl=_numbers([_worst_wait(one.itl_s) for one in arm], f"{name}.itl_s", pairs),
        cost=_numbers([one.cost_usd for one in arm], f"{name}.cost_usd", pairs),
        characters=_numbers(
            [one.traits.characters if one.traits else None for one in arm], f"{name}.characters", pairs
        ),
        tokens=_numbers([one.output_tokens for one in arm], f"{name}.output_tokens", pairs),
        version=np.array(
            [-1 if one.version is None else versions[one.version] for one in arm], dtype=np.int32
        ),
        traits=_traits([one.traits for one in arm], languages),
    )


def _versions(*arms: list[Measured]) -> dict[str, int]:
    """The number of each version."""
    known = {one.version for arm in arms for one in arm if one.version is not None}
    return {name: number for number, name in enumerate(sorted(known))}


def _worst_wait(gaps: tuple[float, ...]) -> float | None:
    """The p95; a gap that is none itself, so that it is refused."""
    if not gaps or not math.isfinite(sum(gaps)):
        return sum(gaps) if gaps else None
    ordered = sorted(gaps)
    return ordered[0] if ordered[0] < 0 else ordered[math.ceil(0.95 * len(gaps)) - 1]


def _traits(arm: list[Traits | None], languages: tuple[str, ...]) -> NDArray[np.int8]:
    """Few answers are unlike all others in this: each kind is looked at once."""
    kinds: dict[tuple[Any, ...] | None, int] = {None: 0}
    place = [kinds.setdefault(_kind(one), len(kinds)) for one in arm]
    rows = [[-1] * (len(RATES) + len(languages)) if kind is None else _row(kind, languages) for kind in kinds]
    return np.array(rows, dtype=np.int8)[place]


def _kind(one: Traits | None) -> tuple[Any, ...] | None:
    if one is None:
        return None
    return (one.repetitive, one.truncated, one.refuses, one.calls_tools, one.valid_json, one.language)


def _row(kind: tuple[Any, ...], languages: tuple[str, ...]) -> list[int]:
    *rates, language = kind
    spoken = [None if language is None else language == one for one in languages]
    return [-1 if rate is None else int(rate) for rate in (*rates, *spoken)]


def _languages(*arms: list[Measured]) -> tuple[str, ...]:
    """The languages that answers are in, the most frequent first."""
    counts = Counter(one.traits.language for arm in arms for one in arm if one.traits and one.traits.language)
    return tuple(sorted(counts, key=lambda name: (-counts[name], name)))


def _slices(
    pairs: Sequence[Pair], most: int | None
) -> tuple[tuple[tuple[str, tuple[str, ...]], ...], NDArray[np.signedinteger[Any]]]:
    """The dimensions with their most frequent values, and each pair's place; rarer values together are ``OTHER``."""
    order = in_order({name for pair in pairs for name in pair.labels})
    found = [coded([pair.labels.get(name) for pair in pairs], most) for name in order]
    kind = np.int32 if most is None else np.int8
    places = np.array([codes for _, codes in found], dtype=kind).reshape(len(order), len(pairs))
    dimensions = tuple((name, values) for name, (values, _) in zip(order, found, strict=True))
    return dimensions, np.ascontiguousarray(places.T)


def in_order(names: set[str]) -> list[str]:
    """Dimensions in the order of a report."""
    return [*(name for name in DIMENSIONS if name in names), *sorted(names - set(DIMENSIONS))]


def coded(
    column: Sequence[str | None], most: int | None = MOST_VALUES
) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    """The most frequent values, ``OTHER`` behind them where there are more, and the place of each value; -1 of ``None``."""
    seen: dict[str | None, int] = {None: 0}
    first = np.array([seen.setdefault(value, len(seen)) for value in column], dtype=np.int64)
    values = [value for value in seen if value is not None]
    return most_frequent(values, first - 1, most)


def most_frequent(
    values: Sequence[str], codes: NDArray[Any], most: int | None = MOST_VALUES
) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    """The same of values that have a code already, -1 where there is none."""
    counts = np.bincount(codes + 1, minlength=len(values) + 1)[1:]
    order = sorted(range(len(values)), key=lambda code: (-counts[code], values[code]))
    kept = tuple(values[code] for code in order[:most])
    place = np.full(len(values) + 1, len(kept))  # what is not among them is behind them
    place[[-1, *order[:most]]] = np.arange(-1, len(kept))
    return (*kept, OTHER) if len(values) > len(kept) else kept, place[codes]


def _numbers(values: Sequence[float | None], what: str, pairs: Sequence[Pair]) -> Floats:
    """``None`` becomes NaN; a NaN that was given is refused, or it would pass every comparison in silence."""
    column = np.array(values, dtype=np.float64)
    unknown = np.isnan(column)
    bad = np.isinf(column) | (column < 0)
    bad[[at for at in np.flatnonzero(unknown).tolist() if values[at] is not None]] = True
    if bad.any():
        first = int(np.flatnonzero(bad)[0])
        raise ValueError(
            f"pair {pairs[first].id!r}: {what} is {values[first]!r}; it must be finite and not negative"
        )
    return column


def _sessions(pairs: Sequence[Pair]) -> NDArray[np.int64]:
    known: dict[str, int] = {}
    numbers = [
        -place - 1 if pair.session is None else known.setdefault(pair.session, len(known))
        for place, pair in enumerate(pairs)
    ]
    return np.array(numbers, dtype=np.int64)


def _flags(values: list[bool]) -> Flags:
    return np.array(values, dtype=np.bool_)


def _bits(values: list[tuple[str, ...]]) -> NDArray[np.int32]:
    known = {names: bits(names) for names in set(values)}
    return np.array([known[names] for names in values], dtype=np.int32)


def _known(values: list[bool | None]) -> NDArray[np.int8]:
    return np.array([-1 if value is None else int(value) for value in values], dtype=np.int8)
