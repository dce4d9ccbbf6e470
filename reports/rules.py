"""The rules, one value each: what is promised, how it is read, and in which unit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter

from replay.exchange import Outcome
from reports.columns import Answers, Columns
from reports.cost import cost
from reports.disagreement import read_disagreement
from reports.latency import median, p95, slow_share
from reports.policy import CostRule, DisagreementRule, LatencyRule, LimitRule, Policy, ShareRule
from reports.reading import Frame, Latency, Reading, Unread, e2e, itl, share_reading, tpot, ttft
from reports.shape import shape
from reports.stats import Flags

Promise = ShareRule | LimitRule | LatencyRule | DisagreementRule | CostRule


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One promise: its name in the policy, the unit of its numbers and how it is read."""

    name: str
    title: str
    unit: str
    read: Callable[[Columns, Frame], Reading | Unread]
    method: str

    def promise(self, policy: Policy) -> Promise:
        """This rule's section of ``policy``."""
        found: Promise = getattr(policy, self.name)
        return found


def _failing(
    count: Callable[[Answers], Flags], promise: Callable[[Policy], ShareRule]
) -> Callable[[Columns, Frame], Reading]:
    """Reads failures of one kind: sign = 1{candidate failed} - 1{baseline failed}."""

    def read(columns: Columns, frame: Frame) -> Reading:
        known = columns.take(~columns.baseline.missing & ~columns.candidate.missing)
        base, candidate = count(known.baseline), count(known.candidate)
        margin = promise(frame.policy).margin
        return share_reading(
            known, base, candidate, missing=len(columns) - len(known), margin=margin, frame=frame
        )

    return read


_SHARE = "signed counts of paired differences, each bound {bound}"
_MEDIAN = "median of paired differences, inverted sign test, each bound {bound}"
_TAIL = "paired exceedances of the baseline's own p95, inverted, each bound {bound}"


def _timed(name: str, what: str, latency: Latency) -> tuple[Rule, Rule]:
    """The median and the tail of one latency."""
    return (
        Rule(
            name=f"{name}_median",
            title=f"median {what}",
            unit="s",
            read=median(latency, attrgetter(f"{name}_median")),
            method=_MEDIAN,
        ),
        Rule(
            name=f"{name}_p95",
            title=f"p95 {what}",
            unit="s",
            read=p95(latency, attrgetter(f"{name}_p95")),
            method=_TAIL,
        ),
    )


def _shaped(name: str, title: str, trait: str, harm: int) -> Rule:
    """What can be seen of an answer by itself."""
    return Rule(
        name=name, title=title, unit="share", read=shape(trait, harm, attrgetter(name)), method=_SHARE
    )


RULES: tuple[Rule, ...] = (
    Rule(
        name="errors",
        title="errors",
        unit="share",
        read=_failing(lambda arm: arm.failed, attrgetter("errors")),
        method=_SHARE,
    ),
    Rule(
        name="timeouts",
        title="timeouts",
        unit="share",
        read=_failing(lambda arm: arm.having(Outcome.TIMEOUT), attrgetter("timeouts")),
        method=_SHARE,
    ),
    Rule(
        name="disagreement",
        title="disagreement above the noise floor",
        unit="share",
        read=read_disagreement,
        method=_SHARE,
    ),
    Rule(
        name="slow_share",
        title="requests slower than the baseline's p99",
        unit="share",
        read=slow_share,
        method=_SHARE,
    ),
    *_timed("latency", "end-to-end latency", e2e),
    *_timed("ttft", "time to first token", ttft),
    *_timed("tpot", "time per output token", tpot),
    *_timed("itl", "of the longest waits within a stream", itl),
    _shaped("format_breaks", "answers that are not the JSON that was asked for", "valid_json", 0),
    _shaped("refusals", "refusals", "refusal", 1),
    _shaped("truncations", "answers cut off at their token limit", "truncation", 1),
    _shaped("tool_calls", "tool calls that are no longer made", "tool_calls", 0),
    Rule(
        name="cost",
        title="cost of a request",
        unit="share",
        read=cost,
        method=_MEDIAN,
    ),
)
"""In the order of a report."""
TITLES = {rule.name: rule.title for rule in RULES}
"""What a rule is about, within a sentence."""
