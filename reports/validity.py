"""Validity before evidence: conditions that have to hold before GO may be said, and the safety stop.

A failed check is a HOLD with the check's code. A check that passes can still state a caveat in its message.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from reports.columns import Columns
from reports.fitness import cache_asymmetry, client_lag
from reports.judgement import Check
from reports.ledger import MISSING, Ledger
from reports.policy import Policy
from reports.reading import Reading, Unread
from reports.rules import RULES
from reports.stats import Flags, Floats, log_evidence_not
from reports.weighing import coverage

HALT_IN_A_ROW = 20
"""Failures in a row that stop the mirroring."""
SAMPLED = ("mirrored", "stateful", "queue_full", "mirror_down")
"""Counters of requests that the sample chose, whether or not a copy could leave."""
_HALT_BLOCK_S = 300.0
_HALT_BLOCK_SHARE = 0.5
_SAMPLE_ALPHA = 1e-4
_FEW_LOST = 10
"""Requests on their way into the store while a report is made."""
_MOST_NOT_COMPARABLE = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Everything a check may look at."""

    policy: Policy
    ledger: Ledger
    readings: Mapping[str, Reading | Unread]
    biased: tuple[str, ...]
    """Rules that the baseline's own repeat breaks."""
    counters: Mapping[str, int]
    """The gateway's counts of requests: ``passed``, and what became of those that might be mirrored (``not_sampled`` or one
    of ``SAMPLED``); ``mirror_ppm``, the configured share in parts per million. What is absent is not checked."""

    @property
    def required(self) -> tuple[str, ...]:
        """Names of the rules that a verdict rests on."""
        return tuple(rule.name for rule in RULES if rule.promise(self.policy).required)


def checks(facts: Facts) -> tuple[Check, ...]:
    """All checks, the most fundamental first: the code of the first failed one is the code of the HOLD."""
    return tuple(check for find in _CHECKS if (check := find(facts)) is not None)


def _nothing_required(facts: Facts) -> Check:
    return Check(
        code="nothing_required",
        passed=bool(facts.required),
        message=f"{len(facts.required)} of {len(RULES)} rules are required; with none the policy compares nothing",
    )


def _mirror_sent_nothing(facts: Facts) -> Check:
    sent = int((~facts.ledger.columns.candidate.missing).sum())
    passed = max(facts.counters.get("passed", 0), len(facts.ledger.columns))
    message = f"{sent:,} copies reached the candidate"
    if not sent:
        message = f"{passed:,} requests passed and no copy reached the candidate: is the mirror on, and does it match any path?"
    return Check(code="mirror_sent_nothing", passed=bool(sent) or not passed, message=message)


def _not_counted(facts: Facts) -> Check | None:
    """A gateway ran, and its counts of what it passed are gone: nothing says how much is missing."""
    if "mirror_ppm" not in facts.counters or "passed" in facts.counters:
        return None
    return Check(
        code="not_counted", passed=False, message="the gateway's counters are missing from the store"
    )


def _not_recorded(facts: Facts) -> Check | None:
    """Requests that were handed to the mirror and are not in the store: lost with whatever they would have shown."""
    mirrored = facts.counters.get("mirrored", 0)
    if not mirrored:
        return None
    lost = max(0, mirrored - len(facts.ledger.columns))
    most = max(_FEW_LOST, math.floor((1 - facts.policy.minimum_coverage) * mirrored))
    message = f"{lost:,} of {mirrored:,} mirrored requests were not recorded, at most {most:,} may be"
    return Check(code="not_recorded", passed=lost <= most, message=message)


def _client_lag(facts: Facts) -> Check | None:
    return client_lag(facts.counters)


def _cache_asymmetry(facts: Facts) -> Check | None:
    return cache_asymmetry(facts.ledger.evidence)


def _resumed(facts: Facts) -> Check | None:
    """Says so: the two halves may have met caches in different states."""
    times, gap = facts.counters.get("replay_resumed", 0), facts.counters.get("replay_gap_s", 0)
    if not times:
        return None
    message = f"the replay was interrupted and resumed {times} times, with {_duration(gap)} in between in all"
    return Check(code="resumed", passed=True, message=message)


def _no_data(facts: Facts) -> Check:
    count = len(facts.ledger.columns)
    return Check(
        code="no_data", passed=count > 0, message=f"{count:,} pairs" if count else "nothing was recorded"
    )


