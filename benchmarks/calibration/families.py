"""The families of runs, with the question put to each and the answer it must reach: the table of what must be shown.

A family that misses its target is a finding about the judge; its traffic is not to be changed for it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np

from benchmarks.calibration import replayed
from benchmarks.calibration.generator import HOUR, TIMEOUT_S, Harm, Traffic, made
from reports.columns import Columns

Make = Callable[[np.random.SeedSequence], Columns]
Looks = tuple[float, ...]
"""Seconds after the start of the run."""


class Question(Enum):
    """What is asked of the runs of a family."""

    NO_HARM = "ROLLBACK at any look"
    AT_MARGIN = "GO of the harmed rule at any look"
    GO = "GO"
    DECIDED = "errors and median decided"
    FOUND = "ROLLBACK in time"
    HOLD = "HOLD with its code"


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """Runs of one kind."""

    name: str
    question: Question
    make: Make
    looks: Looks
    harm_h: float = 0.0
    """When the harm begins."""
    rule: str = ""
    """The harmed rule, or the code of the HOLD."""
    at_most: float | None = None
    """Target of the share; ``None`` with ``at_least``: the share is shown without one."""
    at_least: float | None = None
    median_h: float | None = None
    """Target of the median hours, from the harm's beginning."""


def every(minutes: float, until_h: float, after_h: float = 0.0) -> Looks:
    """Looks each so many minutes until ``until_h``, from the first after ``after_h`` on."""
    count = round((until_h - after_h) * 60 / minutes)
    return tuple(after_h * HOUR + 60 * minutes * (1 + number) for number in range(count))


_TWO_DAYS = every(60, 48)
_STEADY = Traffic(steady=True)


def _of(traffic: Traffic, harm: Harm = Harm()) -> Make:  # noqa: B008 - a value
    return lambda seed: made(traffic, harm, seed)


def _no_harm(name: str, traffic: Traffic, at_most: float | None = 0.01) -> Family:
    return Family(name=name, question=Question.NO_HARM, make=_of(traffic), looks=_TWO_DAYS, at_most=at_most)


NO_HARM = (
    _no_harm("independent", Traffic()),
    _no_harm("drift in both arms", Traffic(drift=True)),
    _no_harm("3 incidents of 5 min in each arm", Traffic(incidents=3)),
    _no_harm("10 incidents of 5 min in each arm", Traffic(incidents=10)),
    _no_harm("3 incidents of 15 min in each arm", Traffic(incidents=3, incident_minutes=15), at_most=0.05),
    _no_harm("3 slow incidents of 5 min in each arm", Traffic(incidents=3, slow_incidents=True)),
    _no_harm("cold candidate, 10 min", Traffic(cold_minutes=10)),
    _no_harm("heavy tail", Traffic(heavy=True)),
    _no_harm("no errors", Traffic(shared_errors=0, own_errors=0)),
    _no_harm("equal errors, 3 %", Traffic(shared_errors=0.03, own_errors=0)),
    _no_harm("bursts", Traffic(bursty=True)),
    _no_harm("1 % missing", Traffic(missing=0.01)),
    _no_harm("5 % missing", Traffic(missing=0.05)),
    _no_harm("20 % missing", Traffic(missing=0.20)),
    _no_harm("latency autocorrelated over 1 min", Traffic(wander_minutes=1)),
    _no_harm("latency autocorrelated over 10 min", Traffic(wander_minutes=10)),
    _no_harm("sessions of 1 to 30 turns", Traffic(sessions=True)),
    Family(
        name="a real log against itself",
        question=Question.NO_HARM,
        make=replayed.resampled,
        looks=_TWO_DAYS,
        at_most=0.01,
    ),
)

_HARMS = {
    "errors": Harm(errors=0.01),
    "latency_median": Harm(e2e_s=0.05),
    "latency_p95": Harm(tail=0.10),
    "timeouts": Harm(timeouts=0.05),
    "disagreement": Harm(differs=0.03),
}
"""At the margin of the default policy."""
_SAID = {
    "errors": ("errors, 1 point", "errors, 2 points"),
    "latency_median": ("median, 50 ms", "median, 100 ms"),
    "latency_p95": ("tail, 10 %", "tail, 20 %"),
    "timeouts": ("timeouts, 5 points", "timeouts, 10 points"),
    "disagreement": ("disagreement, 3 points", "disagreement, 6 points"),
}


def twice(harm: Harm) -> Harm:
    """Twice the excess."""
    return replace(
        harm,
        errors=2 * harm.errors,
        timeouts=2 * harm.timeouts,
        differs=2 * harm.differs,
        e2e_s=2 * harm.e2e_s,
        tail=2 * harm.tail,
    )


