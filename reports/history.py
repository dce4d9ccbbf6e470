"""What the verdict would have been at each look: a judgement of what was known by then. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from reports.columns import Columns
from reports.judge import Taken, judge_columns
from reports.judgement import Verdict
from reports.policy import Policy
from reports.reading import Reading, Unread
from reports.rules import RULES
from reports.stats import Floats
from reports.weighing import Scale, evidences_above


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """One look at a run. ``at`` in epoch seconds."""

    at: float
    verdict: Verdict
    code: str


def history(
    table: Columns,
    policy: Policy,
    *,
    looks: Sequence[float],
    counters: Mapping[str, int] | None = None,
    timeout_s: float = 600.0,
) -> tuple[Look, ...]:
    """The verdict at each of ``looks`` (epoch seconds, ascending), from the answers that had come by then.

    ROLLBACK is sticky: once said it stays, with the code it was first said with.
    """
    return tuple(_looks(table, policy, looks, counters or {}, timeout_s))


def _looks(
    table: Columns, policy: Policy, looks: Sequence[float], counters: Mapping[str, int], timeout_s: float
) -> Iterator[Look]:
    known, broken = known_at(table), None
    for at in looks:
        if broken is None:
            found = judge_columns(
                table.take(known <= at),
                policy,
                now=at,
                counters=counters,
                timeout_s=timeout_s,
                verdict_only=True,
            )
            broken = found.code if found.verdict is Verdict.ROLLBACK else None
        verdict, code = (found.verdict, found.code) if broken is None else (Verdict.ROLLBACK, broken)
        yield Look(at=at, verdict=verdict, code=code)


def known_at(table: Columns) -> Floats:
    """When both answers of each pair had come, epoch seconds."""
    slowest = np.fmax(np.nan_to_num(table.baseline.e2e), np.nan_to_num(table.candidate.e2e))
    return table.at + slowest


def first_rollback(seen: Taken) -> Look | None:
    """The first hour's end at which a required rule's evidence sufficed for ROLLBACK, though later pairs may have thinned it.

    The evidence is that of the pairs as they are read today, those of the candidate's version today. ``None``: it never
    did. A fixed-sample analysis has no earlier looks.
    """
    if seen.policy.analysis == "fixed":
        return None
    found = [
        Look(at=at, verdict=Verdict.ROLLBACK, code=rule.name)
        for rule in RULES
        if rule.promise(seen.policy).required and rule.name not in seen.biased
        for at in _crossed(seen.readings[rule.name], seen.measure)
    ]
    return min(found, key=lambda look: look.at) if found else None


def _crossed(read: Reading | Unread, measure: Scale) -> Iterator[float]:
    """The end of the first period by which the evidence sufficed, or nothing."""
    if not isinstance(read, Reading) or read.missing > read.signs.size or not read.signs.size:
        return
    grid = read.grid(block_s=measure.block_s, period_s=measure.period_s)
    counts = grid.counts(read.signs, read.weight)
    periods = np.unique(grid.period)
    periods = periods[:: -(-periods.size // _MOST_LOOKS)]
    for some in np.array_split(periods, -(-periods.size // _AT_ONCE)):
        upto = np.where((grid.period <= some[:, None])[..., None], counts, 0.0)
        enough = evidences_above(upto, grid.period, read.bar, measure) >= measure.needed_rollback
        if enough.any():
            yield float(read.run_at[read.position[0]] + (some[int(np.argmax(enough))] + 1) * measure.period_s)
            return


_MOST_LOOKS = 512
"""Three weeks of hours; a longer run is looked at less often."""
_AT_ONCE = 16
"""Looks whose blocks are in memory together."""
