"""Whether a run is one run: its clock, its silences, its versions, and a baseline that stays what it was. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import UTC, datetime

import numpy as np
from numpy.typing import NDArray

from reports.columns import Columns
from reports.facts import Facts, duration
from reports.judgement import Check
from reports.stats import Floats, count_signs, log_evidence_above

_DAY = 86_400.0
_ALPHA = 0.01
_TWICE, _THRICE = 2.0, 3.0
"""How much slower half of the baseline's answers have to become: no daily cycle does that from one day to the next, and
hardly any from one half of a day to the other."""
_ERRORS = 0.05
_MOST = 10_000
"""Answers of each half that are looked at: with so many it is certain."""
_SHORTEST_SILENCE_S = 60.0


def clock(facts: Facts) -> Check:
    """Requests that are dispatched later than now: a clock was set, and spans and hours mean nothing."""
    count = facts.ledger.count("in_future")
    message = f"{count:,} pairs were dispatched after the moment of judging: a clock was wrong, or was set"
    return Check(
        code="clock", passed=not count, message=message if count else "no pair comes from the future"
    )


def observed_s(facts: Facts) -> float:
    """Seconds that the answered pairs span, without the times in which no answer came for over half of ``minimum_span``:
    neither a closed office nor a clock that jumped ahead makes a day."""
    gaps = _gaps(facts)
    return float(gaps[gaps <= _longest_gap(facts)].sum())


def silence(facts: Facts) -> Check | None:
    """States what of the span does not count. A replay spans what was captured."""
    gaps, most = _gaps(facts), _longest_gap(facts)
    left_out = gaps[gaps > most]
    if not left_out.size or "captured_span_s" in facts.counters:
        return None
    message = (
        f"no answer came for {duration(float(left_out.max()))} at a time, {duration(float(left_out.sum()))} in all, which do "
        f"not count as span: nobody asked, or a clock jumped"
    )
    return Check(code="silence", passed=True, message=message)


def _gaps(facts: Facts) -> Floats:
    ledger = facts.ledger
    return np.diff(ledger.columns.at[ledger.places["scored"] & ledger.columns.candidate.answered])


def _longest_gap(facts: Facts) -> float:
    return max(_SHORTEST_SILENCE_S, facts.policy.minimum_span / 2)


def version(facts: Facts) -> Check | None:
    """After a change of either server the evidence begins anew: what another version did says nothing about this one."""
    change, ledger = facts.ledger.change, facts.ledger
    if change is None:
        return None
    count, needed = int(ledger.evidence.candidate.answered.sum()), facts.policy.minimum_pairs
    span = observed_s(facts)
    enough = count >= needed and span >= facts.policy.minimum_span
    message = (
        f"the {change.arm} changed from {change.before} to {change.after} at {_time(change.at)}: "
        f"{ledger.count('other_version'):,} pairs before do not count, {count:,} since then span {duration(span)}"
    )
    return Check(code="version_changed", passed=enough, message=message)


def drift(facts: Facts) -> Check | None:
    """Whether the baseline's later half shows it to be another than its earlier half, at 1 % and at every look.

    Asks for twice the latency in half of the answers or five points of errors, and compares the same hours of the day,
    where the run is long enough: what a daily cycle does is no drift. Shorter runs have to show three times the latency.
    """
    pairs = facts.ledger.evidence
    halves = _halves(_apart(pairs), pairs.at)
    if halves is None:
        return None
    first, second, factor = halves
    needed = math.log(4 / _ALPHA)
    found = [words for words, evidence in _drifts(pairs, first, second, factor) if evidence >= needed]
    message = "the baseline is in its later half what it was in its earlier one"
    if found:
        message = f"{found[0]} in the later half of the run: it is no longer the baseline it was"
    return Check(code="baseline_drift", passed=not found, message=message)


def _apart(pairs: Columns) -> NDArray[np.int64]:
    """The first request of each session, whose requests are not independent, among pairs of which both arms are known:
    neither a failure of the candidate nor a pair that is missing ever hides a drift."""
    known = np.flatnonzero(~pairs.baseline.missing & ~pairs.candidate.missing)
    first = np.full(int(pairs.session.max(initial=-1)) + 1, -1)
    first[pairs.session[known[::-1]]] = known[::-1]
    return np.sort(first[first >= 0])


def _halves(rows: NDArray[np.int64], at: Floats) -> tuple[NDArray[np.int64], NDArray[np.int64], float] | None:
    """As many pairs of an earlier part of the run as of a later one, in time order, and the factor to ask for."""
    if rows.size < 2:
        return None
    times = at[rows]
    span = float(times[-1] - times[0])
    length, factor = span / 2, _THRICE
    if span >= 1.5 * _DAY:
        length, factor = max(1.0, span // (2 * _DAY)) * _DAY if span >= 2 * _DAY else span - _DAY, _TWICE
    first, second = rows[times < times[0] + length], rows[times > times[-1] - length]
    size = min(first.size, second.size, _MOST)
    return (_spread(first, size), _spread(second, size), factor) if size else None


def _spread(rows: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """``size`` of the rows, evenly."""
    return rows[np.arange(size) * rows.size // size]


def _drifts(
    pairs: Columns, first: NDArray[np.int64], second: NDArray[np.int64], factor: float
) -> Iterator[tuple[str, float]]:
    base = pairs.baseline
    failed = base.failed[second].astype(np.int8) - base.failed[first].astype(np.int8)
    both = np.isfinite(base.e2e[first] + base.e2e[second]) & base.answered[first] & base.answered[second]
    before, after = base.e2e[first][both], base.e2e[second][both]
    slower, faster = (
        np.sign(one - factor * other).astype(np.int8) for one, other in ((after, before), (before, after))
    )
    yield "the baseline failed more often", log_evidence_above(*count_signs(failed), _ERRORS)
    yield "the baseline failed less often", log_evidence_above(*count_signs(-failed), _ERRORS)
    yield (
        f"the baseline took more than {factor:g} times as long",
        log_evidence_above(*count_signs(slower), 0.0),
    )
    yield (
        f"the baseline was more than {factor:g} times as fast",
        log_evidence_above(*count_signs(faster), 0.0),
    )


def _time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M UTC")