def _not_final(facts: Facts) -> Check:
    waiting, total = facts.ledger.count("not_final"), len(facts.ledger.columns)
    message = f"{waiting:,} pairs may still be in flight and do not count yet"
    return Check(code="not_final", passed=waiting < max(1, total), message=message)


def _warm_up(facts: Facts) -> Check:
    warming, rest = facts.ledger.count("warm_up"), len(facts.ledger.evidence)
    message = f"{warming:,} pairs of the candidate's first {_duration(facts.policy.warmup)} do not count"
    return Check(code="warm_up", passed=rest > 0 or not warming, message=message)


def _nothing_compared(facts: Facts) -> Check:
    scored = facts.ledger.count("scored")
    message = (
        f"{scored:,} pairs have both arms" if scored else "no pair has both a baseline and a candidate answer"
    )
    return Check(code="nothing_compared", passed=scored > 0, message=message)


def _too_few_pairs(facts: Facts) -> Check:
    """Counts only pairs that both arms answered, so that failures never make up the number."""
    pairs, needed = facts.ledger.evidence, facts.policy.minimum_pairs
    count = int((pairs.baseline.answered & pairs.candidate.answered).sum())
    message = f"{count:,} pairs that both arms answered, {needed:,} required"
    if count < needed:
        message += f": {needed - count:,} more needed"
    return Check(code="too_few_pairs", passed=count >= needed, message=message)


def _minimum_span(facts: Facts) -> Check:
    captured, needed = facts.counters.get("captured_span_s"), facts.policy.minimum_span
    span = facts.ledger.span_s if captured is None else float(captured)
    what = "the pairs span" if captured is None else "the replayed traffic was captured over"
    message = f"{what} {_duration(span)}, {_duration(needed)} required"
    if span < needed:
        message += f": {_duration(needed - span)} more needed"
    return Check(code="minimum_span", passed=span >= needed, message=message)


def _no_repeats(facts: Facts) -> Check | None:
    if "disagreement" not in facts.required:
        return None
    count = int(facts.ledger.evidence.repeated.sum())
    message = f"{count:,} baseline repeats" if count else "no baseline repeats: the noise floor is unknown"
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


def _not_comparable(facts: Facts) -> Check:
    pairs = facts.ledger.columns
    count, total = int((~pairs.comparable).sum()), len(pairs)
    message = f"{count:,} of {total:,} pairs hold requests whose answers cannot be compared"
    return Check(code="not_comparable", passed=count <= _MOST_NOT_COMPARABLE * total, message=message)


def _unscored(facts: Facts) -> Check | None:
    """Looks at every pair with two comparable answers, not only those with a repeat."""
    if "disagreement" not in facts.required:
        return None
    pairs = facts.ledger.evidence
    both = pairs.baseline.answered & pairs.candidate.answered & pairs.comparable
    unscored, total = int((both & (pairs.differs < 0)).sum()), int(both.sum())
    share = unscored / total if total else 0.0
    message = f"{unscored:,} of {total:,} comparable answers were not scored ({share:.1%})"
    return Check(code="unscored", passed=share <= 1 - facts.policy.minimum_coverage + 1e-12, message=message)


def _coverage(facts: Facts) -> Check:
    """The rule that could read the smallest share of its pairs."""
    shares = {
        name: share
        for name in facts.required
        if isinstance(read := facts.readings[name], Reading) and (share := coverage(read)) is not None
    }
    if not shares:
        return Check(code="coverage", passed=True, message="no rule has pairs to read yet")
    worst = min(shares, key=lambda name: shares[name])
    missing = ", ".join(f"{facts.ledger.count(p):,} {p}" for p in MISSING)
    message = f"{worst} could read {shares[worst]:.1%} of its pairs, {facts.policy.minimum_coverage:.0%} required ({missing})"
    return Check(code="coverage", passed=shares[worst] >= facts.policy.minimum_coverage, message=message)


def _breaker(facts: Facts) -> Check:
    withheld, total = facts.ledger.count("breaker_open"), len(facts.ledger.evidence)
    share = withheld / total if total else 0.0
    message = (
        f"{withheld:,} copies ({share:.1%}) were withheld because the candidate had just failed repeatedly"
    )
    return Check(
        code="breaker_open", passed=share <= 1 - facts.policy.minimum_coverage + 1e-12, message=message
    )


