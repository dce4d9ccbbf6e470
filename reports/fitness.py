"""What makes latencies no evidence, whatever they say: a client that was late, or caches that were not alike. Pure."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from reports.columns import Columns
from reports.judgement import Check

_FEW = 20
_ASYMMETRY = 0.1
"""Ten points more of the prompts out of its cache, and a backend is faster for no merit of its own."""


def client_lag(counters: Mapping[str, int]) -> Check | None:
    """A replaying client that sends late, or is too busy to look at the clock, measures itself."""
    late, most = counters.get("replay_lag_p99_us"), counters.get("replay_lag_limit_us")
    if late is None or most is None:
        return None
    loop, cpu = counters.get("replay_loop_lag_p99_us", 0), counters.get("replay_cpu_permille", 0)
    message = (
        f"requests left up to {late / 1e3:.1f} ms after their moment (p99) and the client's event loop was up to "
        f"{loop / 1e3:.1f} ms late, at most {most / 1e3:g} ms allowed; it used {cpu / 10:.0f} % of a core"
    )
    return Check(code="client_lag", passed=max(late, loop) <= most, message=message)


def cache_asymmetry(pairs: Columns) -> Check | None:
    """Whether the candidate answered more of its prompts from a prefix cache than the baseline did.

    Compares the mean cached share over pairs where both servers state it. A candidate with the colder cache is judged all
    the same: it proved itself with the harder task.
    """
    both = np.isfinite(pairs.baseline.cached) & np.isfinite(pairs.candidate.cached)
    count = int(both.sum())
    if count < _FEW:
        return None
    before, after = (float(arm.cached[both].mean()) for arm in (pairs.baseline, pairs.candidate))
    message = (
        f"prompts came from the prefix cache to {before:.0%} at the baseline and {after:.0%} at the candidate"
    )
    if abs(after - before) > _ASYMMETRY:
        message += "; latencies compare caches too: replay with --nonce, or warm both alike"
    return Check(code="cache_asymmetry", passed=after - before <= _ASYMMETRY, message=message)


def unfit(pairs: Columns, counters: Mapping[str, int]) -> str | None:
    """Why latency rules cannot be read at all; ``None`` when they can."""
    for check in (client_lag(counters), cache_asymmetry(pairs)):
        if check is not None and not check.passed:
            return check.message
    return None
