"""What the verdict would have been at each look: a judgement of what was known by then. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from reports.columns import Columns
from reports.judge import judge_columns
from reports.judgement import Verdict
from reports.policy import Policy
from reports.stats import Floats


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
