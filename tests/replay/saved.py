"""Reads answers saved with ``curl -si --raw``: status line, headers, body with its chunk framing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from replay.exchange import Recording
from replay.saved import read_saved

FIXTURES = Path(__file__).parents[1] / "fixtures"


def saved(path: Path) -> Recording:
    """The recording of a saved answer; each HTTP chunk is one read, a hundredth of a second apart."""
    found = read_saved(path.read_bytes())
    times = tuple((100.0 + 0.01 * (n + 2), piece) for n, (_, piece) in enumerate(found.chunks))
    ended = times[-1][0] if times else 100.01
    return replace(found, sent_at=100.0, head_at=100.01, chunks=times, ended_at=ended)
