"""The policy: the promises a candidate has to keep, set before anybody looks at the data.

A policy is a value. It is the ``policy:`` section of a configuration, is stored with each run, and together with the
observations and the seed it determines the verdict.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from replay.units import parse_duration, parse_share

Duration = Annotated[float, BeforeValidator(parse_duration)]
"""Seconds; written ``50ms``, ``30s``, ``24h``."""
Share = Annotated[float, BeforeValidator(parse_share)]
"""0 to 1; written ``10 %`` or ``0.1``."""


SLOW_BY_DEFINITION = 0.01
"""Share of a backend's requests that are slower than its own p99."""


class Section(BaseModel):
    """A part of a configuration: immutable, and it refuses words it does not know."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class ShareRule(Section):
    """A share of requests may be worse by at most ``margin`` (percentage points)."""

    margin: Share = Field(lt=1)
    required: bool = True


class LimitRule(Section):
    """A share of candidate requests may be at most ``limit``, which is above the 1 % of a baseline against its own p99."""

    limit: Share = Field(gt=SLOW_BY_DEFINITION)
    required: bool = True


class LatencyRule(Section):
    """Latency may be worse by at most ``margin`` seconds, or by ``or`` of the baseline's, whichever is larger."""

    margin: Duration
    relative: Share | None = Field(default=None, alias="or")
    required: bool = True


class DisagreementRule(Section):
    """Answers may differ by at most ``margin`` above the noise floor; ``similarity`` is the cosine floor of a text pair."""

    margin: Share = Field(default=0.03, lt=1)
    similarity: float = Field(default=0.85, ge=-1, le=1)
    required: bool = True


class BreakerPolicy(Section):
    """After ``failures`` in a row copies stop; after ``recovery`` one may try again."""

    failures: int = Field(default=5, ge=1)
    recovery: Duration = 60.0


class Policy(Section):
    """All promises, with the defaults the report prints.

    ``alpha`` is the chance of a wrong ROLLBACK over the whole run, and of a wrong GO at each margin.
    """

    minimum_span: Duration = 86_400.0
    minimum_pairs: int = Field(default=1_000, ge=1)
    warmup: Duration = 900.0
    alpha: float = Field(default=0.05, gt=0, lt=0.5)
    minimum_coverage: Share = 0.98
    trim_blocks: int = Field(default=3, ge=0)
    """ROLLBACK has to hold without the candidate's worst blocks, this many (of 5 minutes, or a 288th of a shorter
    ``minimum_span``): an incident is not a trend. A rehearsal trims none."""
    errors: ShareRule = ShareRule(margin=0.01)
    timeouts: ShareRule = ShareRule(margin=0.05)
    slow_share: LimitRule = LimitRule(limit=0.05)
    latency_median: LatencyRule = LatencyRule(margin=0.05)
    latency_p95: LatencyRule = LatencyRule(margin=0.05, relative=0.10)
    ttft_median: LatencyRule = LatencyRule(margin=0.05)
    ttft_p95: LatencyRule = LatencyRule(margin=0.05, relative=0.10)
    disagreement: DisagreementRule = DisagreementRule()
    circuit_breaker: BreakerPolicy = BreakerPolicy()
    rehearsal: bool = False
    """A shortened policy for demonstrations; every report says so."""
