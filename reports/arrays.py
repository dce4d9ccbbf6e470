"""Columns straight from arrays of measured pairs, without a ``Pair`` for each. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from replay.exchange import Outcome
from reports.columns import CODE, RATES, Answers, Columns, coded
from reports.stats import Floats


def of_arrays(
    at: Floats,
    *,
    baseline: Mapping[str, NDArray[Any]],
    candidate: Mapping[str, NDArray[Any]],
    repeat: Mapping[str, NDArray[Any]] | None = None,
    differs: NDArray[np.int8] | None = None,
    repeat_differs: NDArray[np.int8] | None = None,
    session: NDArray[np.int64] | None = None,
    labels: Mapping[str, Sequence[str | None]] | None = None,
) -> Columns:
    """The columns of measured pairs that are arrays already, all as long as ``at`` (epoch seconds, in any order).

    An arm has ``outcome`` (indices into ``tuple(Outcome)``) and may have ``e2e_s``, ``ttft_s`` and ``output_tokens``, NaN
    where they did not happen. ``differs``: 1 yes, 0 no, -1 not scored. ``session``: a number per session, negative for a
    pair of its own. A pair with a TTFT was streamed. Raises ValueError for a time that is NaN, and for infinite or negative
    numbers.
    """
    size = len(at)
    order = np.argsort(at, kind="stable")
    old, new = _arm(baseline, "baseline", order), _arm(candidate, "candidate", order)
    again = _arm(repeat or {}, "baseline repeat", order)
    found = [(name, *coded(list(values))) for name, values in sorted((labels or {}).items())]
    return Columns(
        position=np.arange(size, dtype=np.int32),
        at=_checked(np.asarray(at, dtype=np.float64), "at", unknown=False)[order],
        baseline=old,
        candidate=new,
        repeat=again,
        repeated=~again.missing,
        session=_sessions(session, order),
        streamed=np.isfinite(old.ttft) | np.isfinite(new.ttft),
        comparable=np.ones(size, dtype=np.bool_),
        differs=_scored(differs, order),
        repeat_differs=_scored(repeat_differs, order),
        differs_by=np.zeros(size, dtype=np.int32),
        repeat_differs_by=np.zeros(size, dtype=np.int32),
        versions=(),
        traits=RATES,
        slices=np.stack([places[order] for *_, places in found], axis=1).astype(np.int32)
        if found
        else np.empty((size, 0), dtype=np.int32),
        dimensions=tuple((name, values) for name, values, _ in found),
    )


def _sessions(session: NDArray[np.int64] | None, order: NDArray[np.int64]) -> NDArray[np.int64]:
    """A pair of its own has a number that no other has."""
    own = -1 - np.arange(len(order))
    if session is None:
        return own
    given = np.asarray(session, dtype=np.int64)[order]
    return np.where(given < 0, own, given)


def _arm(arm: Mapping[str, NDArray[Any]], name: str, order: NDArray[np.int64]) -> Answers:
    size = len(order)
    never = np.full(size, np.nan)

    def numbers(key: str) -> Floats:
        return _checked(np.asarray(arm.get(key, never), dtype=np.float64), f"{name}.{key}")[order]

    outcome = np.asarray(arm.get("outcome", np.full(size, CODE[Outcome.NOT_SENT])), dtype=np.int8)
    no = np.zeros(size, dtype=np.bool_)
    return Answers(
        outcome=outcome[order],
        withheld=no,
        retried=no,
        e2e=numbers("e2e_s"),
        ttft=numbers("ttft_s"),
        cached=never,
        itl=never,
        cost=never,
        characters=never,
        tokens=numbers("output_tokens"),
        version=np.full(size, -1, dtype=np.int32),
        traits=np.full((size, len(RATES)), -1, dtype=np.int8),
    )


def _checked(values: Floats, what: str, *, unknown: bool = True) -> Floats:
    bad = np.isinf(values) | (values < 0) | (np.isnan(values) & (not unknown))
    if bad.any():
        raise ValueError(f"{what} is {values[int(np.argmax(bad))]!r}; it must be finite and not negative")
    return values


def _scored(values: NDArray[np.int8] | None, order: NDArray[np.int64]) -> NDArray[np.int8]:
    if values is None:
        return np.full(len(order), -1, dtype=np.int8)
    return np.asarray(values, dtype=np.int8)[order]
