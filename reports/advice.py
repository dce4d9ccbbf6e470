"""What to do next, in one sentence, for the person who was woken up. Pure."""

from __future__ import annotations

from reports.judgement import Verdict

LATENCY_RULES = frozenset({"slow_share", "latency_median", "latency_p95", "ttft_median", "ttft_p95"})

_STAY = "Keep production on the baseline"
_GO = "Move traffic in steps, and keep the baseline running until the candidate carries all of it."
_ROLLBACK = f"{_STAY}; start with the leading cause and its example."
_SLOW = f"{_STAY}; compare the slowest pairs and the latency curves with the candidate's load and settings."
_ERRORS = f"{_STAY}; start with the candidate's failures under Causes and with its own logs of that time."
_WAIT = f"{_STAY} and let the run go on; report again later, the evidence stays valid at every look."
_LONGER = f"{_STAY} and record a longer run, or mirror a larger share."
_MEND = f"{_STAY}, mend what the failed check names, and record again."
_HOLD = {
    "nothing_required": f"{_STAY}; the policy requires no rule, so no evidence could ever suffice: mend policy.",
    "mirror_sent_nothing": f"{_STAY}; look at shadow.paths, shadow.percent and the kill switch (/status of the admin listener).",
    "no_data": f"{_STAY}; send clients through gateway.listen, then report again.",
    "no_repeats": f"{_STAY}; set shadow.repeat_baseline above 0 so that the noise floor becomes known, and record again.",
    "too_noisy": f"{_STAY}; find out why the baseline disagrees with itself, or replay with temperature 0 (--set temperature=0).",
    "unscored": f"{_STAY}; install what scores the rest (pip install 'llm-migrate[embeddings]') and report again.",
    "client_lag": f"{_STAY}; replay at a lower rate, or from a machine with a free core.",
    "cache_asymmetry": f"{_STAY}; replay with --nonce, or begin with both caches cold.",
    "breaker_open": f"{_STAY}; find out why the candidate failed repeatedly, then record again.",
}
_CAPTURED = frozenset({"capture", "import"})
_REPLAY = f"{_STAY}; the candidate was not asked: send what was captured to both with migrate replay, and report on that run."
_PATIENCE = frozenset({"not_final", "warm_up", "too_few_pairs", "minimum_span", "not_enough_evidence"})


def advice(verdict: Verdict, code: str, *, kind: str, ended: bool) -> str:
    """``code`` is the judgement's; ``kind`` the run's; ``ended``: the run is over, so waiting would not help."""
    if kind in _CAPTURED and code in ("no_data", "mirror_sent_nothing"):
        return _REPLAY
    if verdict is Verdict.GO:
        return _GO
    if verdict is Verdict.ROLLBACK:
        return (
            _SLOW
            if code in LATENCY_RULES
            else _ERRORS
            if code in ("errors", "timeouts", "halt")
            else _ROLLBACK
        )
    if code in _PATIENCE:
        return _LONGER if ended else _WAIT
    return _HOLD.get(code, _MEND)
