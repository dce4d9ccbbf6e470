"""Which pairs a report shows in full, and what it shows of them. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import orjson

from replay.exchange import Exchange, Observation, Request
from reports.compare import Comparison
from reports.compare.model import rank
from reports.judgement import Finding, Pair, Severity
from reports.policy import Policy
from reports.trees import Row, tree

WORST = 12
"""Pairs shown in full."""
_OTHERS = 3
"""Of these, kept for pairs that are worth a look for another reason than the leading one."""
_EXCERPT = 600
_WHOLE = 4_000
"""Bytes of a request up to which a report holds it whole."""
_BLANK = re.compile(r"\n\s*\n\s*\n")


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """What one exchange contributed: its pair, and its comparison where one was made."""

    pair: Pair
    comparison: Comparison | None
    repeat: Comparison | None = None
    """The baseline against its own repeat."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One arm of a pair that is shown."""

    outcome: str
    status: int | None
    text: str
    """An excerpt, around the first place where the two sides part; an error's message where there is no answer."""
    skipped: int
    """Characters left out before the excerpt."""
    length: int
    """Characters in all."""
    finish_reason: str | None
    e2e_s: float | None
    ttft_s: float | None
    head_s: float | None
    """Status line and headers arrived."""
    wait_s: tuple[float, float] | None
    """From when to when the longest wait between two chunks that carry tokens was; ``None`` with fewer than two."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The request of a pair as it is stored: redacted, and without its headers."""

    method: str
    path: str
    length: int
    """Bytes of its body."""
    body: str | None
    """Its JSON text; ``None`` when it is long, no text, or no longer kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A pair worth looking at."""

    id: str
    at: str
    severity: str
    findings: tuple[Finding, ...]
    """The gravest first."""
    similarity: float | None
    """Lowest cosine; ``None`` where it was not needed or not computed."""
    excess_s: float | None
    """Candidate's end to end minus the baseline's; ``None`` unless both answered."""
    prompt: str
    """The last message; empty when the body is no longer kept."""
    baseline: Side
    candidate: Side
    chosen: str
    """Why it is among those that are shown: ``worst``, or a stratum of ``picking.sample``."""
    labels: dict[str, str]
    """What kind of request it is, by dimension (see ``slicing``)."""
    rows: tuple[Row, ...]
    """Tool calls and JSON of both sides as one tree; empty where there is neither."""
    asked: Asked


def worst_first(
    items: Sequence[Item], policy: Policy, *, slow_first: bool = False, count: int = WORST
) -> list[Item]:
    """Pairs with grave findings, slow ones, then the closest calls; of as many different causes as possible.

    ``slow_first`` when the verdict rests on latency. The order does not depend on chance.
    """
    grave = _varied(item for item in items if _severity(item) >= rank(Severity.WARN))
    known = {item.pair.id for item in grave}
    slow = sorted((i for i in items if i.pair.id not in known and _is_slow(i, policy)), key=_slowness)
    slow = slow if slow_first else slow[:_OTHERS]
    known |= {item.pair.id for item in slow}
    close = sorted((i for i in items if i.pair.id not in known and _is_close(i)), key=_gravity)[:_OTHERS]
    first, second = (slow, grave) if slow_first else (grave, slow)
    rest = [*second, *close]
    lead = first[: count - min(_OTHERS, len(rest))]
    return [*lead, *rest[: count - len(lead)]]


def show(item: Item, exchange: Exchange, at: str, chosen: str = "worst") -> Shown:
    """A pair as it is printed; ``at`` is its time as text. Long texts are cut around the first difference."""
    comparison = item.comparison
    findings = comparison.findings if comparison else ()
    texts = _said(exchange.baseline), _said(exchange.candidate)
    start = _start(*texts)
    return Shown(
        id=item.pair.id,
        at=at,
        severity=(comparison.severity if comparison else Severity.NOTE).value,
        findings=tuple(sorted(findings, key=lambda finding: -rank(finding.severity))),
        similarity=comparison.similarity if comparison else None,
        excess_s=_excess(item),
        prompt=readable(_prompt(exchange.request.body)),
        baseline=_side(exchange.baseline, texts[0], start),
        candidate=_side(exchange.candidate, texts[1], start),
        chosen=chosen,
        labels=item.pair.labels,
        rows=tree(exchange.baseline, exchange.candidate),
        asked=_asked(exchange.request),
    )


def readable(text: str, limit: int = _EXCERPT) -> str:
    """At most ``limit`` characters of a text with its line ends; what cannot be printed becomes U+FFFD."""
    head = text[: limit + 1].replace("\r\n", "\n").replace("\t", " ")
    head = "".join(char if char.isprintable() or char == "\n" else "\ufffd" for char in head)
    head = _BLANK.sub("\n\n", head)
    return head if len(text) <= limit else head[: limit - 1].rstrip() + "…"


