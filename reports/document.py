"""The document: everything that a renderer shows, as one value. Times are ISO 8601 in UTC, durations seconds. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import numpy as np

from replay.exchange import JSON, Arm, Exchange, Observation, Outcome
from reports.causes import Cause, causes
from reports.compare import Comparison
from reports.compare.model import excerpt, rank
from reports.judgement import Check, Finding, Judgement, Measured, Pair, RuleResult, Severity, Verdict
from reports.metrics import Distribution, distributions

SCHEMA = {"name": "llm-migrate.report", "version": 1}
WORST = 12
"""Pairs shown in full."""
_CURVE_POINTS = 120
_EXCERPT = 600

DEFINITIONS = {
    "TTFT": "request sent to the first chunk that carries a non-empty token of content, reasoning or tool arguments; "
    "streamed requests only",
    "ITL": "gap between successive chunks that carry tokens; a chunk is not always one token",
    "end to end": "request sent to the last byte of the answer, or to [DONE] of a stream",
    "pair": "the baseline's and the candidate's answer to the same request",
    "different": "the answers would serve a user differently: a finding of severity BLOCK",
    "noise floor": "how often the baseline differs from its own repeat, on the requests that were repeated",
    "interval": "holds at every look, however often the report is made",
    "margin": "how much worse is still acceptable, set before looking",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """What is known of the run itself. Times in epoch seconds."""

    id: str
    kind: str
    status: str
    started_at: float
    ended_at: float | None
    baseline: str
    candidate: str | None
    percent: float | None
    """Configured share, 0 to 100."""
    seed: int
    policy: JSON
    notes: tuple[str, ...] = ()
    """What limits this report, such as a missing extra."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """The empirical distribution of one metric of one arm: ``share`` of values at or below ``seconds``."""

    metric: str
    arm: str
    seconds: tuple[float, ...]
    share: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One arm's answer in a pair that is shown."""

    outcome: str
    text: str
    finish_reason: str | None
    e2e_s: float | None
    ttft_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A pair worth looking at."""

    id: str
    at: str
    severity: str
    findings: tuple[Finding, ...]
    similarity: float | None
    prompt: str
    baseline: Side
    candidate: Side


@dataclass(frozen=True, slots=True, kw_only=True)
class Grouped:
    """A cause with its times as text."""

    category: str
    side: str
    severity: str
    count: int
    first_at: str
    last_at: str
    example: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One report. Equal observations, policy, seed and time of judging give an equal document."""

    verdict: Verdict
    code: str
    reason: str
    advice: str
    rehearsal: bool
    method: str
    span_s: float
    run: JSON
    traffic: dict[str, int]
    ledger: dict[str, int]
    compared: dict[str, int]
    rules: tuple[RuleResult, ...]
    checks: tuple[Check, ...]
    latency: tuple[Distribution, ...]
    curves: tuple[Curve, ...]
    causes: tuple[Grouped, ...]
    worst: tuple[Shown, ...]
    policy: JSON
    notes: tuple[str, ...]
    schema: JSON = field(default_factory=lambda: dict(SCHEMA))
    definitions: dict[str, str] = field(default_factory=lambda: dict(DEFINITIONS))


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """What one exchange contributed: its pair, its comparison, and what to show of it."""

    pair: Pair
    comparison: Comparison | None
    repeat: Comparison | None = None


def build(
    judgement: Judgement,
    items: Sequence[Item],
    run: RunFacts,
    *,
    counters: Mapping[str, int],
    shown: Sequence[Shown] = (),
) -> Document:
    """Puts a document together; ``shown`` are the pairs to print in full, in order."""
    pairs = [item.pair for item in items]
    compared = [(item.pair.at, item.comparison) for item in items if item.comparison]
    return Document(
        verdict=judgement.verdict,
        code=judgement.code,
        reason=judgement.reason,
        advice=advice(judgement),
        rehearsal=bool(run.policy.get("rehearsal")),
        method=judgement.method,
        span_s=judgement.span_s,
        run=_run(run),
        traffic=dict(sorted(counters.items())),
        ledger=judgement.ledger,
        compared=_compared(items),
        rules=judgement.rules,
        checks=judgement.checks,
        latency=distributions(pairs),
        curves=tuple(_curves(pairs)),
        causes=tuple(_grouped(cause) for cause in causes(compared)),
        worst=tuple(shown),
        policy=run.policy,
        notes=run.notes,
    )


def worst_first(items: Sequence[Item], count: int = WORST) -> list[Item]:
    """The gravest pairs, of as many different causes as possible, in an order that does not depend on chance."""
    ranked = sorted(
        (item for item in items if item.comparison and item.comparison.severity is not Severity.EQUAL),
        key=_gravity,
    )
    chosen: list[Item] = []
    seen: set[str] = set()
    for item in ranked:
        key = _leading(item)
        if key not in seen:
            seen.add(key)
            chosen.append(item)
    rest = [item for item in ranked if item not in chosen]
    return sorted((chosen + rest)[:count], key=_gravity)


