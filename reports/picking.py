"""Of which pairs of a run a report looks closer: few rows, chosen from columns. Pure.

``worth_a_look`` has all among which ``shown.worst_first`` would find its own in the whole run; ``sample`` has some of every kind.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from reports.compare.model import rank
from reports.gathered import Gathered
from reports.judgement import Severity
from reports.policy import Policy
from reports.shown import WORST
from reports.stats import Flags, Floats

_CLOSE = 6
"""Close calls: the three that are shown, behind as many that are shown because they are slow."""
SAMPLE = 300
"""Pairs of ``sample``."""
_OF_CAUSES, _OF_A_CAUSE, _OF_A_SLICE, _EXTREME, _CLEAN = 160, 8, 2, 20, 24

Rows = NDArray[np.int64]


def worth_a_look(seen: Gathered, policy: Policy) -> list[str]:
    """The ids, in time order: the gravest of each cause and of all, the slowest, and the closest calls."""
    base, candidate, rule = seen.columns.baseline, seen.columns.candidate, policy.latency_p95
    grave = seen.severity >= rank(Severity.WARN)
    excess = np.where(base.failed | candidate.failed, np.nan, candidate.e2e - base.e2e)
    slow = ~grave & (excess > np.maximum(rule.margin, (rule.relative or 0.0) * base.e2e))
    close = ~grave & ~np.isnan(seen.similarity)
    gravest = _gravest(seen, grave)
    firsts = np.sort(np.unique(seen.leading[gravest], return_index=True)[1])
    slowest = np.flatnonzero(slow)[np.argsort(-excess[slow], kind="stable")]
    rows = [
        gravest[firsts[:WORST]],
        gravest[: 2 * WORST],
        slowest[:WORST],
        _gravest(seen, close)[:_CLOSE],
        _gravest(seen, close & ~slow)[:_CLOSE],
    ]
    return [seen.ids[row] for row in np.unique(np.concatenate(rows)).tolist()]


def sample(seen: Gathered, seed: int, *, examples: Iterable[str] = (), count: int = SAMPLE) -> dict[str, str]:
    """At most ``count`` ids in the order of their worth, each with why it was chosen: ``finding`` (``examples`` of causes, and
    some of every leading finding), ``slow``, ``unlike``, ``slice`` (some of every kind of request) or ``clean``. The seed
    decides between equals."""
    chance = np.random.default_rng(seed).random(len(seen))
    rows: dict[int, str] = {}
    for why, some in _strata(seen, chance):
        for row in some.tolist():
            rows.setdefault(row, why)
    chosen = dict.fromkeys(examples, "finding") | {
        seen.ids[row]: why for row, why in islice(rows.items(), count)
    }
    return dict(islice(chosen.items(), count))


def _strata(seen: Gathered, chance: Floats) -> Iterator[tuple[str, Rows]]:
    base, candidate = seen.columns.baseline, seen.columns.candidate
    alike = np.where(np.isnan(seen.similarity), 1.0, seen.similarity)
    causes = list(_causes(seen))
    each = max(1, min(_OF_A_CAUSE, _OF_CAUSES // max(1, len(causes))) // 2)
    for rows in causes:
        yield "finding", _least(rows, alike - 2.0 * seen.severity, chance, each)
        yield "finding", _any(rows, chance, each)
    excess = np.where(base.failed | candidate.failed, np.nan, candidate.e2e - base.e2e)
    yield "slow", _least(np.flatnonzero(~np.isnan(excess)), -excess, chance, _EXTREME)
    yield "unlike", _least(np.flatnonzero(~np.isnan(seen.similarity)), alike, chance, _EXTREME)
    clean = (seen.columns.differs == 0) & (seen.severity < rank(Severity.WARN))
    yield "clean", _any(np.flatnonzero(clean), chance, _CLEAN)
    for column, (_, values) in enumerate(seen.columns.dimensions):
        for code in range(len(values)):
            rows = np.flatnonzero(seen.columns.slices[:, column] == code)
            yield "slice", _any(rows[seen.columns.differs[rows] == 1], chance, _OF_A_SLICE)
            yield "slice", _any(rows, chance, _OF_A_SLICE)


def _causes(seen: Gathered) -> Iterator[Rows]:
    """The pairs of each leading finding; the gravest first, then the rarest."""
    found = np.flatnonzero(seen.severity >= rank(Severity.NOTE))
    kinds = [found[seen.leading[found] == code] for code in np.unique(seen.leading[found])]
    yield from sorted(kinds, key=lambda rows: (-int(seen.severity[rows].max()), rows.size, int(rows[0])))


def _any(rows: Rows, chance: Floats, count: int) -> Rows:
    """So many of these, by chance."""
    return _least(rows, chance, chance, count)


def _least(rows: Rows, values: Floats, chance: Floats, count: int) -> Rows:
    """So many of these, those with the smallest values; chance decides between equal ones."""
    keys = values[rows] - 1e-9 * chance[rows]
    near = np.argpartition(keys, count)[:count] if rows.size > count else np.arange(rows.size)
    found: Rows = rows[near[np.argsort(keys[near])]]
    return found


def _gravest(seen: Gathered, of: Flags) -> Rows:
    """These pairs, the gravest and least alike first."""
    rows = np.flatnonzero(of)
    alike = np.where(np.isnan(seen.similarity[rows]), 1.0, seen.similarity[rows])
    found: Rows = rows[np.lexsort((rows, alike, -seen.severity[rows]))]
    return found
