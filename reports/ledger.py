"""Where every dispatched request went: each pair has exactly one place, and only some places count as evidence."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from replay.exchange import Outcome
from reports.columns import Columns
from reports.policy import Policy
from reports.sessions import units
from reports.stats import Flags
from reports.versions import Change, last_change

_SKEW_S = 60.0
"""By how much two clocks of one service may differ."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """All pairs and the place of each."""

    columns: Columns
    places: dict[str, Flags]
    """Disjoint masks that cover everything."""
    evidence: Columns
    """The pairs that rules read: scored ones, and those that are missing for no fault of the client, which are held against
    the candidate where it would be GO. Their ``session`` is
    the unit in which they count (see ``sessions``)."""

    change: Change | None
    """The last change of a server's version; what came before it has the place ``other_version``."""
    wait_s: float | None
    """Seconds until the first pair that is ``not_final`` counts; ``None`` where none is."""

    def count(self, *places: str) -> int:
        """How many pairs are in ``places``."""
        return sum(int(np.count_nonzero(self.places[place])) for place in places)

    @property
    def counts(self) -> dict[str, int]:
        """Pairs by place, and ``dispatched``, their sum."""
        counts = {place: int(np.count_nonzero(mask)) for place, mask in self.places.items()}
        return {"dispatched": sum(counts.values()), **counts}

    @property
    def span_s(self) -> float:
        """Seconds from the first to the last scored pair in which the candidate answered; 0 without any."""
        answered = self.columns.at[self.places["scored"] & self.columns.candidate.answered]
        return float(answered[-1] - answered[0]) if answered.size else 0.0


MISSING = ("unserved", "breaker_open", "mirror_dropped", "not_sent")
EVIDENCE = ("scored", *MISSING)


def sort_out(columns: Columns, policy: Policy, *, now: float, final: bool, timeout_s: float) -> Ledger:
    """The place of each pair, in this order of precedence.

    ``in_future``: dispatched more than a minute after ``now``. ``not_final``: dispatched less than ``timeout_s`` before
    ``now`` while the run goes on (``final`` is false). Counting those that are complete already would leave out exactly the
    slow ones. ``other_version``: from before the last change of either server. ``warm_up``: within ``policy.warmup`` of the
    first request that reached the candidate since. ``not_comparable``: the copy was never meant to be sent, or asks for what
    the baseline does not offer. ``client_left``: the production client gave up on the baseline. ``unserved``: it asks for
    what the candidate does not offer. Then what is missing by our own doing, and ``scored``: both arms known.
    """
    base, candidate = columns.baseline, columns.candidate
    missing = base.missing | candidate.missing
    everything = np.ones(len(columns), dtype=np.bool_)
    change = last_change(columns)
    before = columns.at < (change.at if change else -np.inf)
    claims = {
        "in_future": columns.at > now + _SKEW_S,
        "not_final": everything & (not final) & (columns.at > now - timeout_s),
        "other_version": before,
        "warm_up": _warming_up(columns, policy.warmup, before),
        "not_comparable": (~columns.comparable & candidate.missing) | base.having(Outcome.UNSERVED),
        "client_left": base.having(Outcome.CLIENT_CANCELLED),
        "unserved": candidate.having(Outcome.UNSERVED),
        "breaker_open": candidate.withheld,
        "mirror_dropped": missing
        & (base.having(Outcome.MIRROR_DROPPED) | candidate.having(Outcome.MIRROR_DROPPED)),
        "not_sent": missing,
        "scored": everything,
    }
    places, free = {}, everything
    for place, claimed in claims.items():
        places[place] = claimed & free
        free = free & ~claimed
    evidence = columns.take(np.logical_or.reduce([places[place] for place in EVIDENCE]))
    evidence = replace(evidence, session=units(evidence.session, evidence.at))
    waiting = columns.at[places["not_final"]]
    wait_s = float(waiting[0]) + timeout_s - now if waiting.size else None
    return Ledger(columns=columns, places=places, evidence=evidence, change=change, wait_s=wait_s)


def _warming_up(columns: Columns, warmup: float, before: Flags) -> Flags:
    reached = columns.at[columns.candidate.asked & ~before]
    first = reached[0] if reached.size else np.inf
    return (columns.at >= first) & (columns.at < first + warmup)
