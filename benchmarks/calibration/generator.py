"""Two days of traffic out of a seed: pairs of which it is known whether, and from when on, the candidate does harm.

Latency is log-normal (median 800 ms, sigma 0.6): a part that belongs to the request and is common to both arms, and a part
of each answer. The arms differ by nothing else than what ``Traffic`` does to each of them in turn (incidents, wandering
latency), a cold candidate, and the planted ``Harm``. Times are in seconds unless a name says otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from replay.exchange import Outcome
from reports.arrays import of_arrays
from reports.columns import RATES, Answers, Columns
from reports.stats import Flags, Floats

START = 1_767_225_600.0
"""Epoch seconds of every run's beginning: a midnight."""
TIMEOUT_S = 60.0
"""The backends' total timeout."""
HOUR, DAY = 3600.0, 86_400.0

_MEDIAN_S, _SIGMA, _COMMON = 0.8, 0.6, 0.6
"""Of the end-to-end latency; ``_COMMON``: share of the variance that belongs to the request (the correlation of the arms)."""
_SLOW, _SLOWER = 0.02, 3.0
"""Share of requests that are long ones, and by how much."""
_SHARED_ERRORS, _OWN_ERRORS = 0.002, 0.003
_FLAKY, _DIFFERING = 0.10, 0.60
"""Share of prompts whose answers vary, and how often one does: a baseline differs from its own repeat in 6 %."""
_REPEATED = 0.20
_LENGTH, _LENGTH_SIGMA = 120.0, 0.5
_CUT_OFF = 0.01
_INCIDENT_ERRORS = 0.30
_OK, _ERROR, _TIMEOUT = (
    list(Outcome).index(one) for one in (Outcome.OK, Outcome.HTTP_ERROR, Outcome.TIMEOUT)
)
_DROPPED, _NOT_SENT = (list(Outcome).index(one) for one in (Outcome.MIRROR_DROPPED, Outcome.NOT_SENT))


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """What happens to both arms alike, or to each of them with the same chances. Shares are 0 to 1."""

    hours: float = 48.0
    per_minute: float = 30.0
    steady: bool = False
    """Constant traffic; else it has a daily cycle of 1 : 4."""
    shared_errors: float = _SHARED_ERRORS
    own_errors: float = _OWN_ERRORS
    drift: bool = False
    """Latency follows the load of the day, and errors too: they come in threefold at its peak."""
    incidents: int = 0
    """In each arm alone, at random times: 30 % errors."""
    incident_minutes: float = 5.0
    slow_incidents: bool = False
    """Latency three times as long instead of errors."""
    cold_minutes: float = 0.0
    """The candidate's first minutes, three times as slow."""
    heavy: bool = False
    """The long requests are Pareto distributed with exponent 1.2; some never end."""
    bursty: bool = False
    """A few minutes carry most requests, and slow both arms."""
    missing: float = 0.0
    """Copies that the mirror dropped."""
    wander_minutes: float = 0.0
    """Half of the variance of an arm's own latency wanders together, over this time; 0: all of it is each answer's."""
    sessions: bool = False
    """Conversations of 1 to 30 turns; latency, errors and disagreement belong to the conversation, in each arm by itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Harm:
    """What the candidate does worse, from ``after_h`` hours on; each is the excess over the baseline."""

    after_h: float = 0.0
    errors: float = 0.0
    timeouts: float = 0.0
    differs: float = 0.0
    e2e_s: float = 0.0
    """Added to every latency."""
    tail: float = 0.0
    """The slowest tenth is slower by this share of itself: every quantile above the 90th moves by exactly it."""
    outage: str | None = None
    """``error``: every request fails at once; ``hang``: none is ever answered."""
    truncated: bool = False
    """Every answer ends after 30 % of its tokens."""


def made(traffic: Traffic, harm: Harm, seed: np.random.SeedSequence) -> Columns:
    """The pairs of one run, as the product would have recorded them."""
    chance = np.random.default_rng(seed)
    elapsed, session = _arrivals(traffic, chance)
    common = _common(traffic, elapsed, session, chance)
    baseline = _arm(traffic, common, chance)
    repeat = _arm(traffic, common, chance)
    candidate = _arm(traffic, common, chance)
    candidate = _cold(candidate, elapsed < 60 * traffic.cold_minutes)
    candidate = _harmed(candidate, common, harm, elapsed >= HOUR * harm.after_h, chance)
    return _recorded(traffic, elapsed, session, (baseline, candidate, repeat), chance)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Common:
    """What belongs to the requests."""

    elapsed: Floats
    session: NDArray[np.int64]
    log_e2e: Floats
    log_ttft: Floats
    tokens: Floats
    error: Flags
    more_errors: Floats
    """Factor of each arm's own errors."""
    flaky: Flags
    cut_off: Flags


@dataclass(frozen=True, slots=True, kw_only=True)
class _Arm:
    """What one backend answered."""

    error: Flags
    timeout: Flags
    e2e: Floats
    ttft: Floats
    tokens: Floats
    cut_off: Flags
    differs: Flags


