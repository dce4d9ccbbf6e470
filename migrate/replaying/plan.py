"""What a replay does, as it is kept with its run: a resumed replay goes on as it was begun. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Literal

from pydantic import Field

from replay import schedule
from replay.exchange import Arm
from reports.policy import Duration, Section, Share

ARMS = {"both": (Arm.BASELINE, Arm.CANDIDATE), "baseline": (Arm.BASELINE,), "candidate": (Arm.CANDIDATE,)}


class Plan(Section):
    """One replay: from where, to whom, when, and with what changed."""

    source: str
    """The run whose requests are sent."""
    to: Literal["both", "baseline", "candidate"] = "both"
    speed: float = Field(default=1.0, gt=0, allow_inf_nan=False)
    """As recorded, so many times as fast."""
    rate: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    burstiness: float = Field(default=1.0, ge=0, le=100)
    ramp: tuple[float, float, float] | None = None
    """First rate, last rate, seconds."""
    sweep: tuple[tuple[float, ...], float] | None = None
    """Rates, and the seconds of each."""
    concurrency: int | None = Field(default=None, ge=1)
    think_time: float | Literal["recorded"] | None = None
    limit: int | None = Field(default=None, ge=1)
    repeat: Share = 0.0
    """Share of requests that the baseline gets a second time, for the noise floor."""
    overrides: dict[str, Any] = Field(default_factory=dict)
    nonce: bool = False
    seed: int = 0
    lag_limit: Duration = 0.01

    @property
    def arms(self) -> tuple[Arm, ...]:
        """Whom to ask."""
        return ARMS[self.to]

    @property
    def as_recorded(self) -> bool:
        """Whether the requests' own moments make the schedule."""
        return self.rate is None and self.ramp is None and self.sweep is None

    def times(self, recorded: Iterable[float]) -> Iterator[float]:
        """When each request is due, in seconds from the start; ``recorded``: when each came."""
        if self.sweep is not None:
            rates, each = self.sweep
            return schedule.sweep(rates, each, burstiness=self.burstiness, seed=self.seed)
        if self.ramp is not None:
            return schedule.ramp(*self.ramp)
        if self.rate is not None:
            return schedule.steady(self.rate, burstiness=self.burstiness, seed=self.seed)
        return schedule.recorded(recorded, speed=self.speed)
