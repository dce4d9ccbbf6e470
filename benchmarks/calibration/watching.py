"""What the judge says of a run at each look, without asking it at looks at which it cannot say ROLLBACK.

The signs of all pairs are read once; from them comes an upper bound of each rule's evidence at each look. Where the bound is
far from enough, the judge is not asked. Where it is asked, it is ``reports.history``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from benchmarks.calibration.generator import TIMEOUT_S
from reports.columns import Columns
from reports.history import history
from reports.judge import frame_of, judge_columns
from reports.judgement import Judgement, Verdict
from reports.ledger import Ledger, sort_out
from reports.policy import Policy
from reports.reading import Frame, Reading
from reports.rules import RULES, Rule
from reports.safety import HALT_IN_A_ROW, halt
from reports.stats import Floats
from reports.weighing import Scale, evidences_above, scale, weigh

_SLACK = 3.0
"""Pairs of sessions that are not over weigh more at a look than they do in the end; a bound within this is looked at."""
_AT_ONCE = 48
POLICY = Policy()


def first_rollback(table: Columns, looks: Sequence[float]) -> tuple[float, str] | None:
    """The first of ``looks`` (epoch seconds, ascending) at which the verdict is ROLLBACK, and its code."""
    for at in np.asarray(looks)[_worth_asking(table, np.asarray(looks))].tolist():
        (look,) = history(table, POLICY, looks=[at], timeout_s=TIMEOUT_S)
        if look.verdict is Verdict.ROLLBACK:
            return at, look.code
    return None


def first_go(table: Columns, looks: Sequence[float]) -> float | None:
    """The first of ``looks`` at which the verdict is GO; looks before the minimum span are passed over."""
    for at in looks:
        if at - table.at[0] < POLICY.minimum_span:
            continue
        (look,) = history(table, POLICY, looks=[at], timeout_s=TIMEOUT_S)
        if look.verdict is Verdict.GO:
            return at
    return None


def judged(table: Columns, at: float) -> Judgement:
    """The judgement at one look, in its short form."""
    seen = table.take(table.at <= at)
    return judge_columns(seen, POLICY, now=at, timeout_s=TIMEOUT_S, verdict_only=True)


def rules_going(table: Columns, looks: Sequence[float], names: Sequence[str]) -> float | None:
    """The first of ``looks`` at which every rule of ``names`` says GO, whatever the verdict is."""
    ledger, frame = _read(table)
    rules = [rule for rule in RULES if rule.name in names]
    for at in looks:
        seen = ledger.evidence.take(ledger.evidence.at <= at - TIMEOUT_S)
        if len(seen) and all(_going(rule, seen, frame) for rule in rules):
            return at
    return None


def _going(rule: Rule, seen: Columns, frame: Frame) -> bool:
    measure = scale(POLICY, span_s=float(seen.at[-1] - seen.at[0]))
    return weigh(rule, rule.read(seen, frame), measure, required=True, brief=True).verdict is Verdict.GO


def _read(table: Columns) -> tuple[Ledger, Frame]:
    ledger = sort_out(table, POLICY, now=math.inf, final=True, timeout_s=TIMEOUT_S)
    return ledger, frame_of(ledger, POLICY)


def _worth_asking(table: Columns, looks: Floats) -> np.ndarray:
    ledger, frame = _read(table)
    if halt(table, counted=~ledger.places["warm_up"]):
        return np.ones(looks.size, dtype=np.bool_)
    asked = _failing_now(table, looks)
    if not len(ledger.evidence):
        return asked
    measure = scale(POLICY, span_s=float(ledger.evidence.at[-1] - ledger.evidence.at[0]))
    for rule in RULES:
        read = rule.read(ledger.evidence, frame)
        if isinstance(read, Reading) and read.signs.size and rule.promise(POLICY).required:
            slack = _SLACK if (read.weight < 1).any() else 1e-6
            asked |= _bounds(read, looks - TIMEOUT_S, measure) >= measure.needed_rollback - slack
    return asked


def _failing_now(table: Columns, looks: Floats) -> np.ndarray:
    """Looks within a block of five minutes that may look like an outage as long as it is not whole."""
    failed = table.at[table.candidate.failed]
    recent = np.searchsorted(failed, looks) - np.searchsorted(failed, looks - 600.0)
    return recent >= HALT_IN_A_ROW / 2


def _bounds(read: Reading, until: Floats, measure: Scale) -> Floats:
    """An upper bound of the evidence of harm in the signs up to each moment: starts after it weigh as if they were neutral."""
    grid = read.grid(block_s=measure.block_s, period_s=measure.period_s)
    whole = grid.counts(read.signs, read.weight)
    upto = np.searchsorted(read.at, until, side="right")
    weight = read.weight[:, None] * np.stack([read.signs > 0, read.signs == 0, read.signs < 0], axis=1)
    sums = np.concatenate([np.zeros((1, 3)), np.cumsum(weight, axis=0)])
    first, block, bounds = grid.first, grid.block, []
    for some in np.array_split(upto, -(-upto.size // _AT_ONCE)):
        last = block[np.maximum(some - 1, 0)]
        counts = np.where((np.arange(len(first)) < last[:, None])[..., None], whole, 0.0)
        counts[np.arange(some.size), last] = np.where(some[:, None] > 0, sums[some] - sums[first[last]], 0.0)
        bounds.append(evidences_above(counts, grid.period, read.bar, measure))
    return np.concatenate(bounds)
