"""When each token is due: log-normal TTFT and ITL, drawn repeatably."""

from __future__ import annotations

import math
import random

from replay.simulator.settings import Pacing


def schedule(pacing: Pacing, count: int, seed: int) -> tuple[float, ...]:
    """Due times of ``count`` tokens, in seconds after arrival.

    The first is ttft · e^(spread · z), each further one itl · e^(spread · z) later; z is standard normal,
    drawn from ``seed``.
    """
    if count <= 0:
        return ()
    if pacing.instant:
        return (0.0,) * count
    rng = random.Random(seed)
    due = [_log_normal(rng, pacing.ttft, pacing.ttft_spread)]
    while len(due) < count:
        due.append(due[-1] + _log_normal(rng, pacing.itl, pacing.itl_spread))
    return tuple(due)


def delayed(due: tuple[float, ...], extra: float) -> tuple[float, ...]:
    """The schedule moved back by ``extra`` seconds."""
    return tuple(at + extra for at in due) if extra else due


def stalled(due: tuple[float, ...], at: float, pause: float) -> tuple[float, ...]:
    """The schedule with a pause before the token at the share ``at`` of them, never the first."""
    if not pause or len(due) < 2:
        return due
    cut = 1 + int(at * (len(due) - 1))
    return due[:cut] + delayed(due[cut:], pause)


def _log_normal(rng: random.Random, median: float, spread: float) -> float:
    """Box-Muller on two uniform draws, whose sequence Python keeps between versions."""
    if median == 0:
        return 0.0
    normal = math.sqrt(-2 * math.log(1 - rng.random())) * math.cos(2 * math.pi * rng.random())
    return median * math.exp(spread * normal)
