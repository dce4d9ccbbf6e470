"""The rules, one value each: what is promised, how it is read, and in which unit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from replay.exchange import Outcome
from reports.columns import Answers, Columns
from reports.cost import cost
from reports.disagreement import read_disagreement
from reports.latency import median, p95, slow_share
from reports.policy import CostRule, DisagreementRule, LatencyRule, LimitRule, Policy, ShareRule
from reports.reading import Frame, Reading, Unread, e2e, itl, share_reading, tpot, ttft
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

RULES: tuple[Rule, ...] = (
    Rule(
        name="errors",
        title="errors",
        unit="share",
        read=_failing(lambda arm: arm.failed, lambda policy: policy.errors),
        method=_SHARE,
    ),
    Rule(
        name="timeouts",
        title="timeouts",
        unit="share",
        read=_failing(lambda arm: arm.having(Outcome.TIMEOUT), lambda policy: policy.timeouts),
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
    Rule(
        name="latency_median",
        title="median end-to-end latency",
        unit="s",
        read=median(e2e, lambda policy: policy.latency_median),
        method=_MEDIAN,
    ),
    Rule(
        name="latency_p95",
        title="p95 end-to-end latency",
        unit="s",
        read=p95(e2e, lambda policy: policy.latency_p95),
        method=_TAIL,
    ),
    Rule(
        name="ttft_median",
        title="median time to first token",
        unit="s",
        read=median(ttft, lambda policy: policy.ttft_median),
        method=_MEDIAN,
    ),
    Rule(
        name="ttft_p95",
        title="p95 time to first token",
        unit="s",
        read=p95(ttft, lambda policy: policy.ttft_p95),
        method=_TAIL,
    ),
    Rule(
        name="tpot_median",
        title="median time per output token",
        unit="s",
        read=median(tpot, lambda policy: policy.tpot_median),
        method=_MEDIAN,
    ),
    Rule(
        name="tpot_p95",
        title="p95 time per output token",
        unit="s",
        read=p95(tpot, lambda policy: policy.tpot_p95),
        method=_TAIL,
    ),
    Rule(
        name="itl_median",
        title="median of the longest waits within a stream",
        unit="s",
        read=median(itl, lambda policy: policy.itl_median),
        method=_MEDIAN,
    ),
    Rule(
        name="itl_p95",
        title="p95 of the longest waits within a stream",
        unit="s",
        read=p95(itl, lambda policy: policy.itl_p95),
        method=_TAIL,
    ),
    Rule(
        name="format_breaks",
        title="answers that are not the JSON that was asked for",
        unit="share",
        read=shape("valid_json", 0, lambda policy: policy.format_breaks, "no answer was asked for as JSON"),
        method=_SHARE,
    ),
    Rule(
        name="refusals",
        title="refusals",
        unit="share",
        read=shape("refusal", 1, lambda policy: policy.refusals, "what was answered is not known"),
        method=_SHARE,
    ),
    Rule(
        name="truncations",
        title="answers cut off at their token limit",
        unit="share",
        read=shape("truncation", 1, lambda policy: policy.truncations, "what was answered is not known"),
        method=_SHARE,
    ),
    Rule(
        name="tool_calls",
        title="tool calls that are no longer made",
        unit="share",
        read=shape("tool_calls", 0, lambda policy: policy.tool_calls, "what was answered is not known"),
        method=_SHARE,
    ),
    Rule(
        name="cost",
        title="cost of a request",
        unit="share",
        read=cost,
        method=_MEDIAN,
    ),
)
"""In the order of a report."""
