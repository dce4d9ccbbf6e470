"""What a check of validity may look at. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from reports.ledger import Ledger
from reports.policy import Policy
from reports.reading import Reading, Unread
from reports.rules import RULES


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
    of ``mirroring.SAMPLED``); ``mirror_ppm``, the configured share in parts per million. What is absent is not checked."""

    @property
    def required(self) -> tuple[str, ...]:
        """Names of the rules that a verdict rests on."""
        return tuple(rule.name for rule in RULES if rule.promise(self.policy).required)


def duration(seconds: float) -> str:
    """``15 min``, ``1.5 h``."""
    for unit, size in (("h", 3600.0), ("min", 60.0)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.3g} s"
