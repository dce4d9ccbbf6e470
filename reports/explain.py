"""Why a rule says what it says: its evidence as it grew, and the blocks, pairs and sessions that carry it. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from reports.columns import Answers, Columns, columns
from reports.judge import take_in
from reports.judgement import Judgement, Pair, RuleResult
from reports.policy import Policy
from reports.reading import Frame, Reading, e2e, itl, tpot, ttft
from reports.rules import RULES, Rule
from reports.stats import Floats, Grid, finite, log_gains
from reports.weighing import Scale, evidence_above, weigh

NAMES = tuple(rule.name for rule in RULES)
"""What can be explained."""
_LOOKS = 60
_BLOCKS = 5
_PAIRS = 5
_SESSIONS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """The evidence of the pairs dispatched until ``at`` (epoch seconds), natural logarithms; ``None``: not readable yet."""

    at: float
    pairs: int
    go: float | None
    rollback: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Pairs next to each other in time that count for less in ROLLBACK. Times are those of its first and last pair."""

    first_at: float
    last_at: float
    worse: int
    same: int
    better: int
    adds: float
    """Natural logarithm of what it would add, in full, to the bet that would then have most; ``kept`` is what it does add."""
    kept: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighty:
    """A pair that weighs much."""

    id: str
    at: float
    says: str
    """``worse`` or ``better``: of the candidate."""
    weight: float
    """1, or less where it shares its say with others of its session."""
    session: str | None
    baseline: str
    """The outcome; so is ``candidate``."""
    candidate: str
    baseline_s: float | None
    """What a latency rule read, seconds; ``None`` for other rules and without an answer. So is ``candidate_s``."""
    candidate_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """A session that weighs much; ``weight`` is worse minus better, as they count."""

    session: str
    pairs: int
    worse: int
    better: int
    weight: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """All that one rule's verdict rests on."""

    result: RuleResult
    title: str
    needed_go: float
    """Natural logarithm of the evidence that GO needs; so is ``needed_rollback``."""
    needed_rollback: float
    since: float | None
    """Epoch seconds of an acknowledgement: what follows is of the pairs from then on, which alone can make a ROLLBACK."""
    growth: tuple[Moment, ...]
    """Empty where the rule could not be read; the last is the evidence of the verdict."""
    whole: float | None
    """The evidence for ROLLBACK with every block in full."""
    shortened: int
    """How many blocks count for less."""
    blocks: tuple[Block, ...]
    """Those of them that would add most; the one with most first."""
    worse: tuple[Weighty, ...]
    """Pairs that speak for harm, the weightiest first; so is ``better``, of those that speak against it."""
    better: tuple[Weighty, ...]
    sessions: tuple[Conversation, ...]
    """The weightiest first; empty where every pair speaks for itself."""


def explain(
    pairs: Sequence[Pair],
    policy: Policy,
    name: str,
    judgement: Judgement,
    *,
    now: float,
    counters: Mapping[str, int] | None = None,
    final: bool = False,
    timeout_s: float = 600.0,
    since: float | None = None,
) -> Explanation:
    """Why ``judgement`` says what it says of the rule ``name`` (one of ``NAMES``); the other arguments are those of
    ``standing.judge_since``."""
    rule = next(one for one in RULES if one.name == name)
    result = next(one for one in judgement.rules if one.rule == name)
    ordered = sorted(
        (pair for pair in pairs if since is None or pair.at >= since), key=lambda pair: (pair.at, pair.id)
    )
    seen = take_in(columns(ordered), policy, now=now, counters=counters, final=final, timeout_s=timeout_s)
    read, measure, ledger = seen.readings[name], seen.measure, seen.ledger
    if not isinstance(read, Reading) or not read.signs.size:
        return _silent(rule, result, measure, since)
    shortened = _shortened(read, measure)
    looks = 1 if policy.analysis == "fixed" else _LOOKS
    worse, better = (tuple(_weightiest(read, ledger.columns, ordered, name, sign)) for sign in (1, -1))
    return replace(
        _silent(rule, result, measure, since),
        growth=tuple(_growth(rule, ledger.evidence, seen.frame, measure, looks)),
        whole=finite(evidence_above(read, replace(measure, trim=0, most=math.inf))),
        shortened=len(shortened),
        blocks=tuple(shortened[:_BLOCKS]),
        worse=worse,
        better=better,
        sessions=_sessions(read, ordered),
    )


def _silent(rule: Rule, result: RuleResult, measure: Scale, since: float | None) -> Explanation:
    return Explanation(
        result=replace(
            result,
            evidence_go=finite(result.evidence_go),
            evidence_rollback=finite(result.evidence_rollback),
        ),
        title=rule.title,
        needed_go=measure.needed_go,
        needed_rollback=measure.needed_rollback,
        since=since,
        growth=(),
        whole=None,
        shortened=0,
        blocks=(),
        worse=(),
        better=(),
        sessions=(),
    )


