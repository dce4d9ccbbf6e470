"""Before anything runs: how long GO and ROLLBACK take at given traffic. Pure.

Pairs in the image of the traffic are read by the rules themselves, which says how often each sign comes. Runs with signs
that often are then drawn by chance and weighed by the engine's own evidence, so that a forecast cannot drift away from the
verdict that it forecasts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from reports.columns import Columns
from reports.forecast import round_up
from reports.judge import frame_of
from reports.ledger import sort_out
from reports.odds import HORIZON_S, MOST, NEVER, Chance, Signs, Span, go, rollback, span, when
from reports.policy import LimitRule, Policy
from reports.reading import Frame, Reading, Unread
from reports.rules import RULES, Rule
from reports.stats import Counts, count_signs
from reports.traffic import PAIRS_LIKE, Harm, Traffic, pairs_like

EFFECTS = (1.5, 2.0, 3.0, 5.0)
"""Harm in multiples of a rule's margin."""
SOON_S = 48 * 3600.0
"""Within which more traffic should decide what this traffic cannot."""
_WIDER = 1.25
_WIDEST = 64
_LEAST = 1e-4
"""In place of a margin of 0, so that it can be widened."""
_MOST_FASTER = 2.0**16


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """Of one required rule."""

    rule: str
    title: str
    unit: str
    margin: float | None
    go: Span
    """Without harm. GO of the whole waits for the other rules, too, and for the minimum span."""
    rollback: tuple[Span, ...]
    """With harm of each of ``EFFECTS`` margins, from the start."""
    reason: str | None = None
    """Why the rule cannot be read at all."""
    wider: float | None = None
    """Where GO may take over 14 days: the least margin, to a quarter, with which it does not."""
    faster: float | None = None
    """Where GO may take over 14 days: at so many times the traffic it comes within 48 hours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The forecast for a policy."""

    traffic: Traffic
    rules: tuple[Forecast, ...]
    go: Span
    """Without harm: all required rules, the minimum span and the minimum of pairs."""
    rollback: tuple[Span, ...]
    """With harm by one rule: by whichever takes longest."""


def plan(policy: Policy, traffic: Traffic, *, seed: int = 0) -> Plan:
    """How long the verdicts of ``policy`` take at ``traffic``. Equal arguments give an equal plan."""
    quiet, frame = _world(policy, traffic, {}, seed)
    cases = [
        _Case(policy=policy, traffic=traffic, rule=rule, seed=seed, quiet=quiet, frame=frame)
        for rule in RULES
        if rule.promise(policy).required
    ]
    rules = tuple(_forecast(case) for case in cases)
    goes, soonest = [case.go() for case in cases], _soonest(policy, traffic)
    return Plan(
        traffic=traffic,
        rules=rules,
        go=span(lambda at: math.prod(one(at) for one in goes) if goes and at >= soonest else 0.0),
        rollback=tuple(_slowest([rule.rollback[place] for rule in rules]) for place in range(len(EFFECTS))),
    )


def _soonest(policy: Policy, traffic: Traffic) -> float:
    """Before this no GO is said, whatever the evidence."""
    answered = traffic.pairs_per_hour / 3600 * (1 - traffic.error_rate) ** 2
    enough = policy.minimum_pairs / answered if answered else math.inf
    return policy.warmup + traffic.timeout_s + max(policy.minimum_span, enough)


def _slowest(spans: Sequence[Span]) -> Span:
    half, most = _latest([one.half_s for one in spans]), _latest([one.most_s for one in spans])
    return Span(half_s=half, most_s=most)


def _latest(times: Sequence[float | None]) -> float | None:
    known = [time for time in times if time is not None]
    return max(known) if known and len(known) == len(times) else None


def _forecast(case: _Case) -> Forecast:
    soon, read = span(case.go()), case.reading()
    stuck = soon.most_s is None and isinstance(read, Reading)
    return Forecast(
        rule=case.rule.name,
        title=case.rule.title,
        unit=case.rule.unit,
        margin=read.margin,
        go=soon,
        rollback=tuple(case.rollback(effect) for effect in EFFECTS),
        reason=read.reason if isinstance(read, Unread) else None,
        wider=_wider(case) if stuck else None,
        faster=_faster(case) if stuck else None,
    )


def _wider(case: _Case) -> float | None:
    """The least margin, to a quarter, with which four in five runs without harm say GO within 14 days."""
    margin = max(case.reading().margin or 0.0, _LEAST)
    for _ in range(_WIDEST):
        margin *= _WIDER
        if case.rule.unit == "share" and margin >= 1:
            return None
        if case.at(margin=margin).go()(HORIZON_S) >= MOST:
            return round_up(margin)
    return None


def _faster(case: _Case) -> float | None:
    """Times the traffic at which four in five runs without harm say GO within 48 hours."""
    return when(lambda times: case.at(times=times).go()(SOON_S), MOST, start=1.0, most=_MOST_FASTER)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Case:
    """One rule of a policy at some traffic, with pairs like the traffic's that have no harm."""

    policy: Policy
    traffic: Traffic
    rule: Rule
    seed: int
    quiet: Columns
    frame: Frame

    def at(self, *, margin: float | None = None, times: float = 1.0) -> _Case:
        """The same with another margin, or with ``times`` the traffic."""
        policy = self.policy if margin is None else _with_margin(self.policy, self.rule, margin)
        traffic = replace(self.traffic, pairs_per_hour=self.traffic.pairs_per_hour * times)
        return replace(self, policy=policy, traffic=traffic, frame=replace(self.frame, policy=policy))

    def reading(self) -> Reading | Unread:
        """What the rule reads without harm."""
        return self.rule.read(self.quiet, self.frame)

    def go(self) -> Chance:
        """The chance of GO without harm."""
        read = self.reading()
        if isinstance(read, Unread):
            return lambda _: 0.0
        return go(self._signs(read, read.cautious), self.policy, self.seed, RULES.index(self.rule))

    def rollback(self, effect: float) -> Span:
        """When ROLLBACK is said with harm of ``effect`` margins."""
        harm = {self.rule.name: effect * (self.reading().margin or 0.0)}
        read = self.rule.read(*_world(self.policy, self.traffic, harm, self.seed))
        if isinstance(read, Unread):
            return NEVER
        return rollback(self._signs(read, count_signs(read.signs)), self.policy, self.seed)

    def _signs(self, read: Reading, counts: Counts) -> Signs:
        first = int(read.position[0]) if read.position.size else 0
        a_second = self.traffic.pairs_per_hour / 3600
        some = self.traffic.repeats if self.rule.name == "disagreement" else 1.0
        each = a_second * some / self.traffic.turns / (PAIRS_LIKE - first)
        worse, same, better = (count * each for count in counts)
        begins = max(self.policy.warmup, first / a_second) + self.traffic.timeout_s
        return Signs(worse=worse, same=same, better=better, bar=read.bar, begins_s=begins)


def _with_margin(policy: Policy, rule: Rule, margin: float) -> Policy:
    promise = rule.promise(policy)
    name = "limit" if isinstance(promise, LimitRule) else "margin"
    return policy.model_copy(update={rule.name: promise.model_copy(update={name: margin})})


def _world(policy: Policy, traffic: Traffic, harm: Harm, seed: int) -> tuple[Columns, Frame]:
    """The pairs that count in a run like the traffic's, and what rules may know besides."""
    ledger = sort_out(
        pairs_like(traffic, harm, seed=seed),
        policy.model_copy(update={"warmup": 0.0}),
        now=math.inf,
        final=True,
        timeout_s=0.0,
    )
    return ledger.evidence, frame_of(ledger, policy)