def show(item: Item, exchange: Exchange) -> Shown:
    """A pair as it is printed. Long texts are cut; control characters are replaced by the renderers."""
    comparison = item.comparison
    return Shown(
        id=item.pair.id,
        at=iso(item.pair.at),
        severity=comparison.severity.value if comparison else "",
        findings=comparison.findings if comparison else (),
        similarity=comparison.similarity if comparison else None,
        prompt=excerpt(_prompt(exchange.request.body), _EXCERPT),
        baseline=_side(exchange.baseline),
        candidate=_side(exchange.candidate),
    )


def advice(judgement: Judgement) -> str:
    """What to do next, in one sentence."""
    if judgement.verdict is Verdict.GO:
        return "Move traffic in steps, and keep the baseline running until the candidate carries all of it."
    if judgement.verdict is Verdict.ROLLBACK:
        return (
            "Keep production on the baseline; look at the leading cause and its example before trying again."
        )
    return "Keep production on the baseline and let the run go on, or mend what the failed check names."


def iso(at: float) -> str:
    """Epoch seconds as ISO 8601 in UTC, to the second."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


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


def _compared(items: Sequence[Item]) -> dict[str, int]:
    """What became of the comparison of answers; the parts sum to ``pairs``."""
    counts = {"pairs": len(items), "alike": 0, "different": 0, "not_scored": 0}
    for item in items:
        key = {None: "not_scored", False: "alike", True: "different"}[item.pair.differs]
        counts[key] += 1
    return counts


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
    )


def _gravity(item: Item) -> tuple[Any, ...]:
    comparison = item.comparison
    if comparison is None:
        return (0, 0.0, item.pair.at, item.pair.id)
    similarity = 1.0 if comparison.similarity is None else comparison.similarity
    return (-rank(comparison.severity), similarity, item.pair.at, item.pair.id)


def _leading(item: Item) -> str:
    findings = item.comparison.findings if item.comparison else ()
    return max(findings, key=lambda f: rank(f.severity)).category if findings else ""


def _side(seen: Observation | None) -> Side:
    if seen is None:
        return Side(outcome="not_sent", text="", finish_reason=None, e2e_s=None, ttft_s=None)
    return Side(
        outcome=seen.outcome.value,
        text=excerpt(_said(seen), _EXCERPT),
        finish_reason=seen.answer.first.finish_reason if seen.answer else None,
        e2e_s=seen.timing.e2e_s,
        ttft_s=seen.timing.ttft_s,
    )


def _said(seen: Observation) -> str:
    if seen.failure is not None:
        return f"{seen.failure.error_class.value}: {seen.failure.message}"
    if seen.answer is None:
        return seen.reason
    first = seen.answer.first
    calls = "; ".join(f"{call.name}({call.arguments})" for call in first.tool_calls)
    return calls or first.text or first.refusal


def _prompt(body: bytes) -> str:
    """The last message of the request, or its prompt; the raw body when it is none of ours."""
    import orjson

    try:
        data = orjson.loads(body)
        message = (
            data["messages"][-1]
            if isinstance(data.get("messages"), list)
            else {"content": data.get("prompt")}
        )
        content = message.get("content")
    except (orjson.JSONDecodeError, AttributeError, IndexError, KeyError, TypeError):
        return body[:2_000].decode(errors="replace")
    if isinstance(content, list):
        content = " ".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return str(content or "")


def _curves(pairs: Sequence[Pair]) -> list[Curve]:
    arms: tuple[tuple[Arm, list[Measured]], ...] = (
        (Arm.BASELINE, [pair.baseline for pair in pairs]),
        (Arm.CANDIDATE, [pair.candidate for pair in pairs]),
        (Arm.BASELINE_REPEAT, [pair.repeat for pair in pairs if pair.repeat]),
    )
    return [
        curve
        for metric in ("ttft", "itl", "e2e")
        for arm, measured in arms
        if (curve := _curve(metric, arm, [one for one in measured if one.outcome is Outcome.OK])) is not None
    ]


def _curve(metric: str, arm: Arm, answered: list[Measured]) -> Curve | None:
    values = np.sort(
        np.array([value for one in answered for value in _values(one, metric)], dtype=np.float64)
    )
    if values.size == 0:
        return None
    places = np.unique(np.linspace(0, values.size - 1, _CURVE_POINTS).round().astype(int))
    return Curve(
        metric=metric,
        arm=arm.value,
        seconds=tuple(round(float(values[place]), 6) for place in places),
        share=tuple(round(float(place + 1) / values.size, 6) for place in places),
    )


def _values(one: Measured, metric: str) -> tuple[float, ...]:
    if metric == "itl":
        return one.itl_s
    value = one.ttft_s if metric == "ttft" else one.e2e_s
    return () if value is None else (value,)
