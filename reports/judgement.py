"""What the judge reads and what it says: measured pairs in, rules, checks and one verdict out."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from replay.exchange import Outcome
from reports.advisory import Drift, Growth, Label, Slices


class Verdict(StrEnum):
    """The product in one word. HOLD means not enough, or not valid, evidence; its code says which."""

    GO = "GO"
    ROLLBACK = "ROLLBACK"
    HOLD = "HOLD"


class Severity(StrEnum):
    """How much one finding matters, from harmless to "refuse to conclude"."""

    EQUAL = "EQUAL"
    NOTE = "NOTE"
    WARN = "WARN"
    BLOCK = "BLOCK"
    INVALID = "INVALID"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One comparator's outcome on one pair, with a reason that a person can check."""

    comparator: str
    category: str
    """Dotted code, e.g. ``tools.arguments``; findings of one cause share it."""
    severity: Severity
    message: str
    side: str = "pair"
    """``baseline``, ``candidate`` or ``pair``."""
    evidence: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Traits:
    """What one answer is like by itself, without another to compare it with."""

    characters: int
    """Of what the user reads."""
    repetitive: bool
    """It says one thing for ever."""
    truncated: bool
    """It was cut off at its token limit."""
    refuses: bool
    calls_tools: bool
    valid_json: bool | None
    """It is the JSON that was asked for; ``None`` when none was."""
    language: str | None
    """``None`` when it cannot be told."""
    answer: str = ""
    """Equal for equal answers: a digest of texts and tool calls."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """The numbers of one observation that rules are made of; ``None`` where it did not happen."""

    outcome: Outcome
    error_class: str | None = None
    e2e_s: float | None = None
    ttft_s: float | None = None
    itl_s: tuple[float, ...] = ()
    """Gaps between successive content chunks."""
    output_tokens: int | None = None
    prompt_tokens: int | None = None
    cost_usd: float | None = None
    """What its tokens cost; ``None`` without a price or without token counts."""
    cached: float | None = None
    """Share of the prompt's tokens that the server took from its prefix cache, 0 to 1; ``None`` when it did not say."""
    version: str | None = None
    """Which model and deployment answered, as the answer states it; ``None`` when it states neither."""
    attempts: int = 1
    reason: str = ""
    """Why it was not sent, dropped or failed; ``breaker_open`` counts towards an outage of the candidate."""
    traits: Traits | None = None
    """``None`` without an answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Baseline and candidate of one request, and the baseline's repeat where there was one."""

    id: str
    at: float
    """Epoch seconds of dispatch."""
    baseline: Measured
    candidate: Measured
    repeat: Measured | None = None
    differs: bool | None = None
    """Candidate's answer would serve a user differently; ``None``: not scored."""
    repeat_differs: bool | None = None
    differs_by: tuple[str, ...] = ()
    """The comparators that say so; empty where it is not known which."""
    repeat_differs_by: tuple[str, ...] = ()
    not_comparable: str | None = None
    """Why the answers cannot be compared at all (redacted copy, stateful request …)."""
    session: str | None = None
    streamed: bool = False
    prompt: str = ""
    """Equal for requests that ask the same: a digest; empty when it is not known."""
    system_prompt: bool = False
    labels: dict[str, str] = field(default_factory=dict)
    """What kind of request it is, by dimension: route, model, language … (see ``slicing``); unknown ones are absent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleResult:
    """One promise, weighed. Shares are 0 to 1, latencies seconds (see ``unit``)."""

    rule: str
    verdict: Verdict
    estimate: float | None
    low: float | None
    high: float | None
    """Interval of the estimate; infinite ends are ``None``."""
    margin: float | None
    unit: str
    """``share`` or ``s``."""
    pairs: int
    reason: str
    effective_pairs: float | None = None
    """What the pairs are worth when the requests of one session count together as one."""
    required: bool = True
    applies: bool = True
    """False where the run holds nothing that the rule could be about."""
    baseline: float | None = None
    candidate: float | None = None
    noise: float | None = None
    """The same quantity between the baseline and its repeat; ``None`` without repeats."""
    method: str = ""
    """The interval's method in words."""
    missing: int = 0
    """Pairs that this rule should have seen and could not; GO has to hold with each counted against the candidate."""
    evidence_go: float | None = None
    """Natural logarithm of the evidence that harm is below the margin; GO needs ``log(1/alpha)``."""
    evidence_rollback: float | None = None
    """The same for "above the margin"; ROLLBACK needs ``log(K/alpha)`` with K required rules."""
    forecast_pairs: int | None = None
    """Pairs still missing until GO, if they come as so far; ``None``: cannot be decided that way."""
    forecast_hours: float | None = None
    """The same in hours at the traffic of the run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One condition that evidence has to meet before it counts."""

    code: str
    passed: bool
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """The verdict with everything that led to it. A pure function of pairs, policy and ``now``."""

    verdict: Verdict
    code: str
    """Machine-readable cause: ``go``, the rule that broke, or the check that failed."""
    reason: str
    """One sentence for the person who was woken up."""
    rules: tuple[RuleResult, ...]
    checks: tuple[Check, ...]
    ledger: dict[str, int]
    """Where every dispatched request went; the parts sum to ``dispatched``."""
    span_s: float
    method: str = ""
    labels: tuple[Label, ...] = ()
    quality: tuple[Drift, ...] = ()
    slices: Slices = field(default_factory=Slices)
    growth: tuple[Growth, ...] = ()
    """Of the required rules that could be read."""
