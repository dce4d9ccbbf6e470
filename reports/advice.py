"""What is missing and what to do next, in one sentence each, for the person who was woken up. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from reports.judgement import Verdict

LATENCY_RULES = frozenset(
    {"slow_share"}
    | {f"{latency}_{level}" for latency in ("latency", "ttft", "tpot", "itl") for level in ("median", "p95")}
)

_STAY = "Keep production on the baseline"
_GO = "Move traffic in steps, and keep the baseline running until the candidate carries all of it."
_ROLLBACK = f"{_STAY}; start with the leading cause and its example."
_SLOW = f"{_STAY}; compare the slowest pairs and the latency curves with the candidate's load and settings."
_ERRORS = f"{_STAY}; start with the candidate's failures under Causes and with its own logs of that time."
_VALID = "report as often as you like, the evidence stays valid at every look"
_WAIT = f"{_STAY} and let the run go on; {_VALID}."
_STUCK = f"{_STAY}; waiting alone decides nothing here: mirror more, or widen the margin before another run, as the reason says."
_LONGER = f"{_STAY} and record a longer run, or a larger share where that is not all."
_ANOTHER = {
    "import": f"{_STAY}; import more, or send what was captured to both with migrate replay.",
    "capture": f"{_STAY}; capture more, or send what was captured to both with migrate replay.",
    "replay": f"{_STAY} and replay more requests, captured over a longer time where that is missing.",
}
"""Where a longer run is not a matter of waiting longer."""
_MEND = f"{_STAY}, mend what the failed check names, and record again."
_HOLD = {
    "nothing_required": f"{_STAY}; the policy requires no rule, so no evidence could ever suffice: mend policy.",
    "mirror_sent_nothing": f"{_STAY}; look at shadow.paths, shadow.percent and the kill switch (/status of the admin listener).",
    "no_data": f"{_STAY}; send clients through gateway.listen, then report again.",
    "no_answers": f"{_STAY}; see that both servers run at the configured addresses (migrate check), then record again.",
    "no_repeats": f"{_STAY}; set shadow.repeat_baseline above 0 so that the noise floor becomes known, and record again.",
    "too_noisy": f"{_STAY}; find out why the baseline disagrees with itself, or replay with temperature 0 (--set temperature=0).",
    "unscored": f"{_STAY}; install what scores the rest (pip install 'llm-migrate[embeddings]') and report again.",
    "client_lag": f"{_STAY}; replay at a lower rate, or from a machine with a free core.",
    "cache_asymmetry": f"{_STAY}; replay with --nonce, or begin with both caches cold.",
    "unserved": f"{_STAY}; turn on what the candidate lacks (migrate check says how), or leave such requests with the baseline.",
    "breaker_open": f"{_STAY}; find out why the candidate failed repeatedly, then record again.",
}
_CAPTURED = frozenset({"capture", "import"})
_REPLAY = f"{_STAY}; the candidate was not asked: send what was captured to both with migrate replay, and report on that run."
_PATIENCE = frozenset(
    {
        "acknowledged",
        "not_final",
        "version_changed",
        "warm_up",
        "too_few_pairs",
        "minimum_span",
        "not_enough_evidence",
    }
)


def advice(verdict: Verdict, code: str, *, kind: str, ended: bool, hours: float | None = None) -> str:
    """``code`` is the judgement's; ``kind`` the run's; ``ended``: the run is over, so waiting would not help. ``hours`` until
    the evidence for GO is there, ``None`` when that is not known."""
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
        return _ANOTHER.get(kind, _LONGER) if ended else _wait(hours)
    return _HOLD.get(code, _MEND)


def _wait(hours: float | None) -> str:
    if hours is None:
        return _WAIT
    if hours > LONGEST_H:
        return _STUCK
    return f"{_STAY} and let the run go on, for about {duration(hours)} at this traffic; {_VALID}."


LONGEST_H = 14 * 24.0
"""What takes more hours cannot be decided at this traffic."""
SOON_H = 48.0
"""Within which more traffic should decide it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """Pairs still missing, and the hours they take at the traffic of the run; ``None``: no number of them is enough, or
    it is not known how long they take."""

    pairs: int | None
    hours: float | None

    @property
    def soon(self) -> bool:
        """Whether waiting is a way."""
        return self.pairs is not None and (self.hours is None or self.hours <= LONGEST_H)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """How a rule that is not decided yet goes on, if pairs come as so far."""

    margin: str
    wider: str | None
    """The margin that could be decided; ``None``: none."""
    above: bool
    """The whole interval is above the margin, but not over enough blocks, or without the worst ``trim``."""
    trim: int
    go: Missing
    rollback: Missing
    mirrored: float | None
    """Share of requests that is copied; ``None`` where nothing is."""
    repeated: bool
    """Only pairs with a baseline repeat count."""
    ended: bool = False
    """The run is over: what is missing only a longer one has."""


def outlook(one: Outlook) -> str:
    """What is missing until the rule is decided, or what would make it decidable."""
    if one.above:
        without = f" without the worst {one.trim} blocks" if one.trim else " over enough blocks"
        proven = f"above the margin of {one.margin}, but not yet proven{without}"
        return (
            f"{proven}; {_more(one.rollback, 'ROLLBACK', ended=one.ended)}" if one.rollback.soon else proven
        )
    for missing, verdict in ((one.go, "GO"), (one.rollback, "ROLLBACK")):
        if missing.soon:
            return f"the margin is {one.margin}; {_more(missing, verdict, ended=one.ended)}"
    sooner = one.go if one.go.pairs is not None else one.rollback
    ways = [f"widen it to {one.wider}"] if one.wider else []
    if sooner.hours is not None:
        ways.append(_faster(sooner.hours, one))
    why = (
        "the harm is about as large"
        if sooner.hours is None
        else f"it takes about {sooner.pairs:,} more pairs, {duration(sooner.hours)}"
    )
    return f"the margin of {one.margin} cannot be decided at this traffic ({why}): {' or '.join(ways) or 'widen it'}"


def _more(missing: Missing, verdict: str, *, ended: bool) -> str:
    at = "" if missing.hours is None else f", about {duration(missing.hours)} at this traffic,"
    if ended:
        return f"a new run needs about {missing.pairs:,} pairs more than this one{at} for {verdict} if they come alike"
    return f"about {missing.pairs:,} more pairs{at} for {verdict} if they come as so far"


def _faster(hours: float, one: Outlook) -> str:
    """What gives the missing pairs within 48 hours."""
    times = hours / SOON_H
    what = "mirror or repeat" if one.repeated else "mirror"
    if one.mirrored is None:
        return f"record {times:.2g} times as many pairs an hour"
    if one.mirrored * times > 1:
        return f"{what} everything, which takes {duration(hours * one.mirrored)}"
    return f"mirror {max(0.01, one.mirrored * times * 100):.2g} % to have it in {SOON_H:.0f} h"


def duration(hours: float) -> str:
    """For people: ``40 min``, ``6.5 h``, ``12 days``."""
    if hours < 2:
        return f"{max(1, round(hours * 60))} min"
    return f"{hours:.2g} h" if hours < 48 else f"{hours / 24:,.0f} days"
