"""Pairs as columns: what the judge computes on, in time order. Built once per judgement, or straight from a store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from replay.exchange import Outcome
from reports.judgement import Measured, Pair
from reports.stats import Flags, Floats

BREAKER = "breaker_open"
"""The reason of a copy that was withheld because the candidate had just failed several times in a row."""

_CODE = {outcome: code for code, outcome in enumerate(Outcome)}
_FAILED: Flags = np.array([outcome.failed for outcome in Outcome])
_MISSING: Flags = np.array([outcome.missing for outcome in Outcome])


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """One arm. Latencies in seconds, NaN where they did not happen."""

    outcome: NDArray[np.int8]
    """Index into ``tuple(Outcome)``."""
    withheld: Flags
    retried: Flags
    e2e: Floats
    ttft: Floats
    cached: Floats
    """Share of the prompt's tokens that came out of the server's prefix cache; NaN where it does not say."""

    @property
    def failed(self) -> Flags:
        """Asked, and did not deliver."""
        return _FAILED[self.outcome]

    @property
    def missing(self) -> Flags:
        """Nothing is known about the backend."""
        return _MISSING[self.outcome]

    @property
    def answered(self) -> Flags:
        """Delivered an answer."""
        return self.having(Outcome.OK)

    def having(self, outcome: Outcome) -> Flags:
        """Where the outcome is this one."""
        return np.equal(self.outcome, _CODE[outcome], dtype=np.bool_)


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """All pairs, ordered by time of dispatch, then id."""

    position: NDArray[np.int64]
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

    def __len__(self) -> int:
        return int(self.at.size)

    def take(self, where: NDArray[Any]) -> Columns:
        """The rows at ``where``: a mask or indices."""
        return Columns(**_cut(self, where))


def _cut(table: Columns | Answers, where: NDArray[Any]) -> dict[str, Any]:
    parts = {field.name: getattr(table, field.name) for field in fields(table)}
    return {
        name: Answers(**_cut(part, where)) if isinstance(part, Answers) else part[where]
        for name, part in parts.items()
    }


_NONE = Measured(outcome=Outcome.NOT_SENT)


def columns(pairs: Sequence[Pair]) -> Columns:
    """The columns of ``pairs``. Raises ValueError for a time or latency that is NaN, infinite or negative."""
    pairs = sorted(pairs, key=lambda pair: (pair.at, pair.id))
    repeats = [pair.repeat for pair in pairs]
    return Columns(
        position=np.arange(len(pairs)),
        at=_numbers([pair.at for pair in pairs], "at", pairs),
        baseline=_answers([pair.baseline for pair in pairs], "baseline", pairs),
        candidate=_answers([pair.candidate for pair in pairs], "candidate", pairs),
        repeat=_answers([repeat or _NONE for repeat in repeats], "baseline repeat", pairs),
        repeated=_flags([repeat is not None and not repeat.outcome.missing for repeat in repeats]),
        session=_sessions(pairs),
        streamed=_flags([pair.streamed for pair in pairs]),
        comparable=_flags([pair.not_comparable is None for pair in pairs]),
        differs=_labels([pair.differs for pair in pairs]),
        repeat_differs=_labels([pair.repeat_differs for pair in pairs]),
    )


def _answers(arm: list[Measured], name: str, pairs: Sequence[Pair]) -> Answers:
    return Answers(
        outcome=np.array([_CODE[one.outcome] for one in arm], dtype=np.int8),
        withheld=_flags([one.outcome.missing and one.reason == BREAKER for one in arm]),
        retried=_flags([one.attempts > 1 for one in arm]),
        e2e=_numbers([one.e2e_s for one in arm], f"{name}.e2e_s", pairs),
        ttft=_numbers([one.ttft_s for one in arm], f"{name}.ttft_s", pairs),
        cached=_numbers([one.cached for one in arm], f"{name}.cached", pairs),
    )


def _numbers(values: Sequence[float | None], what: str, pairs: Sequence[Pair]) -> Floats:
    """``None`` becomes NaN; a NaN that was given is refused, or it would pass every comparison in silence."""
    column = np.array([0.0 if value is None else value for value in values], dtype=np.float64)
    bad = ~np.isfinite(column) | (column < 0)
    if bad.any():
        first = int(np.flatnonzero(bad)[0])
        raise ValueError(
            f"pair {pairs[first].id!r}: {what} is {values[first]!r}; it must be finite and not negative"
        )
    column[_flags([value is None for value in values])] = np.nan
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


def _labels(values: list[bool | None]) -> NDArray[np.int8]:
    return np.array([-1 if value is None else int(value) for value in values], dtype=np.int8)
