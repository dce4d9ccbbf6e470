"""The document: everything that a renderer shows, as one value. Times are ISO 8601 in UTC, durations seconds. Pure.

A renderer formats; it computes nothing that a reader could take for a finding, so that all formats agree.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from replay.exchange import JSON, Arm
from replay.prometheus import Reading
from replay.told import Told
from reports.acknowledgement import Acknowledgement
from reports.advice import advice
from reports.advisory import Drift, Growth, Label, Slices
from reports.benchmark import Server
from reports.causes import Cause
from reports.columns import Columns
from reports.curves import Curve, Histogram, curves, histograms
from reports.figures import server
from reports.gathered import Gathered
from reports.judgement import Check, Judgement, RuleResult, Verdict
from reports.metrics import Distribution, distributions
from reports.outlook import Outlook
from reports.shown import Item, Shown
from reports.slicing import NOT_SAMPLED, UNSET
from reports.stats import finite
from reports.timeline import Timeline, timeline
from reports.times import iso
from reports.validity import CAVEATS
from reports.whole import causes_of_run

__all__ = [
    "SCHEMA",
    "Acknowledged",
    "Document",
    "Grouped",
    "Item",
    "Latency",
    "Level",
    "RunFacts",
    "Shown",
    "Target",
    "build",
    "iso",
]

SCHEMA = {"name": "llm-migrate.report", "version": 1}

NOT_MIRRORED = (
    "not_eligible",
    "not_sampled",
    "stateful",
    "not_json",
    "too_large",
    "incomplete",
    "paused",
    "queue_full",
    "mirror_down",
    "tap_failed",
)
"""What else than ``mirrored`` becomes of a request that passed the gateway."""

_REPEATS = "repeats_skipped."
_NOT_COUNTS = frozenset({"mirror_ppm", "tokens"})

DEFINITIONS = {
    "TTFT": "request sent to the first chunk that carries a non-empty token of content, reasoning or tool arguments; "
    "streamed requests only",
    "ITL": "gap between successive chunks that carry tokens; a chunk is not always one token",
    "end to end": "request sent to the last byte of the answer, or to [DONE] of a stream",
    "p50, p95, p99": "nearest rank over answered requests of one arm; failed requests have no latency here",
    "pair": "baseline and candidate observations of one request",
    "scored": "both arms are known: the pairs that rules read",
    "different": "a finding of severity BLOCK: the two answers would serve a user differently",
    "noise floor": "the same quantity between the baseline and its own repeat, on the requests that were repeated",
    "label": "the comparator by which two answers differ; coarse ones say whether and how an answer came, fine ones its words",
    "quality": "what can be counted in an answer by itself, candidate against baseline over the same pairs",
    "slice": "the requests that share a route, model, language, prompt length, turn, or way of asking; named where its evidence "
    "holds among all that were tested (e-BH), never part of the verdict",
    "servers": "what the servers' own metrics said, asked for every 15 s: requests running and waiting, share of the KV cache in "
    "use, prefix cache hits / queries in tokens, mean time in the queue, requests taken out of the batch for want of KV cache",
    "evidence": "how strongly the pairs speak for one side of a rule's margin, as the logarithm of odds; drawn over time in "
    "parts of what a verdict needs",
    "over time": "all pairs by the time of their dispatch, in pieces of equal length; a piece of fewer than 5 answers has no p50 "
    "and no disagreement, one of fewer than 20 no p95",
    "longest wait": "the longest gap between two chunks of one answer that carry tokens",
    "interval": "each end holds at every look, however often the report is made",
    "margin": "how much worse is still acceptable, set before looking",
    "GO": "all required rules show harm below their margins, and all checks passed",
    "ROLLBACK": "a required rule shows harm above its margin, or the candidate had an outage",
    "HOLD": "not enough, or not valid, evidence",
}
"""Beside every number that a report prints."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """How one arm is asked, as far as a person needs to know who wants to ask it again."""

    url: str
    key_env: str | None
    """The environment variable that holds its key; ``None`` where the configuration names none."""
    models: dict[str, str]
    """What it calls the models that clients name, where that is something else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """What is known of the run itself. Times in epoch seconds."""

    id: str
    kind: str
    status: str
    started_at: float
    ended_at: float | None
    judged_at: float
    """The end of the run; the time of judging while it goes on."""
    baseline: str
    candidate: str | None
    percent: float | None
    """Configured share, 0 to 100."""
    seed: int
    policy: JSON
    valid_for: float
    """Seconds from ``judged_at`` until the verdict expires."""
    notes: tuple[str, ...] = ()
    """What limits this report, such as a missing extra."""
    acknowledgements: tuple[Acknowledgement, ...] = ()
    """Of its ROLLBACKs, the earliest first."""
    targets: dict[str, Target] = field(default_factory=dict)
    """By arm."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """One quantile; ``None`` where there are too few samples for it."""

    level: float
    value_s: float | None
    low_s: float | None
    high_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """One metric of one arm over its answered requests."""

    metric: str
    """``ttft``, ``itl`` or ``e2e``."""
    arm: Arm
    requests: int
    samples: int
    """Above ``requests`` for ITL, which has one per gap."""
    quantiles: tuple[Level, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Grouped:
    """Findings of one cause."""

    category: str
    side: str
    severity: str
    count: int
    """Requests."""
    first_at: str
    last_at: str
    example: str
    """Id of a request."""
    message: str
    evidence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Acknowledged:
    """A person took note of a ROLLBACK; evidence from before ``at`` no longer makes one."""

    at: str
    who: str
    why: str
    code: str
    """Of the ROLLBACK."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One report. Equal observations, policy, seed and time of judging give an equal document."""

    verdict: Verdict
    code: str
    reason: str
    advice: str
    rehearsal: bool
    judged_at: str
    valid_until: str
    """The verdict says nothing of what comes after."""
    acknowledgements: tuple[Acknowledged, ...]
    """The earliest first."""
    method: str
    span_s: float
    run: JSON
    gateway: dict[str, int]
    """``passed``, and what became of these requests; the parts sum to it. Empty when nothing was counted."""
    ledger: dict[str, int]
    """``dispatched``, and the place of each; the parts sum to it."""
    compared: dict[str, int]
    """``pairs``, and what the comparison of answers said; the parts sum to it."""
    repeats: dict[str, int]
    """Baseline repeats that were ``answered`` or asked in vain, and ``skipped.`` reasons."""
    itself: dict[str, int]
    """``pairs`` in which the baseline's repeat was compared with its own answer, and in how many of them they are
    ``different``: what disagrees by itself."""
    retried: dict[str, int]
    """Answers by arm that needed more than one attempt."""
    not_recorded: int
    """Mirrored requests that are not, or not yet, in the store."""
    rules: tuple[RuleResult, ...]
    """Broken ones first, then undecided ones; those that are not required, or do not apply, last."""
    checks: tuple[Check, ...]
    causes: tuple[Grouped, ...]
    latency: tuple[Latency, ...]
    curves: tuple[Curve, ...]
    labels: tuple[Label, ...]
    """By what answers differ, coarsest first."""
    quality: tuple[Drift, ...]
    slices: Slices
    worst: tuple[Shown, ...]
    notes: tuple[str, ...]
    policy: JSON
    servers: dict[str, Server]
    told: dict[str, Told]
    """By arm, what the server stated of itself during the run; an arm that stated nothing is left out."""
    traffic: dict[str, int]
    """All counters as the gateway and the mirror last wrote them."""
    cost: Outlook | None = None
    """What serving costs, as far as the run says; ``None`` without a price."""
    sample: tuple[Shown, ...] = ()
    """Some pairs of every kind, beside the worst (see ``picking.sample``); ``build`` leaves them out."""
    targets: dict[str, Target] = field(default_factory=dict)
    """By arm: how it is asked."""
    histograms: tuple[Histogram, ...] = ()
    timeline: Timeline | None = None
    """``None`` of less than a second."""
    growth: tuple[Growth, ...] = ()
    """Of the required rules that could be read: how their evidence came together."""
    versions: dict[str, str] = field(default_factory=dict)
    """By arm, the model and deployment that its latest answer states."""
    definitions: dict[str, str] = field(default_factory=lambda: dict(DEFINITIONS))
    schema: JSON = field(default_factory=lambda: dict(SCHEMA))


