"""How a rule that is not decided goes on, if pairs come as so far. Pure."""

from __future__ import annotations

import math

from reports.advice import LONGEST_H
from reports.reading import Reading
from reports.stats import Test, count_signs, pairs_until_below


def hours_for(read: Reading, pairs: int | None) -> float | None:
    """How long ``pairs`` of a rule take, as they came so far; ``None`` when that is not known."""
    span = float(read.at[-1] - read.at[0]) if read.at.size else 0.0
    return pairs * span / (read.at.size - 1) / 3600 if pairs is not None and span > 0 else None


def pairs_until_above(read: Reading, above: float, needed: float, test: Test) -> int | None:
    """How many more pairs until ROLLBACK; ``None`` when even a thousand times as many would not do.

    ``above``: the evidence there is, of which ``needed`` suffices. What it lacks now for the worst blocks and for later
    starts it will lack then, too.
    """
    worse, same, better = count_signs(read.signs, read.weight)
    total = worse + same + better
    lacking = float(test(worse, same, better, read.bar, math.exp(-needed))) - above
    more = pairs_until_below(
        better, same, worse, -read.bar, math.exp(-needed - max(0.0, lacking)), test
    )  # harm above a margin is benefit below its opposite
    return None if more is None else math.ceil(more * read.signs.size / total)


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
