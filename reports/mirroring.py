"""Whether what was recorded is a fair sample of what passed the gateway, and how much of the load the candidate carried. Pure."""

from __future__ import annotations

import math

import numpy as np

from reports.columns import Columns
from reports.counting import some
from reports.facts import Facts
from reports.judgement import Check
from reports.stats import Floats, log_evidence_not

SAMPLED = ("mirrored", "stateful", "queue_full", "mirror_down")
"""Counters of requests that the sample chose, whether or not a copy could leave."""
_SAMPLE_ALPHA = 1e-4
_FEW_LOST = 10
"""Requests on their way into the store while a report is made."""
_SAME_LOAD = 0.9
_PEAK_S = 60.0


def sent_nothing(facts: Facts) -> Check:
    """The candidate's arm is missing as a whole."""
    sent = int(facts.ledger.columns.candidate.asked.sum())
    passed = max(facts.counters.get("passed", 0), len(facts.ledger.columns))
    message = f"{some(sent, 'copy', 'copies')} reached the candidate"
    if not sent:
        message = f"{some(passed, 'request')} passed and no copy reached the candidate: "
        message += "is the mirror on, and does it match any path?"
    return Check(code="mirror_sent_nothing", passed=bool(sent) or not passed, message=message)


def not_counted(facts: Facts) -> Check | None:
    """A gateway ran, and its counts of what it passed are gone: nothing says how much is missing."""
    if "mirror_ppm" not in facts.counters or "passed" in facts.counters:
        return None
    return Check(
        code="not_counted", passed=False, message="the gateway's counters are missing from the store"
    )


def not_recorded(facts: Facts) -> Check | None:
    """Requests that were handed to the mirror and are not in the store: lost with whatever they would have shown."""
    mirrored = facts.counters.get("mirrored", 0)
    if not mirrored:
        return None
    lost = max(0, mirrored - len(facts.ledger.columns))
    most = max(_FEW_LOST, math.floor((1 - facts.policy.minimum_coverage) * mirrored))
    message = f"{lost:,} of {mirrored:,} mirrored requests were not recorded, at most {most:,} may be"
    return Check(code="not_recorded", passed=lost <= most, message=message)


def sample_ratio(facts: Facts) -> Check | None:
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


def paused(facts: Facts) -> Check | None:
    """A caveat: somebody stopped the mirroring for a while."""
    count = facts.counters.get("paused", 0)
    message = f"mirroring was stopped for {some(count, 'request')}; what that would have shown is not known"
    return Check(code="paused", passed=True, message=message) if count else None


def load(facts: Facts) -> Check | None:
    """A caveat: what the candidate carried is less than what it will have to."""
    passed, table = facts.counters.get("passed", 0), facts.ledger.columns
    copies = table.at[table.candidate.asked]
    if not copies.size or copies.size >= _SAME_LOAD * passed:
        return None
    peak = _peak(copies)
    message = (
        f"the candidate was asked {copies.size:,} of {passed:,} requests, at most {peak:.3g} a second (busiest minute); the "
        f"baseline carried about {peak * passed / copies.size:.3g}: nothing is known of the candidate at that load"
    )
    return Check(code="load", passed=True, message=message)


def _peak(at: Floats) -> float:
    """Requests per second in the busiest minute of ascending times; of the whole where it is shorter."""
    busiest = int(np.bincount(((at - at[0]) / _PEAK_S).astype(np.int64)).max()) if at.size else 0
    return busiest / min(_PEAK_S, max(1.0, float(at[-1] - at[0])))
