"""Of which pairs of a run a report looks closer: few rows, chosen from columns. Pure.

``worth_a_look`` has all among which ``shown.worst_first`` would find its own in the whole run; ``sample`` has some of every kind.
"""

from __future__ import annotations

from collections.abc import Iterator

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


def sample(seen: Gathered, seed: int, count: int = SAMPLE) -> dict[str, str]:
    """At most ``count`` ids in the order of their worth, each with why it was chosen: ``finding`` (some of every leading
    finding), ``slow``, ``unlike``, ``slice`` (some of every kind of request) or ``clean``. The seed decides between equals."""
    chance = np.random.default_rng(seed).random(len(seen))
    chosen: dict[int, str] = {}
    for why, rows in _strata(seen, chance):
        for row in rows.tolist():
            chosen.setdefault(row, why)
    return {seen.ids[row]: why for row, why in list(chosen.items())[:count]}


def _strata(seen: Gathered, chance: Floats) -> Iterator[tuple[str, Rows]]:
    base, candidate = seen.columns.baseline, seen.columns.candidate
    found = seen.severity >= rank(Severity.NOTE)
    gravest = _gravest(seen, found)
    causes = list(dict.fromkeys(seen.leading[gravest].tolist()))
    each = max(1, min(_OF_A_CAUSE, _OF_CAUSES // max(1, len(causes))) // 2)
    for cause in causes:
        yield "finding", gravest[seen.leading[gravest] == cause][:each]
        yield "finding", _any(found & (seen.leading == cause), chance, each)
    excess = np.where(base.failed | candidate.failed, np.nan, candidate.e2e - base.e2e)
    yield "slow", _least(-excess, _EXTREME)
    yield "unlike", _least(seen.similarity, _EXTREME)
    clean = (seen.columns.differs == 0) & (seen.severity < rank(Severity.WARN))
    yield "clean", _any(clean, chance, _CLEAN)
    for column, (_, values) in enumerate(seen.columns.dimensions):
        for code in range(len(values)):
            of = seen.columns.slices[:, column] == code
            yield "slice", _any(of & (seen.columns.differs == 1), chance, _OF_A_SLICE)
            yield "slice", _any(of, chance, _OF_A_SLICE)


def _any(of: Flags, chance: Floats, count: int) -> Rows:
    """So many of these, by chance."""
    rows = np.flatnonzero(of)
    found: Rows = rows[np.argsort(chance[rows], kind="stable")[:count]]
    return found


def _least(values: Floats, count: int) -> Rows:
    """The rows with the smallest values."""
    known = np.flatnonzero(~np.isnan(values))
    found: Rows = known[np.argsort(values[known], kind="stable")[:count]]
    return found


def _gravest(seen: Gathered, of: Flags) -> Rows:
    """These pairs, the gravest and least alike first."""
    rows = np.flatnonzero(of)
    alike = np.where(np.isnan(seen.similarity[rows]), 1.0, seen.similarity[rows])
    found: Rows = rows[np.lexsort((rows, alike, -seen.severity[rows]))]
    return found