AT_MARGIN = tuple(
    Family(
        name=f"at the margin: {_SAID[rule][0]}",
        question=Question.AT_MARGIN,
        make=_of(_STEADY, harm),
        looks=_TWO_DAYS,
        rule=rule,
        at_most=0.05,
    )
    for rule, harm in _HARMS.items()
)

KEPT = (
    Family(
        name="no harm",
        question=Question.GO,
        make=_of(_STEADY),
        looks=_TWO_DAYS,
        at_least=0.95,
    ),
    Family(
        name="no harm: errors and median decided",
        question=Question.DECIDED,
        make=_of(Traffic(steady=True, hours=12)),
        looks=every(30, 12),
        at_least=0.95,
        median_h=6,
    ),
    Family(
        name="half a margin: errors, 0.5 points",
        question=Question.GO,
        make=_of(_STEADY, Harm(errors=0.005)),
        looks=_TWO_DAYS,
        at_least=0.0,
    ),
    Family(
        name="half a margin: median, 25 ms",
        question=Question.GO,
        make=_of(_STEADY, Harm(e2e_s=0.025)),
        looks=_TWO_DAYS,
        at_least=0.0,
    ),
)

FOUND = tuple(
    Family(
        name=f"twice a margin: {_SAID[rule][1]}",
        question=Question.FOUND,
        make=_of(Traffic(steady=True, hours=6.5), twice(harm)),
        looks=every(15, 6),
        rule=rule,
        at_least=0.95,
        median_h=3,
    )
    for rule, harm in _HARMS.items()
)


def _late(name: str, harm: Harm, hours: float, median_h: float | None = None) -> Family:
    return Family(
        name=f"after 24 good hours: {name}",
        question=Question.FOUND,
        make=_of(Traffic(steady=True, hours=24.5 + hours), replace(harm, after_h=24)),
        looks=every(60, 24) + every(15, 24 + hours, 24),
        harm_h=24,
        at_least=0.95,
        median_h=median_h,
    )


LATE = (
    *(_late(_SAID[rule][1], twice(harm), 8) for rule, harm in _HARMS.items()),
    _late("errors, 5 points", Harm(errors=0.05), 8, median_h=1.5),
)


def _at_once(name: str, harm: Harm, after_h: float) -> Family:
    when = "from the start" if not after_h else "after 24 good hours"
    looks = every(60, after_h) + every(1, after_h + 5 / 60, after_h)
    return Family(
        name=f"{name}, {when}",
        question=Question.FOUND,
        make=_of(Traffic(steady=True, hours=after_h + 0.5), replace(harm, after_h=after_h)),
        looks=looks,
        harm_h=after_h,
        at_least=1.0,
    )


AT_ONCE = tuple(
    _at_once(name, harm, after_h)
    for name, harm in {
        "total outage": Harm(outage="error"),
        "no answer at all": Harm(outage="hang"),
        "every answer truncated": Harm(truncated=True),
    }.items()
    for after_h in (0.0, 24.0)
)


def _hold(
    name: str, code: str, spoil: Callable[[Columns, np.random.Generator], Columns], hours: float
) -> Family:
    def make(seed: np.random.SeedSequence) -> Columns:
        table = spoil(made(Traffic(steady=True, hours=hours), Harm(), seed), np.random.default_rng(seed))
        return replace(table, position=np.arange(len(table)))

    return Family(
        name=name,
        question=Question.HOLD,
        make=make,
        looks=(hours * HOUR + 2 * TIMEOUT_S,),
        rule=code,
        at_least=1.0,
    )


def _without(arm: str) -> Callable[[Columns, np.random.Generator], Columns]:
    def spoil(table: Columns, _: np.random.Generator) -> Columns:
        return replayed.never(table, arm, np.ones(len(table), dtype=np.bool_))

    return spoil


def _unmeasured(table: Columns, _: np.random.Generator) -> Columns:
    return replace(table, candidate=replace(table.candidate, e2e=np.full(len(table), np.nan)))


HOLD = (
    _hold(
        "five pairs",
        "too_few_pairs",
        lambda table, _: table.take(np.linspace(0, len(table) - 1, 5).astype(int)),
        30,
    ),
    _hold("nothing", "no_data", lambda table, _: table.take(np.zeros(len(table), dtype=np.bool_)), 0.1),
    _hold("no candidate", "mirror_sent_nothing", _without("candidate"), 26),
    _hold("no baseline", "nothing_compared", _without("baseline"), 26),
    _hold(
        "40 % missing",
        "coverage",
        lambda table, chance: replayed.never(table, "candidate", chance.random(len(table)) < 0.4),
        26,
    ),
    _hold("candidate's latencies NaN", "coverage", _unmeasured, 26),
)

FAMILIES: tuple[Family, ...] = (*NO_HARM, *AT_MARGIN, *KEPT, *FOUND, *LATE, *AT_ONCE, *HOLD)
