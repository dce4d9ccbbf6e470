"""Numbers and texts as people read them, for every renderer."""

from __future__ import annotations

import unicodedata

from reports.judgement import RuleResult, Verdict

MARKS = {Verdict.GO: "\u2713", Verdict.ROLLBACK: "\u2717", Verdict.HOLD: "\u25a0"}
"""A sign beside each verdict, so that colour is never the only one."""

NOTHING = "\u2013"

TITLES = {
    "errors": "Errors",
    "timeouts": "Timeouts",
    "slow_share": "Slower than the baseline's p99",
    "latency_median": "End to end, median",
    "latency_p95": "End to end, p95",
    "ttft_median": "TTFT, median",
    "ttft_p95": "TTFT, p95",
    "disagreement": "Different answers above the noise floor",
}


def title(rule: str) -> str:
    """A rule's name for people."""
    return TITLES.get(rule, rule)


def quantity(value: float | None, unit: str, *, signed: bool = False) -> str:
    """A share as percentage, seconds as milliseconds or seconds; an en dash for None."""
    if value is None:
        return NOTHING
    sign = "+" if signed and value > 0 else ""
    if unit == "share":
        return f"{sign}{value * 100:.2f} %"
    if abs(value) >= 10:
        return f"{sign}{value:.1f} s"
    places = 2 if abs(value) < 0.001 else 1 if abs(value) < 0.1 else 0
    return f"{sign}{value * 1000:.{places}f} ms"


def interval(rule: RuleResult) -> str:
    """The two ends; an end that the data cannot bound is infinite."""
    low = "-\u221e" if rule.low is None else quantity(rule.low, rule.unit, signed=True)
    high = "\u221e" if rule.high is None else quantity(rule.high, rule.unit, signed=True)
    return NOTHING if rule.low is None and rule.high is None else f"{low} to {high}"


def span(seconds: float) -> str:
    """A duration in its two largest units."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    minutes, hours, days = seconds / 60, seconds / 3600, seconds / 86_400
    if minutes < 120:
        return f"{minutes:.0f} min"
    return f"{hours:.1f} h" if hours < 48 else f"{days:.1f} days"


def moment(at: str) -> str:
    """An ISO time for people."""
    return at.replace("T", " ").replace("Z", " UTC")


def plain(text: str, limit: int = 2_000) -> str:
    """A text that cannot act: no control, format or surrogate characters (ANSI escapes, right-to-left overrides, NUL)."""
    shown = "".join(_harmless(char) for char in text[:limit])
    return shown + ("\u2026" if len(text) > limit else "")


def _harmless(char: str) -> str:
    if char in "\n\t":
        return " "
    return "\ufffd" if unicodedata.category(char) in ("Cc", "Cf", "Cs", "Co", "Cn") else char