def _sample_ratio(facts: Facts) -> Check | None:
    """Two-sided and valid at every look, at one in ten thousand: a biased sample invalidates everything.

    Conversations are mirrored whole, so requests count for less than one each: by the design effect of their sessions.
    """
    counters, ppm = facts.counters, facts.counters.get("mirror_ppm")
    sampled = sum(counters.get(outcome, 0) for outcome in SAMPLED)
    eligible = sampled + counters.get("not_sampled", 0)
    if not eligible or ppm is None or not len(facts.ledger.columns):
        return None
    share, effect = ppm / 1_000_000, _design_effect(facts.ledger.columns)
    message = f"{sampled:,} of {eligible:,} requests were sampled ({sampled / eligible:.1%}), {share:.1%} configured"
    return Check(
        code="sample_ratio", passed=_plausible(share, sampled / effect, eligible / effect), message=message
    )


def _design_effect(columns: Columns) -> float:
    """Mean size of the session that a request is in."""
    sizes = np.unique(columns.session, return_counts=True)[1]
    return float((sizes**2).sum() / sizes.sum())


def _plausible(share: float, sampled: float, eligible: float) -> bool:
    if share <= 0 or share >= 1:
        return sampled == round(share) * eligible
    return bool(log_evidence_not(share, sampled, eligible) < math.log(1 / _SAMPLE_ALPHA))


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
    _mirror_sent_nothing,
    _no_data,
    _not_counted,
    _not_recorded,
    _client_lag,
    _cache_asymmetry,
    _resumed,
    _not_final,
    _warm_up,
    _nothing_compared,
    _too_few_pairs,
    _minimum_span,
    _no_repeats,
    _too_noisy,
    _not_comparable,
    _unscored,
    _coverage,
    _breaker,
    _sample_ratio,
    _self_check,
    _retried,
    _rehearsal,
)


def halt(columns: Columns, policy: Policy, *, counted: Flags) -> str | None:
    """Why the mirroring should stop at once, or ``None``. A safety stop, not a claim about rates.

    Looks at requests that the baseline did not fail too. Any of: 20 failures of the candidate in a row, whatever was
    withheld between them; at the end of the run nothing but failures and copies withheld by the open breaker, 20 or
    more; half of at least 20 requests failed within five minutes (``counted``: not during the warm-up).
    """
    candidate, sound = columns.candidate, ~columns.baseline.failed
    failed, answered = candidate.failed & sound, candidate.answered & sound
    if _longest(failed[failed | answered]) >= HALT_IN_A_ROW:
        return f"the candidate failed {HALT_IN_A_ROW} requests in a row that the baseline answered"
    since = int(np.flatnonzero(answered)[-1]) + 1 if answered.any() else 0
    lost, withheld = int(failed[since:].sum()), int((candidate.withheld & sound)[since:].sum())
    if lost and lost + withheld >= HALT_IN_A_ROW:
        return f"the candidate stopped answering: {lost} failures, then {withheld} copies withheld by the circuit breaker"
    return _bad_block(columns.at, failed & counted, answered & counted)


def _longest(flags: Flags) -> int:
    """Length of the longest run of true."""
    edges = np.flatnonzero(np.diff(flags.astype(np.int8), prepend=0, append=0))
    return int((edges[1::2] - edges[::2]).max()) if edges.size else 0


def _bad_block(at: Floats, failed: Flags, answered: Flags) -> str | None:
    if not failed.any():
        return None
    block = np.floor((at - at[0]) / _HALT_BLOCK_S).astype(np.int64)
    ids = np.unique(block, return_inverse=True)[1]
    bad, good = np.bincount(ids, weights=failed), np.bincount(ids, weights=answered)
    worst = int(np.argmax(np.where(bad + good >= HALT_IN_A_ROW, bad / np.maximum(1, bad + good), 0)))
    if bad[worst] + good[worst] < HALT_IN_A_ROW or bad[worst] < _HALT_BLOCK_SHARE * (
        bad[worst] + good[worst]
    ):
        return None
    return f"the candidate failed {bad[worst]:.0f} of {bad[worst] + good[worst]:.0f} requests within five minutes"


def _duration(seconds: float) -> str:
    for unit, size in (("h", 3600.0), ("min", 60.0)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.3g} s"