def _growth(rule: Rule, evidence: Columns, frame: Frame, measure: Scale, looks: int) -> Iterator[Moment]:
    """Read anew from what was there by then: a rule may judge the same pair otherwise when it has seen more."""
    first, last = float(evidence.at[0]), float(evidence.at[-1])
    for number in range(1, looks + 1):
        at = last if number == looks else first + (last - first) * number / looks
        read = rule.read(evidence.take(evidence.at <= at), frame)
        found = weigh(rule, read, measure, required=True, brief=True)
        yield Moment(
            at=at,
            pairs=found.pairs,
            go=finite(found.evidence_go),
            rollback=finite(found.evidence_rollback),
        )


def _shortened(read: Reading, measure: Scale) -> list[Block]:
    """The blocks that are left out or cut, by the bet that would have most evidence with all in full; the one with most first."""
    grid, at = read.grid(block_s=measure.block_s, period_s=measure.period_s), read.at
    weighed = grid.counts(read.signs, read.weight)
    gains = log_gains(weighed, read.bar)
    best = gains[:, gains.sum(axis=0).argmax()]
    kept = np.minimum(best, measure.most)
    order = np.argsort(-best, kind="stable")
    kept[order[: measure.trim]] = np.minimum(kept[order[: measure.trim]], 0.0)
    counted = grid.counts(read.signs)
    places = [place for place in order.tolist() if kept[place] < best[place]]
    return [
        _block(at, grid, place, counted[place], float(best[place]), float(kept[place])) for place in places
    ]


def _block(at: Floats, grid: Grid, place: int, counted: Floats, adds: float, kept: float) -> Block:
    ends = np.append(grid.first, grid.signs)
    worse, same, better = (int(count) for count in counted)
    return Block(
        first_at=float(at[ends[place]]),
        last_at=float(at[ends[place + 1] - 1]),
        worse=worse,
        same=same,
        better=better,
        adds=adds,
        kept=kept,
    )


def _weightiest(
    read: Reading, table: Columns, ordered: Sequence[Pair], name: str, sign: int
) -> Iterator[Weighty]:
    """By weight, then by how far the two latencies are apart, where a failed request is infinitely slow, then the latest."""
    places = np.flatnonzero(read.signs == sign)
    pairs = table.take(read.position[places])
    base, candidate = (_seconds(arm, name) for arm in (pairs.baseline, pairs.candidate))
    apart = np.nan_to_num(np.abs(candidate - base), nan=np.inf)
    order = np.lexsort((-pairs.at, -apart, -read.weight[places]))
    for at in order[:_PAIRS].tolist():
        pair = ordered[int(pairs.position[at])]
        yield Weighty(
            id=pair.id,
            at=pair.at,
            says="worse" if sign > 0 else "better",
            weight=float(read.weight[places[at]]),
            session=pair.session,
            baseline=pair.baseline.outcome.value,
            candidate=pair.candidate.outcome.value,
            baseline_s=_known(base[at]),
            candidate_s=_known(candidate[at]),
        )


_LATENCIES = {"latency": e2e, "slow": e2e, "ttft": ttft, "tpot": tpot, "itl": itl}
"""What a rule reads, by the first word of its name; the other rules read no latency."""


def _seconds(answers: Answers, name: str) -> Floats:
    """NaN without an answer, and for a rule that reads none."""
    latency = _LATENCIES.get(name.split("_", maxsplit=1)[0])
    if latency is None:
        return np.full(answers.outcome.size, np.nan)
    return np.where(answers.answered, latency(answers), np.nan)


def _known(seconds: float) -> float | None:
    return None if math.isnan(seconds) else float(seconds)


def _sessions(read: Reading, ordered: Sequence[Pair]) -> tuple[Conversation, ...]:
    """Those that speak loudest, in either direction."""
    if not (read.weight < 1).any():
        return ()
    found: dict[str, list[tuple[int, float]]] = {}
    for place, sign, weight in zip(
        read.position.tolist(), read.signs.tolist(), read.weight.tolist(), strict=True
    ):
        if (session := ordered[place].session) is not None:
            found.setdefault(session, []).append((sign, weight))
    made = [_conversation(session, said) for session, said in found.items()]
    loud = [one for one in made if one.worse or one.better]
    return tuple(sorted(loud, key=lambda one: (-abs(one.weight), -one.pairs, one.session))[:_SESSIONS])


def _conversation(session: str, said: Sequence[tuple[int, float]]) -> Conversation:
    return Conversation(
        session=session,
        pairs=len(said),
        worse=sum(sign > 0 for sign, _ in said),
        better=sum(sign < 0 for sign, _ in said),
        weight=math.fsum(sign * weight for sign, weight in said),
    )