def _arrivals(traffic: Traffic, chance: np.random.Generator) -> tuple[Floats, NDArray[np.int64]]:
    """Seconds after the start, ascending, and each request's session (-1: none)."""
    span = traffic.hours * HOUR
    count = chance.poisson(traffic.per_minute * span / 60)
    if traffic.sessions:
        return _conversations(count, span, chance)
    minutes = np.arange(int(span / 60)) + 0.5
    weight = np.ones(minutes.size) if traffic.steady else 1 + 0.6 * _day(minutes * 60)
    if traffic.bursty:
        weight = weight * chance.gamma(0.25, 4.0, minutes.size)
    minute = chance.choice(minutes.size, count, p=weight / weight.sum())
    return np.sort(60.0 * (minute + chance.random(count))), np.full(count, -1)


def _conversations(count: int, span: float, chance: np.random.Generator) -> tuple[Floats, NDArray[np.int64]]:
    turns = chance.integers(1, 31, max(1, round(count / 15.5)))
    session = np.repeat(np.arange(turns.size), turns)
    first = np.cumsum(turns) - turns
    waited = np.cumsum(chance.exponential(40.0, session.size))
    elapsed = np.repeat(chance.uniform(0, span, turns.size) - waited[first], turns) + waited
    order = np.argsort(elapsed)
    order = order[elapsed[order] < span]
    return elapsed[order], session[order]


def _day(elapsed: Floats) -> Floats:
    """-1 at midnight, 1 at noon."""
    return -np.cos(2 * np.pi * elapsed / DAY)


