"""Many pairs, each compared alone: a line a pair for programs, and what all of them amount to for a person. Pure."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass

from replay.exchange import JSON
from reports.causes import Cause, Causes
from reports.compare.model import Comparison
from reports.intervals import share_interval
from reports.judgement import Severity
from reports.pairing import differs
from reports.render.text import clip, wrap

ALPHA = 0.05
"""Chance that a bound of the excess is wrong, over all looks."""
_SHOWN = 12
_COLOURS = {Severity.WARN: "33", Severity.BLOCK: "31", Severity.INVALID: "35"}
_WORDS = {
    Severity.EQUAL: "served alike",
    Severity.NOTE: "served alike; what differs is noted",
    Severity.WARN: "a client may stumble over it",
    Severity.BLOCK: "a user would be served differently",
    Severity.INVALID: "nothing can be concluded",
}


def outcome(comparison: Comparison) -> Severity:
    """The severity of a pair. What was not scored is INVALID: it is neither alike nor different."""
    return Severity.INVALID if differs(comparison) is None else comparison.severity


def as_line(name: str | int, first: Comparison, repeat: Comparison | None) -> JSON:
    """A pair as a program reads it; ``repeat`` only where the baseline was asked again."""
    line: JSON = {
        "id": name,
        "severity": outcome(first).value,
        "findings": [asdict(finding) | {"severity": finding.severity.value} for finding in first.findings],
        "similarity": first.similarity,
    }
    if repeat is not None:
        line["repeat"] = {"severity": outcome(repeat).value, "similarity": repeat.similarity}
    return line


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """How much more the candidate differs from the baseline than the baseline from itself. Shares are 0 to 1."""

    pairs: int
    """With a repeat, and both comparisons scored."""
    candidate: float
    """Share in which the candidate differs."""
    repeat: float
    """Share in which the baseline's own repeat differs: the noise floor."""
    low: float
    """Bounds of the excess (candidate - repeat), each wrong with a chance of 5 % at most, over all looks."""
    high: float

    @property
    def excess(self) -> float:
        """Candidate's share minus the repeat's."""
        return self.candidate - self.repeat


class Tally:
    """What pairs amount to, in constant memory."""

    def __init__(self) -> None:
        self.severities: Counter[Severity] = Counter()
        self._causes = Causes()
        self._both: Counter[tuple[bool, bool]] = Counter()
        self.repeats = 0

    def add(self, at: int, first: Comparison, repeat: Comparison | None) -> None:
        """One pair; ``at`` is its place, so that the first of each cause is its example."""
        self.severities[outcome(first)] += 1
        self._causes.add(at, first)
        if repeat is None:
            return
        self.repeats += 1
        one, again = differs(first), differs(repeat)
        if one is not None and again is not None:
            self._both[one, again] += 1

    @property
    def pairs(self) -> int:
        """Pairs added."""
        return self.severities.total()

    @property
    def causes(self) -> tuple[Cause, ...]:
        """Gravest first; ``first_at`` and ``last_at`` are places."""
        return self._causes.all()

    @property
    def noise(self) -> Noise | None:
        """``None`` while no pair with a repeat is scored."""
        count = self._both.total()
        if not count:
            return None
        worse, better = self._both[True, False], self._both[False, True]
        both = self._both[True, True]
        low, high = share_interval(worse, count - worse - better, better, ALPHA)
        return Noise(
            pairs=count, candidate=(worse + both) / count, repeat=(better + both) / count, low=low, high=high
        )


def as_text(tally: Tally, *, width: int = 100, colour: bool = False) -> str:
    """For a person: pairs by severity, the causes with an example each, the noise floor."""
    lines = [f"{tally.pairs:,} pairs", ""]
    lines += [
        f"  {_paint(severity, colour)}{tally.severities[severity]:>12,}  {_WORDS[severity]}"
        for severity in reversed(Severity)
        if tally.severities[severity]
    ]
    lines += _causes(tally.causes, width, colour)
    lines += ["", *wrap(_noise(tally), width)]
    return "\n".join(lines) + "\n"


def _paint(severity: Severity, colour: bool) -> str:
    word = f"{severity.value:<8}"
    return f"\x1b[1;{_COLOURS[severity]}m{word}\x1b[0m" if colour and severity in _COLOURS else word


def _causes(found: tuple[Cause, ...], width: int, colour: bool) -> list[str]:
    lines: list[str] = []
    for cause in found[:_SHOWN]:
        lines += [
            "",
            f"  {_paint(cause.severity, colour)}{cause.count:>12,}  {cause.category} ({cause.side})",
        ]
        lines += wrap(f"{cause.example}: {cause.message}", width, first=" " * 12, rest=" " * 12)
        lines += [" " * 12 + clip(cause.evidence, width - 12)] if cause.evidence else []
    return [*lines, "", f"  {len(found) - _SHOWN} more causes"] if len(found) > _SHOWN else lines


def _noise(tally: Tally) -> str:
    noise = tally.noise
    if noise is None and tally.repeats:
        return "Noise floor: no pair with a repeat could be scored."
    if noise is None:
        return "Noise floor: not known; no line has the baseline's repeat."
    return (
        f"Noise floor: in {noise.pairs:,} pairs with a repeat the baseline differs from itself in {noise.repeat:.2%}, the "
        f"candidate from it in {noise.candidate:.2%}: excess {noise.excess * 100:+.2f} points, "
        f"{noise.low * 100:+.2f} to {noise.high * 100:+.2f} (each bound {1 - ALPHA:.0%} at every look)."
    )
