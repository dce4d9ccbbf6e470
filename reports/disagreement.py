"""Disagreement above the noise floor: how often the candidate differs, less how often the baseline differs from itself.

Where the baseline's repeats differ too often by fine labels (the words), only the coarser ones decide (values, shape, end).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from reports.columns import Columns
from reports.labels import (
    ALIKE,
    FINEST,
    LABELS,
    NOISE_LIMIT,
    TRANSPORT,
    UNSAID,
    Bits,
    fallback,
    names,
    quiet_level,
    ranks,
)
from reports.reading import Frame, Reading, Unread, share_reading
from reports.stats import Flags

FEWEST_REPEATS = 20
"""Below this the noise is not known well enough to call it too high."""
_UNSAID = 1 << LABELS.index(UNSAID)


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeated:
    """The pairs with a repeat whose baseline answered, and by which labels each arm differs from it."""

    columns: Columns
    candidate: Bits
    repeat: Bits
    missing: int
    """Pairs of this kind that could not be scored."""


def repeated(columns: Columns) -> Repeated:
    """An arm that failed where the baseline answered serves the user differently."""
    columns = columns.take(columns.repeated & columns.comparable & columns.baseline.answered)
    candidate, scored = differences(columns)
    repeat = np.where(
        columns.repeat.failed, TRANSPORT, _labelled(columns.repeat_differs, columns.repeat_differs_by)
    )
    known = scored & (columns.repeat.failed | (columns.repeat_differs >= 0))
    return Repeated(
        columns=columns.take(known),
        candidate=candidate[known],
        repeat=repeat[known],
        missing=int((~known).sum()),
    )


NO_REPEATS = "no baseline repeats among the pairs that count: the noise floor is unknown"


def differences(columns: Columns) -> tuple[Bits, Flags]:
    """By which labels each candidate's answer differs, and where that is known."""
    found = np.where(columns.candidate.failed, TRANSPORT, _labelled(columns.differs, columns.differs_by))
    known: Flags = (columns.candidate.failed | (columns.differs >= 0)) & ~columns.candidate.missing
    return found.astype(np.int32), known


def _labelled(differs: np.ndarray, by: Bits) -> Bits:
    found: Bits = np.where(differs > 0, np.where(by == 0, _UNSAID, by), 0).astype(np.int32)
    return found


def read_disagreement(columns: Columns, frame: Frame) -> Reading | Unread:
    """Sign = 1{candidate differs} - 1{baseline repeat differs}, at the finest level that is quiet enough."""
    margin = frame.policy.disagreement.margin
    if not columns.repeated.any():
        return Unread(reason=NO_REPEATS, margin=margin)
    found = repeated(columns)
    every = _reading(found, FINEST, frame)
    noise = np.bincount(ranks(found.repeat), minlength=ALIKE + 1)
    level = int(quiet_level(noise)) if found.repeat.size >= FEWEST_REPEATS else FINEST
    if level == FINEST:
        return every
    differing = f"the baseline differs from its own repeat in {1 - noise[ALIKE] / found.repeat.size:.1%}"
    if level < 1:
        return Unread(reason=f"too noisy to gate on anything: {differing}; {_shown(every)}", margin=margin)
    seen = int(np.bitwise_or.reduce(found.repeat | found.candidate))
    dropped = ", ".join(names(seen & ~_upto(level)))
    note = (
        f"too noisy to gate on {dropped} ({differing}, at most {NOISE_LIMIT:.0%} may): "
        f"falling back to {fallback(level, seen)} and coarser labels"
    )
    return replace(_reading(found, level, frame), finer=every, note=note)


def _shown(every: Reading) -> str:
    low, high = every.bounds()
    return f"the candidate differs in {every.candidate or 0:.1%}, which is {low:+.1%} to {high:+.1%} more"


def _upto(level: int) -> int:
    return (1 << level + 1) - 1


def _reading(found: Repeated, level: int, frame: Frame) -> Reading:
    return share_reading(
        found.columns,
        ranks(found.repeat) <= level,
        ranks(found.candidate) <= level,
        missing=found.missing,
        margin=frame.policy.disagreement.margin,
        frame=frame,
    )