def _common(
    traffic: Traffic, elapsed: Floats, session: NDArray[np.int64], chance: np.random.Generator
) -> _Common:
    size, day = elapsed.size, _day(elapsed)
    long = chance.random(size) < _SLOW
    slower = 1 + chance.pareto(1.2, size) if traffic.heavy else np.full(size, _SLOWER)
    level = 0.3 * day if traffic.drift else np.zeros(size)
    if traffic.bursty:
        minute = (elapsed // 60).astype(np.int64)
        level = level + 0.15 * np.log1p(np.bincount(minute)[minute] / traffic.per_minute)
    of = np.maximum(session, 0) if traffic.sessions else np.arange(size)
    flaky = chance.random(int(of.max(initial=0)) + 1) < _FLAKY
    more = 2 + day if traffic.drift else np.ones(size)
    return _Common(
        elapsed=elapsed,
        session=session,
        log_e2e=np.log(_MEDIAN_S)
        + level
        + _SIGMA * np.sqrt(_COMMON) * chance.standard_normal(size)
        + np.where(long, np.log(slower), 0.0),
        log_ttft=np.log(0.2) + level + 0.35 * chance.standard_normal(size),
        tokens=_LENGTH * np.exp(_LENGTH_SIGMA * chance.standard_normal(size)),
        error=chance.random(size) < traffic.shared_errors * more,
        more_errors=more,
        flaky=flaky[of],
        cut_off=chance.random(size) < _CUT_OFF,
    )


def _arm(traffic: Traffic, common: _Common, chance: np.random.Generator) -> _Arm:
    size, own = common.elapsed.size, _SIGMA * np.sqrt(1 - _COMMON)
    incident = _incidents(traffic, common.elapsed, chance)
    wander, jitter = np.zeros(size), 1.0
    failing = traffic.own_errors * common.more_errors
    differing = np.full(size, _DIFFERING)
    if traffic.wander_minutes:
        wander, jitter = own * np.sqrt(0.5) * _wandering(traffic, common.elapsed, chance), np.sqrt(0.5)
    if traffic.sessions:
        count = int(common.session.max(initial=0)) + 1
        wander = own * np.sqrt(0.5) * chance.standard_normal(count)[common.session]
        jitter = np.sqrt(0.5)
        failing = failing * np.where(chance.random(count) < 0.03, 1 / 0.03, 0.0)[common.session]
        differing = np.where(chance.random(count) < _DIFFERING, 1.0, 0.0)[common.session]
    if not traffic.slow_incidents:
        failing = np.where(incident, _INCIDENT_ERRORS, failing)
    wander = wander + np.where(incident & traffic.slow_incidents, np.log(3.0), 0.0)
    e2e = np.exp(common.log_e2e + wander + own * jitter * chance.standard_normal(size))
    ttft = np.exp(common.log_ttft + wander + 0.35 * chance.standard_normal(size))
    return _Arm(
        error=common.error | (chance.random(size) < failing),
        timeout=np.zeros(size, dtype=np.bool_),
        e2e=e2e,
        ttft=np.minimum(ttft, 0.9 * e2e),
        tokens=np.maximum(1, np.round(common.tokens * np.exp(0.05 * chance.standard_normal(size)))),
        cut_off=common.cut_off | (chance.random(size) < 0.002),
        differs=common.flaky & (chance.random(size) < differing),
    )


def _incidents(traffic: Traffic, elapsed: Floats, chance: np.random.Generator) -> Flags:
    inside = np.zeros(elapsed.size, dtype=np.bool_)
    for begin in chance.uniform(0, traffic.hours * HOUR, traffic.incidents):
        inside |= (elapsed >= begin) & (elapsed < begin + 60 * traffic.incident_minutes)
    return inside


def _wandering(traffic: Traffic, elapsed: Floats, chance: np.random.Generator) -> Floats:
    """An Ornstein-Uhlenbeck process of variance 1, at each request; drawn every tenth of its time."""
    step = 6.0 * traffic.wander_minutes
    count = int(traffic.hours * HOUR / step) + 2
    keep, value = np.exp(-0.1), chance.standard_normal()
    path = np.empty(count)
    for at, kick in enumerate(np.sqrt(1 - keep**2) * chance.standard_normal(count)):
        path[at] = value = keep * value + kick
    found: Floats = path[(elapsed / step).astype(np.int64)]
    return found


def _cold(arm: _Arm, cold: Flags) -> _Arm:
    factor = np.where(cold, 3.0, 1.0)
    return replace(arm, e2e=arm.e2e * factor, ttft=arm.ttft * factor)


def _harmed(arm: _Arm, common: _Common, harm: Harm, now: Flags, chance: np.random.Generator) -> _Arm:
    """Each excess is exact in the mean: it falls on requests that would have done well."""
    size = now.size
    whole_error = _SHARED_ERRORS + _OWN_ERRORS
    noise = _FLAKY * _DIFFERING
    bad = now & (chance.random(size) < harm.errors / (1 - whole_error))
    hung = now & (chance.random(size) < harm.timeouts)
    unlike = now & (chance.random(size) < harm.differs / (1 - noise))
    if harm.outage:
        bad, hung = (bad | now, hung) if harm.outage == "error" else (bad, hung | now)
    e2e = arm.e2e
    if harm.tail:
        e2e = np.where(now & (e2e > np.quantile(e2e, 0.9)), e2e * (1 + harm.tail), e2e)
    e2e = np.where(now, e2e + harm.e2e_s, e2e)
    cut = now & harm.truncated
    return replace(
        arm,
        error=arm.error | bad,
        timeout=arm.timeout | hung,
        e2e=np.where(cut, arm.ttft + 0.3 * (e2e - arm.ttft), e2e),
        tokens=np.where(cut, np.maximum(1, np.round(0.3 * arm.tokens)), arm.tokens),
        cut_off=arm.cut_off | cut,
        differs=arm.differs | unlike | cut,
    )


def _recorded(
    traffic: Traffic,
    elapsed: Floats,
    session: NDArray[np.int64],
    arms: tuple[_Arm, _Arm, _Arm],
    chance: np.random.Generator,
) -> Columns:
    """What the store would hold. A failed request has no TTFT and no tokens; an error comes after a tenth of a second."""
    size = elapsed.size
    outcomes = [_outcome(arm) for arm in arms]
    outcomes[1] = np.where(chance.random(size) < traffic.missing, _DROPPED, outcomes[1])
    outcomes[2] = np.where(chance.random(size) < _REPEATED, outcomes[2], _NOT_SENT)
    base, candidate, repeat = (_columns(arm, outcome) for arm, outcome in zip(arms, outcomes, strict=True))
    scored = [(outcomes[0] == _OK) & (outcome == _OK) for outcome in outcomes[1:]]
    table = of_arrays(
        START + elapsed,
        baseline=base,
        candidate=candidate,
        repeat=repeat,
        differs=np.where(scored[0], arms[1].differs, -1).astype(np.int8),
        repeat_differs=np.where(scored[1], arms[2].differs, -1).astype(np.int8),
        session=session,
    )
    return replace(
        table,
        baseline=_ending(table.baseline, arms[0]),
        candidate=_ending(table.candidate, arms[1]),
        repeat=_ending(table.repeat, arms[2]),
    )


def _outcome(arm: _Arm) -> NDArray[np.int64]:
    slow = arm.timeout | (arm.e2e >= TIMEOUT_S)
    return np.where(arm.error, _ERROR, np.where(slow, _TIMEOUT, _OK))


def _columns(arm: _Arm, outcome: NDArray[np.int64]) -> dict[str, NDArray[np.float64] | NDArray[np.int64]]:
    answered = outcome == _OK
    lasted = np.select([answered, outcome == _ERROR, outcome == _TIMEOUT], [arm.e2e, 0.1, TIMEOUT_S], np.nan)
    return {
        "outcome": outcome,
        "e2e_s": lasted,
        "ttft_s": np.where(answered, arm.ttft, np.nan),
        "output_tokens": np.where(answered, arm.tokens, np.nan),
    }


def _ending(answers: Answers, arm: _Arm) -> Answers:
    """Says of each answer whether it ended at its token limit."""
    traits = answers.traits.copy()
    place = RATES.index("truncation")
    traits[:, place] = np.where(answers.answered, arm.cut_off, -1)
    return replace(answers, traits=traits)