def build(
    judgement: Judgement,
    seen: Gathered,
    run: RunFacts,
    *,
    counters: Mapping[str, int],
    shown: Sequence[Shown] = (),
    readings: Mapping[Arm, Sequence[Reading]] = {},
    told: Mapping[Arm, Told] = {},
    cost: Outlook | None = None,
) -> Document:
    """Puts a document together; ``shown`` are the pairs to print in full, in order, ``readings`` those of the servers, ``told``
    what they said they are."""
    traffic = {
        name: count for name, count in sorted(counters.items()) if name.split(".")[0] not in _NOT_COUNTS
    }
    return Document(
        verdict=judgement.verdict,
        code=judgement.code,
        reason=judgement.reason,
        advice=advice(
            judgement.verdict,
            judgement.code,
            kind=run.kind,
            ended=run.ended_at is not None,
            hours=_hours_until_go(judgement),
        ),
        rehearsal=bool(run.policy.get("rehearsal")),
        judged_at=iso(run.judged_at),
        valid_until=iso(run.judged_at + run.valid_for),
        acknowledgements=tuple(map(_acknowledged, run.acknowledgements)),
        method=judgement.method,
        span_s=judgement.span_s,
        run=_run(run),
        gateway=_gateway(traffic),
        ledger=dict(judgement.ledger),
        compared=_compared(seen.columns),
        repeats=_repeats(seen.columns, traffic),
        itself=_itself(seen.columns),
        retried=_retried(seen.columns),
        not_recorded=max(0, traffic.get("mirrored", 0) - len(seen)),
        rules=tuple(sorted((_bounded(rule) for rule in judgement.rules), key=_urgency)),
        checks=judgement.checks,
        causes=tuple(map(_grouped, (*causes_of_run(seen), *seen.causes))),
        latency=tuple(_latency(one) for one in distributions(seen)),
        curves=curves(seen),
        labels=judgement.labels,
        quality=judgement.quality,
        slices=judgement.slices,
        worst=tuple(shown),
        notes=(*run.notes, *_sampled(seen), *_caveats(judgement)),
        policy=run.policy,
        told={arm.value: said for arm, said in told.items()},
        servers={arm.value: said for arm, read in readings.items() if (said := server(read)) is not None},
        traffic=traffic,
        cost=cost,
        targets=run.targets,
        histograms=histograms(seen),
        timeline=timeline(seen.columns),
        growth=judgement.growth,
        versions=dict(_versions(seen.columns)),
    )


