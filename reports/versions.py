"""Whether a server became another one while the run went on, by what its answers say of model and deployment. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from reports.columns import OTHER, Answers, Columns

_LOG_CHANCE = math.log(1e-6)
"""A relay draws from several deployments, rare ones too: only what a lasting mixture would hardly ever do is a change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """The moment from which on an arm was served by ``after``."""

    at: float
    """Epoch seconds."""
    arm: str
    before: str
    after: str


def last_change(columns: Columns) -> Change | None:
    """The last time at which a version of either arm appeared, or was seen for the last time; ``None`` without any.

    Versions are looked at within each model that was asked for. That a version is not among the first answers, or the
    last, is a change where it would happen with a chance below one in a million if all answers came in random order.
    """
    if len(columns.versions) < 2:
        return None
    groups = _models(columns)
    found = [
        change
        for name, arm in (("baseline", columns.baseline), ("candidate", columns.candidate))
        for group in groups
        for change in _changes(columns, name, arm, group)
    ]
    return max(found, key=lambda change: (change.at, change.arm), default=None)


def _models(columns: Columns) -> list[NDArray[np.int64]]:
    """The pairs of each model that was asked for; all of them where that is not known."""
    names = [name for name, _ in columns.dimensions]
    if "model" not in names:
        return [np.arange(len(columns))]
    place = names.index("model")
    values, asked = columns.dimensions[place][1], columns.slices[:, place]
    return [np.flatnonzero(asked == one) for one, name in enumerate(values) if name != OTHER]


def _changes(columns: Columns, name: str, arm: Answers, group: NDArray[np.int64]) -> Iterator[Change]:
    rows = group[arm.version[group] >= 0]
    versions = arm.version[rows]
    counts = np.bincount(versions) if versions.size else np.empty(0, np.int64)
    if np.count_nonzero(counts) < 2:
        return
    every = np.arange(rows.size)
    for version in np.flatnonzero(counts).tolist():
        of = np.flatnonzero(versions == version)
        first, last = int(of[0]), int(of[-1])
        came, went = _unlikely(every, versions, version, first, last)
        if came or went:  # so it is by answers; is it by conversations?
            heard = _heard(columns.session[rows], versions)
            came, went = _unlikely(heard, versions, version, first, last)
        if came:
            yield _change(columns, name, rows[first], _usual(versions[:first]), version)
        if went:
            yield _change(columns, name, rows[last + 1], version, _usual(versions[last + 1 :]))


def _unlikely(
    places: NDArray[np.int64], versions: NDArray[np.int32], version: int, first: int, last: int
) -> tuple[bool, bool]:
    """Whether chance hardly ever leaves so many of the answers at ``places`` before the version's first, and after its last."""
    count = int((versions[places] == version).sum())
    before, after = int((places < first).sum()), int((places > last).sum())
    return _chance(places.size, before, count) < _LOG_CHANCE, _chance(places.size, after, count) < _LOG_CHANCE


def _heard(session: NDArray[np.int64], versions: NDArray[np.int32]) -> NDArray[np.int64]:
    """The first answer of each conversation by each version: a conversation stays with one deployment and counts once."""
    places = np.arange(session.size)
    one = np.where(session < 0, -1 - places, session)
    return np.sort(np.unique(one * (int(versions.max()) + 1) + versions, return_index=True)[1])


def _chance(total: int, without: int, count: int) -> float:
    """Log chance that ``count`` of ``total`` in random order are all outside of a given ``without`` of them."""
    rest = total - without
    if count > rest:
        return 0.0
    return float(
        gammaln(rest + 1) - gammaln(rest - count + 1) - gammaln(total + 1) + gammaln(total - count + 1)
    )


def _usual(versions: NDArray[np.int32]) -> int:
    return int(np.bincount(versions).argmax())


def _change(columns: Columns, arm: str, row: int, before: int, after: int) -> Change:
    return Change(
        at=float(columns.at[row]), arm=arm, before=columns.versions[before], after=columns.versions[after]
    )
