"""How a rule that is not decided goes on, if pairs come as so far. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from reports.advice import LONGEST_H
from reports.reading import Reading
from reports.stats import Floats, Test, count_signs, counts_by_block, pairs_until_below

_MOST_BLOCKS = 2048
"""A week of five minutes."""


def hours_for(read: Reading, pairs: int | None) -> float | None:
    """How long ``pairs`` of a rule take, as they came so far; ``None`` when that is not known."""
    span = read.span_s
    return pairs * span / (read.signs.size - 1) / 3600 if pairs is not None and span > 0 else None


def pairs_until_above(read: Reading, above: float, needed: float, test: Test) -> int | None:
    """How many more pairs until ROLLBACK where nothing of the evidence is cut; ``None`` when even a thousand times as many
    would not do.

    ``above``: the evidence there is, of which ``needed`` suffices. What it lacks now for later starts it will lack then, too.
    """
    worse, same, better = count_signs(read.signs, read.weight)
    total = worse + same + better
    lacking = max(0.0, float(test(worse, same, better, read.bar, math.exp(-needed))) - above)
    # Harm above a margin is benefit below its opposite.
    more = pairs_until_below(better, same, worse, -read.bar, math.exp(-needed - lacking), test)
    return None if more is None else math.ceil(more * read.signs.size / total)


def pairs_of_blocks_until(
    read: Reading, *, block_s: float, evidence: Callable[[Floats], float], needed: float
) -> int | None:
    """How many more pairs until ROLLBACK, to a twentieth; ``None`` when it would take very long, or nothing can be said.

    ``evidence`` of blocks, their counts in order, of which ``needed`` suffices. What a block may add is limited, so it
    matters how harm is spread over them: the whole ones so far are taken to come again and again.
    """
    span, at = read.span_s, read.at
    if span <= 0:
        return None
    seen = max(1.0, span / block_s)
    whole = int(span / block_s)
    block = np.floor((at - at[0]) / block_s).astype(np.int64)
    counts = counts_by_block(read.signs, block, whole + 1, read.weight)
    pattern = counts[:whole] if whole else counts * block_s / span

    def enough(blocks: int) -> bool:
        return evidence(np.resize(pattern, (blocks, 3))) >= needed

    low, high = 0, math.ceil(seen)
    while not enough(high):
        if high >= seen + _MOST_BLOCKS:
            return None
        low, high = high, min(2 * high, math.ceil(seen) + _MOST_BLOCKS)
    while high - low > max(1, high // 20):
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return math.ceil(max(1.0, high - seen) * block_s * (read.signs.size - 1) / span)


def wider_margin(read: Reading, upper: float, alpha: float, test: Test) -> float:
    """The least margin with which GO comes within 14 days; of a latency, ``upper``, with which it can come now."""
    pair_h = hours_for(read, 1)
    if read.bar != read.margin or not pair_h:
        return upper
    worse, same, better = read.cautious
    most = LONGEST_H / pair_h * (worse + same + better) / max(1, read.pairs)
    low, high = read.margin, 1.0
    for _ in range(12):
        middle = (low + high) / 2
        more = pairs_until_below(worse + read.missing, same, better, middle, alpha, test)
        low, high = (low, middle) if more is not None and more <= most else (middle, high)
    return high


def round_up(value: float) -> float:
    """To two digits. ``value`` is above 0."""
    digit = 10.0 ** (math.floor(math.log10(value)) - 1)
    return round(math.ceil(value / digit - 1e-9) * digit, 12)
