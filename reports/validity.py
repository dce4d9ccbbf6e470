"""Validity before evidence: conditions that have to hold before GO may be said.

A failed check is a HOLD with the check's code. A check that passes can still state a caveat in its message. Checks lie by
what they look at: ``mirroring`` the sample and the load, ``steadiness`` whether the run is one run, ``fitness`` the client and
the caches, ``covered`` what could not be read; here, whether there is anything, and enough, to weigh.
"""

from __future__ import annotations

from collections.abc import Callable

from reports import covered, mirroring, steadiness
from reports.counting import some
from reports.disagreement import NO_REPEATS
from reports.facts import Facts, duration
from reports.fitness import cache_asymmetry, client_lag
from reports.judgement import Check
from reports.reading import Unread
from reports.rules import RULES
from reports.safety import none_answered

__all__ = ["CAVEATS", "Facts", "checks"]

CAVEATS = ("version_changed", "unserved", "resumed", "paused", "silence", "load", "sensitivity")
"""Codes whose message a reader of GO has to know although the check passed."""


def checks(facts: Facts) -> tuple[Check, ...]:
    """All checks, the most fundamental first: the code of the first failed one is the code of the HOLD."""
    return tuple(check for find in _CHECKS if (check := find(facts)) is not None)


def _nothing_required(facts: Facts) -> Check:
    return Check(
        code="nothing_required",
        passed=bool(facts.required),
        message=f"{len(facts.required)} of {len(RULES)} rules are required; with none the policy compares nothing",
    )


def _client_lag(facts: Facts) -> Check | None:
    return client_lag(facts.counters)


def _cache_asymmetry(facts: Facts) -> Check | None:
    return cache_asymmetry(facts.ledger.evidence)


def _resumed(facts: Facts) -> Check | None:
    """Says so: the two halves may have met caches in different states."""
    times, gap = facts.counters.get("replay_resumed", 0), facts.counters.get("replay_gap_s", 0)
    if not times:
        return None
    message = f"the replay was interrupted and resumed {some(times, 'time')}, with {duration(gap)} in between in all"
    return Check(code="resumed", passed=True, message=message)


def _no_data(facts: Facts) -> Check:
    count = len(facts.ledger.columns)
    return Check(
        code="no_data", passed=count > 0, message=some(count, "pair") if count else "nothing was recorded"
    )


def _no_answers(facts: Facts) -> Check:
    """A server that is dead or lives elsewhere. What may still be in flight is not waited for in vain; the warm-up counts."""
    places = facts.ledger.places
    known = facts.ledger.columns.take(~places["not_final"] & ~places["in_future"])
    silent = [none_answered("the candidate", known.candidate), none_answered("the baseline", known.baseline)]
    message = "; ".join(found for found in silent if found)
    return Check(code="no_answers", passed=not message, message=message or "both arms answered")


def _not_final(facts: Facts) -> Check:
    ledger = facts.ledger
    message = "no pair waits for its timeout to pass"
    if ledger.wait_s is not None:
        waiting = some(ledger.count("not_final"), "pair")
        message = f"waiting for their timeout to pass before they count: {waiting}, the first counts in {duration(ledger.wait_s)}"
    return Check(
        code="not_final", passed=ledger.wait_s is None or ledger.count("scored") > 0, message=message
    )


def _warm_up(facts: Facts) -> Check:
    warming, rest = facts.ledger.count("warm_up"), len(facts.ledger.evidence)
    message = f"{some(warming, 'pair')} of the candidate's first {duration(facts.policy.warmup)} not counted"
    return Check(code="warm_up", passed=rest > 0 or not warming, message=message)


def _nothing_compared(facts: Facts) -> Check | None:
    """``None`` as long as all pairs only wait: for their timeout, or for the end of the warm-up."""
    scored = facts.ledger.count("scored")
    if not scored and facts.ledger.count("not_final", "warm_up") == len(facts.ledger.columns) > 0:
        return None
    message = (
        f"both arms are known of {some(scored, 'pair')}"
        if scored
        else "no pair has both a baseline and a candidate answer"
    )
    return Check(code="nothing_compared", passed=scored > 0, message=message)


def _too_few_pairs(facts: Facts) -> Check:
    """Counts only pairs that both arms answered, so that failures never make up the number."""
    pairs, needed = facts.ledger.evidence, facts.policy.minimum_pairs
    count = int((pairs.baseline.answered & pairs.candidate.answered).sum())
    message = f"{some(count, 'pair')} that both arms answered, {needed:,} required"
    if count < needed:
        message += f": {needed - count:,} more needed"
    return Check(code="too_few_pairs", passed=count >= needed, message=message)


def _minimum_span(facts: Facts) -> Check:
    captured, needed = facts.counters.get("captured_span_s"), facts.policy.minimum_span
    span = steadiness.observed_s(facts) if captured is None else float(captured)
    what = "the pairs span" if captured is None else "the replayed traffic was captured over"
    message = f"{what} {duration(span)}, {duration(needed)} required"
    if span < needed:
        message += f": {duration(needed - span)} more needed"
    return Check(code="minimum_span", passed=span >= needed, message=message)


def _no_repeats(facts: Facts) -> Check | None:
    if "disagreement" not in facts.required:
        return None
    count = int(facts.ledger.evidence.repeated.sum())
    message = f"{count:,} baseline repeats" if count else NO_REPEATS
    return Check(code="no_repeats", passed=count > 0, message=message)


def _too_noisy(facts: Facts) -> Check | None:
    """Where the baseline does not agree with itself by any label, more of the same traffic will not help."""
    read = facts.readings["disagreement"]
    if "disagreement" not in facts.required or not facts.ledger.evidence.repeated.any():
        return None
    noisy = isinstance(read, Unread)
    message = (
        read.reason if isinstance(read, Unread) else "the baseline agrees with its own repeats often enough"
    )
    return Check(code="too_noisy", passed=not noisy, message=message)


def _self_check(facts: Facts) -> Check:
    biased = [name for name in facts.biased if name in facts.required]
    message = "the baseline's repeats keep every rule against the baseline itself"
    if biased:
        message = f"the baseline's own repeats break {', '.join(biased)}: the measurement is biased"
    return Check(code="self_check", passed=not biased, message=message)


def _retried(facts: Facts) -> Check:
    retried = int((facts.ledger.evidence.candidate.retried & facts.ledger.evidence.candidate.answered).sum())
    message = f"{retried:,} candidate answers needed more than one attempt and count as answers"
    return Check(code="retried", passed=True, message=message)


def _rehearsal(facts: Facts) -> Check | None:
    message = (
        "a rehearsal: shortened policy, evidence not trimmed of incidents; decides nothing about production"
    )
    return Check(code="rehearsal", passed=True, message=message) if facts.policy.rehearsal else None


_CHECKS: tuple[Callable[[Facts], Check | None], ...] = (
    _nothing_required,
    mirroring.sent_nothing,
    _no_data,
    steadiness.clock,
    mirroring.not_counted,
    mirroring.not_recorded,
    _no_answers,
    _client_lag,
    _cache_asymmetry,
    _resumed,
    mirroring.paused,
    _not_final,
    steadiness.version,
    _warm_up,
    covered.unserved,
    _nothing_compared,
    _too_few_pairs,
    _minimum_span,
    steadiness.silence,
    _no_repeats,
    _too_noisy,
    covered.not_comparable,
    covered.unscored,
    covered.read_enough,
    covered.sizes,
    covered.breaker,
    mirroring.sample_ratio,
    steadiness.drift,
    _self_check,
    covered.sensitivity,
    mirroring.load,
    _retried,
    _rehearsal,
)
