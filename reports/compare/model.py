"""The values of a comparison: what a comparator sees, what it says, and what comes out of the cascade."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from replay.exchange import Choice
from reports.compare.asked import Asked
from reports.judgement import Finding, Severity
from reports.policy import Extractor

Vectors = NDArray[np.float32]
"""One unit vector a row."""
Embed = Callable[[Sequence[str]], Vectors]
"""Texts in, their unit vectors out, one row a text in the same order."""

_RANK = {severity: rank for rank, severity in enumerate(Severity)}
_EXCERPT = 160


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What the cascade says of two answers to one request.

    BLOCK means that a user would be served differently, in either direction; a finding's ``side`` says whose answer
    has the fault. ``scored`` is False when that could not be decided: nothing to compare, an error of ours, or a
    similarity that nobody computed. Such a pair is counted as unscored, never as equal or different.
    """

    request_id: str
    severity: Severity
    findings: tuple[Finding, ...] = ()
    similarity: float | None = None
    """Lowest cosine over aligned chunks; ``None``: decided without it, or not computed."""
    scored: bool = True
    undecided: tuple[tuple[str, str], ...] = ()
    """(baseline, candidate) texts that only similarity can decide, one sentence a line; one a choice at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One choice of each side, and what the request asked for."""

    asked: Asked
    baseline: Choice
    candidate: Choice
    baseline_capped: bool = False
    """The answer used all the tokens that the request allowed."""
    candidate_capped: bool = False
    task: Extractor | None = None
    """What decides in these answers; ``None``: all of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What one comparator says of one case."""

    findings: tuple[Finding, ...] = ()
    settled: bool = False
    """Later comparators have nothing to add. A BLOCK finding settles by itself."""
    scored: bool = True
    undecided: tuple[str, str] | None = None

    @property
    def final(self) -> bool:
        """The cascade ends here."""
        return self.settled or any(finding.severity is Severity.BLOCK for finding in self.findings)


PASS = Step()
"""Nothing to say; the next comparator decides."""
SETTLED = Step(settled=True)
"""The answers serve a user alike."""

Comparator = Callable[[Case], Step]


def worst(findings: Iterable[Finding]) -> Severity:
    """The gravest severity; EQUAL without findings."""
    return max((finding.severity for finding in findings), key=_RANK.__getitem__, default=Severity.EQUAL)


def rank(severity: Severity) -> int:
    """0 for EQUAL up to 4 for INVALID."""
    return _RANK[severity]


def odd_one(baseline: bool, candidate: bool) -> str | None:
    """The side on which alone something holds; ``None`` when both or neither."""
    if baseline is candidate:
        return None
    return "baseline" if baseline else "candidate"


def other(side: str) -> str:
    """The side opposite to ``side``."""
    return "candidate" if side == "baseline" else "baseline"


def excerpt(text: str, limit: int = _EXCERPT) -> str:
    """A printable single line of at most ``limit`` characters: no control characters, no lone surrogates."""
    head = " ".join(text[: limit * 2].split())
    shown = "".join(char if char.isprintable() else "\ufffd" for char in head)
    return shown if len(shown) <= limit and len(text) <= limit * 2 else shown[: limit - 1] + "…"


def both(baseline: str, candidate: str) -> str:
    """Evidence that quotes the two sides."""
    return f"baseline: {excerpt(baseline)} | candidate: {excerpt(candidate)}"
