"""How a rule's evidence came together, so that a reader sees since when it suffices, or how far it is from it. Pure."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from reports.advisory import Grown, Growth
from reports.reading import Reading
from reports.stats import Floats, finite
from reports.times import iso
from reports.weighing import Scale, evidences_above

_LOOKS, _AT_ONCE = 48, 16


def growth(rule: str, read: Reading, measure: Scale, *, looks: int = _LOOKS) -> Growth:
    """At most ``looks`` points, of the pairs as they are read today.

    Failed and missing requests that count for GO alone are spread evenly over the pairs: a reading has no time for them.
    """
    return Growth(
        rule=rule,
        needed_go=measure.needed_go,
        needed_rollback=measure.needed_rollback,
        points=_points(read, measure, looks) if read.signs.size else (),
    )


def _points(read: Reading, measure: Scale, looks: int) -> tuple[Grown, ...]:
    """The last of each second."""
    grid = read.grid(block_s=_block_s(read, measure, looks), period_s=measure.period_s)
    counts = grid.counts(read.signs, read.weight)
    upto = np.append(grid.first[1:], grid.signs)
    blocks = np.unique(np.linspace(0, len(upto) - 1, looks).round().astype(np.int64)[-looks:])
    below = _below(read, counts, upto / upto[-1], measure)
    above = np.concatenate(
        [_above(read, counts, grid.period, some, measure) for some in _some(blocks)],
    )
    found = {}
    for block, rollback in zip(blocks.tolist(), above.tolist(), strict=True):
        pairs, go = int(upto[block]), finite(float(below[block]))
        at = iso(float(read.run_at[read.position[pairs - 1]]))
        found[at] = Grown(at=at, pairs=pairs, go=go, rollback=finite(rollback))
    return tuple(found.values())


def _block_s(read: Reading, measure: Scale, looks: int) -> float:
    """Where no block counts for less than others, they may be as short as a drawing wants them."""
    if measure.trim or math.isfinite(measure.most):
        return measure.block_s
    return max(1e-3, min(measure.block_s, read.span_s / looks))


def _some(blocks: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Looks whose blocks are in memory together."""
    return np.array_split(blocks, -(-blocks.size // _AT_ONCE))


def _above(
    read: Reading, counts: Floats, period: NDArray[np.int64], blocks: NDArray[np.int64], measure: Scale
) -> Floats:
    seen = np.arange(len(counts)) <= blocks[:, None]
    return evidences_above(np.where(seen[..., None], counts, 0.0), period, read.bar, measure)


def _below(read: Reading, counts: Floats, share: Floats, measure: Scale) -> Floats:
    """After each block."""
    rest = np.array(read.cautious) - counts.sum(axis=0)
    worse, same, better = np.maximum(np.cumsum(counts, axis=0) + rest * share[:, None], 0.0).T
    return measure.test(better, same, worse + read.missing * share, -read.bar, measure.alpha)
