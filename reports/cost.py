"""What a request costs at the candidate, beside the baseline. Pure."""

from __future__ import annotations

import numpy as np

from reports.columns import Columns
from reports.intervals import median_interval
from reports.reading import Frame, Reading, Unread, middle
from reports.sessions import weights
from reports.stats import count_signs


def cost(columns: Columns, frame: Frame) -> Reading | Unread:
    """Sign of (candidate's cost - (1 + margin) x baseline's) over pairs that both arms answered and both prices are known.

    Estimate and interval are of the median relative growth. Failed requests are not a saving and not read.
    """
    margin = frame.policy.cost.margin
    both = columns.baseline.answered & columns.candidate.answered
    known = both & (columns.baseline.cost > 0) & np.isfinite(columns.candidate.cost)
    if not known.any():
        reason = "does not apply: no prices, or no token counts to price, among the pairs that count"
        return Unread(reason=reason, applicable=False, margin=margin)
    pairs = columns.take(known)
    growth, weight = pairs.candidate.cost / pairs.baseline.cost - 1, weights(pairs.session)
    signs = np.sign(growth - margin).astype(np.int8)
    counts = count_signs(signs, weight)
    return Reading(
        run_at=frame.at,
        position=pairs.position,
        signs=signs,
        weight=weight,
        cautious=counts,
        pairs=signs.size,
        delivered=signs.size,
        missing=int((both & ~known).sum()),
        bar=0.0,
        margin=margin,
        estimate=middle(growth, weight),
        bounds=lambda: median_interval(growth, frame.policy.alpha, weight, frame.test),
    )
