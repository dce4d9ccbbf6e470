"""The rules, one value each: what is promised, how it is read, and in which unit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from replay.exchange import Outcome
from reports.columns import Answers, Columns
from reports.disagreement import read_disagreement
from reports.latency import median, p95, slow_share
from reports.policy import DisagreementRule, LatencyRule, LimitRule, Policy, ShareRule
from reports.reading import Frame, Reading, Unread, e2e, share_reading, ttft
from reports.stats import Flags

Promise = ShareRule | LimitRule | LatencyRule | DisagreementRule


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
            known, base, candidate, missing=len(columns) - len(known), margin=margin, alpha=frame.policy.alpha
        )

    return read


_SHARE = "signed-count confidence sequence of paired differences, each bound {bound} at every look"
_MEDIAN = "median of paired differences, inverted sign test, each bound {bound} at every look"
_TAIL = "paired exceedances of the baseline's own p95, inverted, each bound {bound} at every look"

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
        read=median(e2e, lambda policy: policy.latency_median, streamed=False),
        method=_MEDIAN,
    ),
    Rule(
        name="latency_p95",
        title="p95 end-to-end latency",
        unit="s",
        read=p95(e2e, lambda policy: policy.latency_p95, streamed=False),
        method=_TAIL,
    ),
    Rule(
        name="ttft_median",
        title="median time to first token",
        unit="s",
        read=median(ttft, lambda policy: policy.ttft_median, streamed=True),
        method=_MEDIAN,
    ),
    Rule(
        name="ttft_p95",
        title="p95 time to first token",
        unit="s",
        read=p95(ttft, lambda policy: policy.ttft_p95, streamed=True),
        method=_TAIL,
    ),
)
"""In the order of a report."""
