"""Numbers and names as people read them, for every renderer."""

from __future__ import annotations

from replay.exchange import Arm
from reports.document import Acknowledged, Document, Latency
from reports.judgement import RuleResult, Verdict
from reports.rules import TITLES

MARKS = {Verdict.GO: "\u2713", Verdict.ROLLBACK: "\u2717", Verdict.HOLD: "\u25a0"}
"""A sign beside each verdict, so that colour is never the only one."""

NOTHING = "\u2013"
"""In place of a number that there is not."""

REHEARSAL = "The policy is shortened for a rehearsal: this verdict says nothing about production."

METRICS = {"ttft": "TTFT", "itl": "ITL", "e2e": "end to end"}
_PLACES = {
    "scored": "scored",
    "not_final": "perhaps still in flight",
    "in_future": "from the future",
    "other_version": "of another version",
    "warm_up": "in the warm-up",
    "not_comparable": "not comparable",
    "client_left": "the client left",
    "unserved": "not offered by the candidate",
    "breaker_open": "withheld by the circuit breaker",
    "mirror_dropped": "dropped by the mirror",
    "not_sent": "not sent",
    "mirrored": "mirrored",
    "not_eligible": "not a mirrored path",
    "not_sampled": "not sampled",
    "stateful": "lean on server state",
    "not_json": "not JSON",
    "too_large": "too large",
    "incomplete": "arrived incomplete",
    "paused": "mirroring was stopped",
    "queue_full": "queue full",
    "mirror_down": "mirror down",
    "tap_failed": "defect of the tap",
    "undecided": "not decided yet",
    "alike": "alike",
    "different": "different",
    "not_scored": "not scored",
}


def title(rule: str) -> str:
    """A rule's name for people."""
    found = TITLES.get(rule, rule)
    return f"{found[:1].upper()}{found[1:]}"


def place(code: str) -> str:
    """Where a request went, for people."""
    return _PLACES.get(code) or code.removeprefix("skipped.").replace("_", " ")


def itself(document: Document) -> str | None:
    """How often the baseline differs from its own repeat, beside how often the candidate differs from it; ``None`` where
    no repeat was compared."""
    noise, compared = document.itself, document.compared
    if not noise["pairs"]:
        return None
    both = compared["alike"] + compared["different"]
    return (
        f"The baseline against itself: {count(noise['different'])} in {count(noise['pairs'])} differ; the candidate "
        f"against the baseline: {count(compared['different'])} in {count(both)}."
    )


def count(value: int) -> str:
    """With a comma at the thousands."""
    return f"{value:,}"


def counted(parts: dict[str, int], *, without: str) -> list[str]:
    """Each part that is not 0, the largest first: ``22 in the warm-up``."""
    found = sorted(
        ((n, code) for code, n in parts.items() if n and code != without), key=lambda part: -part[0]
    )
    return [f"{count(n)} {place(code)}" for n, code in found]


def quantity(value: float | None, unit: str, *, signed: bool = False) -> str:
    """A share as percentage, seconds as milliseconds (from 10 s on as seconds); an en dash for None."""
    if value is None:
        return NOTHING
    scale, places, symbol = _scale(value, unit)
    return f"{_number(value * scale, places, signed=signed)} {symbol}"


def interval(rule: RuleResult) -> str:
    """The two ends in one unit; an end that the data cannot bound is infinite."""
    return between(rule.low, rule.high, rule.unit)


def between(low: float | None, high: float | None, unit: str) -> str:
    """The same of any two ends."""
    if low is None and high is None:
        return NOTHING
    scale, places, symbol = _scale(max(abs(end) for end in (low, high) if end is not None), unit)
    first = "-\u221e" if low is None else _number(low * scale, places, signed=True)
    last = "+\u221e" if high is None else _number(high * scale, places, signed=True)
    return f"{first} to {last} {symbol}"


def from_to(baseline: float | None, candidate: float | None) -> str:
    """Two latencies of the two arms in one unit, baseline first."""
    if baseline is None or candidate is None:
        return f"{quantity(baseline, 's')} \u2192 {quantity(candidate, 's')}"
    scale, places, symbol = _scale(max(baseline, candidate), "s")
    old, new = (_number(value * scale, places) for value in (baseline, candidate))
    return f"{old} \u2192 {new} {symbol}"


def _scale(value: float, unit: str) -> tuple[float, int, str]:
    if unit == "share":
        return 100, 2 if abs(value) < 1 else 0, "%"
    size = abs(value)
    if size >= 10:
        return 1, 1, "s"
    return 1000, 2 if size < 0.001 else 1 if size < 0.1 else 0, "ms"


def _number(value: float, places: int, *, signed: bool = False) -> str:
    text = f"{value:+,.{places}f}" if signed else f"{value:,.{places}f}"
    return text.lstrip("+-") if not text.strip("+-0.,") else text


def span(seconds: float) -> str:
    """A duration for people: two or three digits and one unit."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 7_200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 172_800 else f"{seconds / 86_400:.1f} days"


def moment(at: str) -> str:
    """An ISO time for people."""
    return at.replace("T", " ").replace("Z", " UTC")


def acknowledged(one: Acknowledged) -> str:
    """Who took note of which ROLLBACK, and what follows from it."""
    return (
        f"ROLLBACK ({one.code}) was acknowledged by {one.who} at {moment(one.at)}: {one.why}. Pairs from before make no ROLLBACK "
        "any more"
    )


def latency(document: Document, metric: str, arm: Arm) -> Latency | None:
    """The latencies of one metric of one arm; ``None`` when it has no value."""
    found = (one for one in document.latency if one.metric == metric and one.arm == arm and one.samples)
    return next(found, None)


def share(document: Document) -> str:
    """The configured share, or nothing."""
    percent = document.run["percent"]
    return "" if percent is None else f" ({percent:g} % configured)"
