"""Of which pairs of a run a report looks closer: few rows, chosen from columns, among which ``shown.worst_first`` finds all
that it would find in the whole run. Pure."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from reports.compare.model import rank
from reports.gathered import Gathered
from reports.judgement import Severity
from reports.policy import Policy
from reports.shown import WORST
from reports.stats import Flags

_CLOSE = 6
"""Close calls: the three that are shown, behind as many that are shown because they are slow."""

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


def _gravest(seen: Gathered, of: Flags) -> Rows:
    """These pairs, the gravest and least alike first."""
    rows = np.flatnonzero(of)
    alike = np.where(np.isnan(seen.similarity[rows]), 1.0, seen.similarity[rows])
    found: Rows = rows[np.lexsort((rows, alike, -seen.severity[rows]))]
    return found
