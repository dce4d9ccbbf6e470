"""Slices: the rules among the requests that share a label, so that a report can name the one that broke. Pure.

Advisory: many looks at once, controlled together by e-BH, which holds under any dependence. Evidence is trimmed as for
ROLLBACK. Time comes in as blocks that all slices share, so that each rule is read once, whatever the number of slices.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reports.advisory import Looked, Slice, Slices
from reports.columns import Columns
from reports.disagreement import FEWEST_REPEATS, repeated
from reports.intervals import share_intervals
from reports.labels import ALIKE, FINEST, NOISE_LIMIT, Ranks, quiet_level, ranks
from reports.multiplicity import e_bh
from reports.reading import Reading, Unread, signs_of
from reports.sessions import weights
from reports.stats import Floats, Grid, Signs, counts_by_block, grid_of, log_evidences_over_time
from reports.weighing import FEWEST_PAIRS, Scale, show

THIN = 50
"""A slice of fewer pairs is counted and not looked at."""
RULES = ("errors", "disagreement", "slow_share")
_WORDS = {
    "errors": "more errors",
    "disagreement": "more different answers than the noise floor",
    "slow_share": "slower than the baseline's p99",
}


def slices(columns: Columns, readings: Mapping[str, Reading | Unread], scale: Scale) -> Slices:
    """Every slice of ``columns``, the pairs that count; ``readings`` are the rules' over the same pairs."""
    groups = tuple(_groups(columns))
    rows = [row for rule, read in _reads(columns, readings) for row in _rows(rule, read, groups, scale)]
    tested = [row for row in rows if row.looked is Looked.TESTED]
    named = dict(zip(tested, e_bh(np.array([row.evidence for row in tested]), scale.alpha), strict=True))
    rows = [replace(row, named=bool(named.get(row))) for row in rows]
    return Slices(
        rows=tuple(sorted(rows, key=lambda row: -_contrast(row) if row.named else math.inf)),
        dimensions=tuple(name for name, _ in columns.dimensions),
        tested=len(tested),
        too_thin=sum(row.looked is Looked.TOO_THIN for row in rows),
        too_noisy=sum(row.looked is Looked.TOO_NOISY for row in rows),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Group:
    """The pairs of one value of one dimension."""

    dimension: str
    value: str
    column: int
    code: int
    pairs: int
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Read:
    """What one rule reads of the pairs. Signs and noise may depend on the slice that is looked at."""

    at: Floats
    slices: NDArray[np.signedinteger[Any]]
    signs: tuple[Signs, ...]
    """For each dimension."""
    weight: Floats
    margin: float
    noisy: frozenset[tuple[int, int]] = frozenset()
    """(dimension, value) in which the baseline differs too often from itself, by any label."""


def _groups(columns: Columns) -> Iterator[_Group]:
    for column, (dimension, values) in enumerate(columns.dimensions):
        pairs = _sizes(columns.slices[:, column], len(values))
        for code in np.flatnonzero(pairs):
            yield _Group(
                dimension=dimension,
                value=values[code],
                column=column,
                code=int(code),
                pairs=int(pairs[code]),
                share=float(pairs[code] / len(columns)),
            )


def _sizes(codes: NDArray[np.int32], values: int) -> NDArray[np.int64]:
    return np.bincount(codes[codes >= 0], minlength=values)


def _reads(columns: Columns, readings: Mapping[str, Reading | Unread]) -> Iterator[tuple[str, _Read]]:
    for rule in RULES:
        read = readings[rule]
        if rule == "disagreement" and columns.repeated.any():
            yield rule, _disagreement(columns, read.margin or 0.0)
        elif isinstance(read, Reading):
            places = np.searchsorted(columns.position, read.position)
            signs = (read.signs,) * len(columns.dimensions)
            cut = columns.slices[places]
            yield rule, _Read(at=read.at, slices=cut, signs=signs, weight=read.weight, margin=read.bar)


def _disagreement(columns: Columns, margin: float) -> _Read:
    """Each slice at the finest level that is quiet enough in it."""
    found = repeated(columns)
    candidate, repeat, codes = ranks(found.candidate), ranks(found.repeat), found.columns.slices
    signs, noisy = [], []
    for column, (_, values) in enumerate(columns.dimensions):
        level = _levels(codes[:, column], repeat, len(values))
        noisy += [(column, int(code)) for code in np.flatnonzero(level < 1)]
        limit = np.where(codes[:, column] >= 0, level[codes[:, column]], FINEST)
        signs.append(signs_of(candidate <= limit, repeat <= limit))
    return _Read(
        at=found.columns.at,
        slices=codes,
        signs=tuple(signs),
        weight=weights(found.columns.session),
        margin=margin,
        noisy=frozenset(noisy),
    )


def _levels(codes: NDArray[np.int32], repeat: Ranks, values: int) -> NDArray[np.int64]:
    known = codes >= 0
    keys = codes[known].astype(np.int64) * (ALIKE + 1) + repeat[known]
    by_rank = np.bincount(keys, minlength=values * (ALIKE + 1)).reshape(values, ALIKE + 1)
    return np.where(by_rank.sum(axis=1) < FEWEST_REPEATS, FINEST, quiet_level(by_rank))


def _rows(rule: str, read: _Read, groups: tuple[_Group, ...], scale: Scale) -> Iterator[Slice]:
    if not groups:
        return
    grid = grid_of(read.at, block_s=scale.block_s, period_s=scale.period_s)
    counts = np.concatenate(list(_counts(read, grid, groups)))
    sums = counts.sum(axis=1)
    evidence = log_evidences_over_time(counts, grid.period, read.margin, trim=scale.trim, most=scale.most)
    low, high = share_intervals(sums, scale.alpha)
    for at, group in enumerate(groups):
        signs = read.signs[group.column]
        inside, total = sums[at, 0] - sums[at, 2], (signs * read.weight).sum()
        size = int((read.slices[:, group.column] == group.code).sum())
        counted, rest = sums[at].sum(), read.weight.sum() - sums[at].sum()
        looked = _looked(read, group, size)
        tested = looked is Looked.TESTED
        row = Slice(
            dimension=group.dimension,
            value=group.value,
            rule=rule,
            looked=looked,
            pairs=group.pairs,
            share=group.share,
            read=size,
            estimate=float(inside / counted) if tested else None,
            low=float(low[at]) if tested else None,
            high=float(high[at]) if tested else None,
            elsewhere=float((total - inside) / rest) if tested and rest >= FEWEST_PAIRS else None,
            margin=read.margin,
            evidence=float(evidence[at]) if tested else None,
            named=False,
            reason="",
        )
        yield replace(row, reason=_reason(row))


def _counts(read: _Read, grid: Grid, groups: tuple[_Group, ...]) -> Iterator[Floats]:
    """(group, block, sign) counts, a dimension at a time; groups come in order of dimension."""
    blocks = len(grid.period)
    for column in dict.fromkeys(group.column for group in groups):
        kept = [group.code for group in groups if group.column == column]
        codes, signs = read.slices[:, column], read.signs[column]
        known, values = codes >= 0, kept[-1] + 1
        key = codes[known].astype(np.int64) * blocks + grid.block[known]
        counts = counts_by_block(signs[known], key, values * blocks, read.weight[known])
        yield counts.reshape(values, blocks, 3)[kept]


def _looked(read: _Read, group: _Group, size: int) -> Looked:
    if group.share == 1.0:
        return Looked.WHOLE_RUN
    if group.pairs < THIN or size < FEWEST_PAIRS:
        return Looked.TOO_THIN
    return Looked.TOO_NOISY if (group.column, group.code) in read.noisy else Looked.TESTED


def _contrast(row: Slice) -> float:
    """How far out of line with the rest of the run."""
    return (row.estimate or 0.0) - (row.elsewhere or 0.0)


def _reason(row: Slice) -> str:
    if row.looked is Looked.WHOLE_RUN:
        return "all pairs are in it"
    if row.looked is Looked.TOO_THIN:
        return f"{row.read} pairs of {row.pairs} could be read: too few"
    if row.looked is Looked.TOO_NOISY:
        return f"the baseline differs from its own repeat in more than {NOISE_LIMIT:.0%}, by any label"
    elsewhere = "" if row.elsewhere is None else f", elsewhere {show(row.elsewhere, 'share')}"
    return (
        f"{show(row.estimate, 'share')} {_WORDS[row.rule]}, at least {show(row.low, 'share')}{elsewhere}; "
        f"{row.pairs:,} pairs, {row.share:.1%} of the traffic"
    )
