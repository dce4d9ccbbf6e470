"""What a plan is made for: the traffic, from what was given, what a run recorded, what a configuration says, in this order."""

from __future__ import annotations

from migrate.config import Config, Shadow
from migrate.errors import ConfigError
from migrate.report import stored_policy
from migrate.store import Run, Store
from reports.columns import Columns, columns
from reports.pairing import pair_up
from reports.policy import Policy
from reports.render.plan import Asked
from reports.traffic import Traffic, measured

_SAMPLED = ("shadow", "capture")
"""Kinds of runs that recorded a share of the requests, and others all."""


class Recorded:
    """A run, and what it says of its traffic."""

    def __init__(self, store: Store, run: Run) -> None:
        self.run = run
        self.table: Columns = columns([pair_up(exchange) for exchange in store.exchanges(run.id)])
        self.counters = store.counters(run.id)

    @property
    def requests_per_hour(self) -> float:
        """Of production. Raises ConfigError when there were too few to tell."""
        at = self.table.at
        span = self.counters.get("captured_span_s", float(at[-1] - at[0]) if at.size else 0)
        if at.size < 2 or span <= 0:
            raise ConfigError(
                f"run {self.run.id} holds {at.size} requests: too few to tell how many come in an hour"
            )
        return at.size / span * 3600 / self._share()

    def _share(self) -> float:
        percent = self.run.config.get("shadow", {}).get("percent") if self.run.kind in _SAMPLED else None
        return float(percent) / 100 if percent else 1.0


def planned(
    config: Config | None,
    recorded: Recorded | None,
    given: dict[str, float],
    *,
    pairs: float | None,
    requests: float | None,
) -> tuple[Traffic, Asked]:
    """The traffic, and what it was made of. ``given``: fields of ``Traffic``; ``pairs`` and ``requests`` are an hour's.

    Raises ConfigError when nothing says how many pairs will come.
    """
    shadow = config.shadow if config else Shadow()
    policy = config.policy if config else stored_policy(recorded.run) if recorded else Policy()
    known = config is not None or pairs is None
    if pairs is None:
        pairs = _requests(requests, recorded) * shadow.percent
    set_up = _of_config(config) if config else {}
    found = measured(recorded.table) if recorded else {}
    sources = (
        dict.fromkeys(set_up, "configured") | dict.fromkeys(found, "recorded") | dict.fromkeys(given, "given")
    )
    fields = set_up | found | given
    if "latency_s" in fields and "ttft_s" not in fields:
        fields["ttft_s"] = fields["latency_s"] / _TTFT_OF_LATENCY
    return Traffic(pairs_per_hour=pairs, **fields), Asked(
        policy=policy,
        sources=sources,
        mirrored=shadow.percent if known else None,
        notes=_notes(config, pairs),
    )


_TTFT_OF_LATENCY = 4


def _requests(requests: float | None, recorded: Recorded | None) -> float:
    if requests is not None:
        return requests
    if recorded is not None:
        return recorded.requests_per_hour
    raise ConfigError(
        "nothing says how much traffic there is: give --requests-per-minute 300, --pairs-per-minute 30 or --run ID"
    )


def _of_config(config: Config) -> dict[str, float]:
    arms = [arm.timeouts.total for arm in (config.baseline, config.candidate) if arm]
    return {"repeats": config.shadow.repeat_baseline, "timeout_s": max(arms)}


def _notes(config: Config | None, pairs: float) -> tuple[str, ...]:
    """What of the configuration will be in the way."""
    most = config.candidate.limits.requests_per_minute if config and config.candidate else None
    if most is None or pairs / 60 <= most:
        return ()
    dropped = (
        f"candidate.limits.requests_per_minute is {most:,}, and {pairs / 60:,.3g} copies a minute would be sent: the rest is "
        "dropped, and HOLD (coverage) follows; mirror less, or allow more"
    )
    return (dropped,)
