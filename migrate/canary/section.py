"""What a configuration may say of moving the traffic."""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, field_validator

from migrate.percent import Percent
from reports.policy import Duration, Section, Share


class Step(Section):
    """A share of the traffic, and what has to be seen at it before the next one."""

    percent: Percent
    """Of the conversations, answered by the candidate."""
    minimum_span: Duration = 3_600.0
    """At this share."""
    minimum_pairs: int = Field(default=500, ge=1)
    """That both answered, at this share."""


def _step(value: Any) -> Any:
    return value if isinstance(value, dict | Step) else {"percent": value}


class Halt(Section):
    """When the share goes to 0 at once. A safety stop, no claim about rates."""

    errors: Share = 0.05
    """Of the candidate's requests in ``window`` that failed, from this share on."""
    timeouts: Share = 0.01
    """Of them, that ran out of time, above this share: their p99 is a timeout."""
    window: Duration = Field(default=60.0, gt=0, le=3_600)
    """The last of it counts."""
    requests: int = Field(default=200, ge=1)
    """In ``window``, for the two shares to say something."""
    in_a_row: int = Field(default=5, ge=1)
    """Failures, however few requests there are."""
    health: int = Field(default=3, ge=1)
    """Health checks in a row, one a second, that fail."""
    evidence: Duration = Field(default=60.0, gt=0)
    """How long the mirror, the store or the judgement may be away: nobody would see the harm."""


class CanarySection(Section):
    """How the traffic moves to the candidate, and back."""

    steps: tuple[Annotated[Step, BeforeValidator(_step)], ...] = Field(
        default=tuple(Step(percent=percent) for percent in (1, 5, 25, 50, 100)), min_length=1
    )
    """Shares, rising: ``[1, 5, 25, 50, 100]``, or ``{percent: 5, minimum_span: 2h, minimum_pairs: 1000}``."""
    record: Percent = 1.0
    """Of the conversations, recorded and judged; those that the candidate answers go to the baseline as a copy."""
    manual: bool = False
    """A step waits for ``migrate canary approve``, too."""
    in_flight: Literal["finish", "cut"] = "finish"
    """What becomes of the candidate's streams at a rollback."""
    restart: Literal["resume", "zero"] = "resume"
    """The share of a gateway that starts again: as it was, or 0 for all until ``migrate canary resume``."""
    failover: Share = 0.10
    """Of the last minute's requests that may be asked twice, because the candidate failed before its first byte."""
    cool_down: Duration = 3_600.0
    """After a rollback, before the traffic may move again; twice as long after each further one."""
    lost_store: Duration = 60.0
    """How long a gateway keeps the share without a store; then the baseline answers all."""
    halt: Halt = Halt()

    @field_validator("steps")
    @classmethod
    def _rising(cls, steps: tuple[Step, ...]) -> tuple[Step, ...]:
        shares = [step.percent for step in steps]
        if shares[0] <= 0 or any(later <= earlier for earlier, later in pairwise(shares)):
            raise ValueError("steps rise from above 0, such as [1, 5, 25, 50, 100]")
        return steps
