"""When each request of a replay is due. Pure: chance comes from a seed.

A schedule is an iterator of seconds from the start, never falling, one for each request. It does not know of answers: an
open loop sends when a request is due, whatever became of the earlier ones.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Iterator, Sequence

_EVEN = 1e-6
"""Gaps that vary by less are equal to any clock, and a gamma distribution of them is beyond a float."""


def recorded(times: Iterable[float], *, speed: float = 1.0) -> Iterator[float]:
    """As the requests came: ``times`` are their moments in order; ``speed`` 2 takes half as long.

    A time before its predecessor's (clocks are set back) is taken to be the same moment.
    """
    _positive(speed, "speed")
    first: float | None = None
    latest = 0.0
    for at in times:
        first = at if first is None else first
        latest = max(latest, (at - first) / speed)
        yield latest


def steady(rate: float, *, burstiness: float = 1.0, seed: int = 0) -> Iterator[float]:
    """``rate`` requests a second, with gaps of a gamma distribution whose coefficient of variation is ``burstiness``.

    1 is a Poisson process, as independent users make it; above 1 requests come in bursts; below 1 more evenly; 0 is a
    constant rate.
    """
    _positive(rate, "rate")
    if burstiness < 0:
        raise ValueError(f"burstiness cannot be below 0: {burstiness:g}")
    even = burstiness < _EVEN
    return (n / rate for n in itertools.count()) if even else _gamma(rate, burstiness, seed)


def ramp(start: float, end: float, seconds: float) -> Iterator[float]:
    """A rate that changes evenly from ``start`` to ``end`` over ``seconds``, and stays there.

    The n-th request is due when the integral of the rate is n.
    """
    for value, name in ((start, "first rate"), (end, "last rate"), (seconds, "time")):
        _positive(value, name)
    slope = (end - start) / seconds
    during = (start + end) / 2 * seconds
    for n in itertools.count():
        if n >= during:
            yield seconds + (n - during) / end
        elif slope == 0:
            yield n / start
        else:
            yield ((start**2 + 2 * slope * n) ** 0.5 - start) / slope


def sweep(
    rates: Sequence[float], seconds: float, *, burstiness: float = 1.0, seed: int = 0
) -> Iterator[float]:
    """Each rate for so many ``seconds``, one after the other; ends with the last."""
    _positive(seconds, "time")
    for step, rate in enumerate(rates):
        begin = step * seconds
        for at in steady(rate, burstiness=burstiness, seed=seed + step):
            if at >= seconds:
                break
            yield begin + at


def _gamma(rate: float, burstiness: float, seed: int) -> Iterator[float]:
    shape = 1 / burstiness**2
    chance = random.Random(seed)  # noqa: S311 - no secret
    at = 0.0
    while True:
        yield at
        at += chance.gammavariate(shape, 1 / (rate * shape))


def _positive(value: float, name: str) -> None:
    if not value > 0:
        raise ValueError(f"the {name} has to be above 0, not {value:g}")