def _hours_until_go(judgement: Judgement) -> float | None:
    """Of the required rule that takes longest; ``None`` where one does not say."""
    hours = [
        rule.forecast_hours for rule in judgement.rules if rule.required and rule.verdict is Verdict.HOLD
    ]
    known = [one for one in hours if one is not None]
    return max(known) if known and len(known) == len(hours) else None


def _versions(table: Columns) -> Iterator[tuple[str, str]]:
    for arm, answers in (("baseline", table.baseline), ("candidate", table.candidate)):
        known = np.flatnonzero(answers.version >= 0)
        if known.size:
            yield arm, table.versions[answers.version[known[-1]]]


def _run(run: RunFacts) -> JSON:
    return {
        "id": run.id,
        "kind": run.kind,
        "status": run.status,
        "started_at": iso(run.started_at),
        "ended_at": None if run.ended_at is None else iso(run.ended_at),
        "baseline": run.baseline,
        "candidate": run.candidate,
        "percent": run.percent,
        "seed": run.seed,
    }


def _acknowledged(one: Acknowledgement) -> Acknowledged:
    return Acknowledged(at=iso(one.at), who=one.who, why=one.why, code=one.code)


def _gateway(traffic: Mapping[str, int]) -> dict[str, int]:
    """Counters are written one after the other: while a run goes on, some requests are not decided yet."""
    if "passed" not in traffic:
        return {}
    parts = {name: traffic.get(name, 0) for name in ("mirrored", *NOT_MIRRORED)}
    decided = sum(parts.values())
    passed = max(traffic["passed"], decided)
    return {"passed": passed, **parts, "undecided": passed - decided}


