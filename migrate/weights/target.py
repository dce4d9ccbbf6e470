"""What is known of each proxy: how a share is written for it, and what its own configuration has to hold once. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

PARTS = 10_000
"""Shares are written in hundredths of a percent, the finest that nginx knows."""


def parts(share: float) -> int:
    """A share of 0 to 1 in ``PARTS``. Above 0 it is never 0, and below 1 never all."""
    if share in (0, 1):
        return int(share) * PARTS
    return min(max(round(share * PARTS), 1), PARTS - 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A proxy that moves traffic."""

    text: Callable[[float, str], str]
    """From the share, and what the file holds so far (empty where it is not there), to what it has to hold. Raises ConfigError
    where that cannot be made of it."""
    setup: str
    """What the proxy's configuration has to hold, and what is to be run after each change, with comments."""
