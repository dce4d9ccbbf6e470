"""A ROLLBACK that a person took note of. Pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Acknowledgement:
    """Who took note of a ROLLBACK. Evidence from before ``at`` no longer makes one."""

    at: float
    """Epoch seconds."""
    who: str
    why: str
    """Redacted."""
    code: str
    """The code of the ROLLBACK."""