def _compared(table: Columns) -> dict[str, int]:
    alike, different = (int((table.differs == code).sum()) for code in (0, 1))
    not_scored = len(table) - alike - different
    return {"pairs": len(table), "alike": alike, "different": different, "not_scored": not_scored}


def _itself(table: Columns) -> dict[str, int]:
    alike, different = (int((table.repeat_differs == code).sum()) for code in (0, 1))
    return {"pairs": alike + different, "different": different}


def _repeats(table: Columns, traffic: Mapping[str, int]) -> dict[str, int]:
    asked, failed = int(table.repeated.sum()), int(table.repeat.failed.sum())
    skipped = {
        f"skipped.{name.removeprefix(_REPEATS)}": count
        for name, count in traffic.items()
        if name.startswith(_REPEATS)
    }
    return {"answered": asked - failed, "failed": failed, **skipped}


def _sampled(seen: Gathered) -> tuple[str, ...]:
    """Says so when answers were drawn by chance and nothing shows how much that alone makes them differ."""
    if seen.columns.repeated.any():
        return ()
    values, codes = seen.label("temperature")
    asked = {value: int((codes == code).sum()) for code, value in enumerate(values)}
    unset = asked.pop(UNSET, 0)
    sampled = sum(asked.values()) - asked.get(NOT_SAMPLED, 0)
    if not unset + sampled:
        return ()
    note = (
        f"{sampled:,} of {len(seen):,} requests asked for a temperature above 0 and {unset:,} left it to the server: their "
        "answers are drawn by chance, and without baseline repeats nobody knows how much that alone makes them differ"
    )
    return (note,)


def _caveats(judgement: Judgement) -> tuple[str, ...]:
    """What a reader of GO has to know although no check failed."""
    if judgement.verdict is not Verdict.GO:
        return ()
    return tuple(check.message for check in judgement.checks if check.code in CAVEATS)


def _retried(table: Columns) -> dict[str, int]:
    arms = {"baseline": table.baseline, "candidate": table.candidate}
    return {arm: int((seen.retried & ~seen.failed).sum()) for arm, seen in arms.items()}


def _urgency(rule: RuleResult) -> tuple[bool, bool, int]:
    return (
        not rule.applies,
        not rule.required,
        (Verdict.ROLLBACK, Verdict.HOLD, Verdict.GO).index(rule.verdict),
    )


def _bounded(rule: RuleResult) -> RuleResult:
    """Without infinite evidence: no JSON reader takes it."""
    return replace(
        rule, evidence_go=finite(rule.evidence_go), evidence_rollback=finite(rule.evidence_rollback)
    )


def _grouped(cause: Cause) -> Grouped:
    return Grouped(
        category=cause.category,
        side=cause.side,
        severity=cause.severity.value,
        count=cause.count,
        first_at=iso(cause.first_at),
        last_at=iso(cause.last_at),
        example=cause.example,
        message=cause.message,
        evidence=cause.evidence,
    )


def _latency(one: Distribution) -> Latency:
    levels = (Level(level=q.level, value_s=q.value, low_s=q.low, high_s=q.high) for q in one.quantiles)
    return Latency(
        metric=one.metric, arm=one.arm, requests=one.requests, samples=one.samples, quantiles=tuple(levels)
    )