def alike_until(one: str, other: str) -> int:
    """Length of what both texts begin with."""
    shorter = min(len(one), len(other))
    return next((at for at in range(shorter) if one[at] != other[at]), shorter)


def _severity(item: Item) -> int:
    return rank(item.comparison.severity) if item.comparison else 0


def _varied(items: Iterable[Item]) -> list[Item]:
    """The gravest first, but the first of each cause before the second of any."""
    ranked = sorted(items, key=_gravity)
    firsts: dict[str, Item] = {}
    for item in ranked:
        firsts.setdefault(leading(item), item)
    ids = {item.pair.id for item in firsts.values()}
    return [*firsts.values(), *(item for item in ranked if item.pair.id not in ids)]


def _gravity(item: Item) -> tuple[Any, ...]:
    similarity = item.comparison.similarity if item.comparison else None
    return (-_severity(item), 1.0 if similarity is None else similarity, item.pair.at, item.pair.id)


def leading(item: Item) -> str:
    """The category of the gravest finding; empty without one."""
    findings = item.comparison.findings if item.comparison else ()
    return max(findings, key=lambda finding: rank(finding.severity)).category if findings else ""


def _excess(item: Item) -> float | None:
    base, candidate = item.pair.baseline, item.pair.candidate
    if base.outcome.failed or candidate.outcome.failed or base.e2e_s is None or candidate.e2e_s is None:
        return None
    return candidate.e2e_s - base.e2e_s


def _is_slow(item: Item, policy: Policy) -> bool:
    """Slower than the baseline by more than the margin of the p95."""
    excess, base, rule = _excess(item), item.pair.baseline.e2e_s or 0.0, policy.latency_p95
    return excess is not None and excess > max(rule.margin, (rule.relative or 0.0) * base)


def _slowness(item: Item) -> tuple[Any, ...]:
    return (-(_excess(item) or 0.0), item.pair.at, item.pair.id)


def _is_close(item: Item) -> bool:
    return item.comparison is not None and item.comparison.similarity is not None


def _side(seen: Observation | None, text: str, start: int) -> Side:
    skipped = start if len(text) > start else max(0, len(text) - _EXCERPT)
    return Side(
        outcome=seen.outcome.value if seen else "not_sent",
        status=seen.status if seen else None,
        text=readable(text[skipped : skipped + _EXCERPT + 1]),
        skipped=skipped,
        length=len(text),
        finish_reason=seen.answer.first.finish_reason if seen and seen.answer else None,
        e2e_s=seen.timing.e2e_s if seen else None,
        ttft_s=seen.timing.ttft_s if seen else None,
        head_s=seen.timing.head_s if seen else None,
        wait_s=_longest_wait(seen.timing.content_times) if seen else None,
    )


def _longest_wait(times: Sequence[float]) -> tuple[float, float] | None:
    return max(pairwise(times), key=lambda gap: gap[1] - gap[0], default=None)


def _asked(request: Request) -> Asked:
    try:
        body = request.body.decode() if 0 < len(request.body) <= _WHOLE else None
    except UnicodeDecodeError:
        body = None
    return Asked(method=request.method, path=request.path, length=len(request.body), body=body)


def _start(baseline: str, candidate: str) -> int:
    """Where the excerpts begin, so that the first difference is inside of them."""
    alike = alike_until(baseline, candidate)
    if max(len(baseline), len(candidate)) <= _EXCERPT or alike < _EXCERPT // 2:
        return 0
    return alike - _EXCERPT // 4


def _said(seen: Observation | None) -> str:
    if seen is None:
        return ""
    if seen.failure is not None:
        return f"{seen.failure.error_class.value}: {seen.failure.message}"
    if seen.answer is None:
        return seen.reason
    first = seen.answer.first
    calls = (f"{call.name}({call.arguments})" for call in first.tool_calls)
    return "\n".join(part for part in (first.text or first.refusal, *calls) if part)


def _prompt(body: bytes) -> str:
    """The last message of the request, or its prompt; the body itself when it is neither."""
    try:
        data = orjson.loads(body)
        content = data["messages"][-1]["content"] if "messages" in data else data["prompt"]
    except (orjson.JSONDecodeError, IndexError, KeyError, TypeError):
        return body[: 2 * _EXCERPT].decode(errors="replace")
    if isinstance(content, list):
        content = "\n".join(
            str(part.get("text", "")) if isinstance(part, dict) else str(part) for part in content
        )
    return str(content or "")
