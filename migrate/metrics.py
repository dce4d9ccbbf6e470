"""A run's status as Prometheus metrics: counters of the gateway and the mirror, and the verdict. Pure.

Names follow Prometheus: base units, ``_total`` for counters, and labels whose values are few and known.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST as CONTENT_TYPE
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector, CollectorRegistry

from migrate.tap import OUTCOMES
from replay.exchange import JSON

__all__ = ["CONTENT_TYPE", "exposition"]

_VERDICTS = ("GO", "HOLD", "ROLLBACK")
_SUFFERED = {
    "gateway_errors": "Requests that the gateway answered itself, because the baseline could not be asked.",
    "client_left": "Requests whose client went before its answer was whole.",
    "cut_short": "Answers of the baseline that ended before they were whole.",
    "answers_dropped": "Answers that were not recorded, because the channel to the mirror was full.",
}
"""Counters of the tap beside the outcomes."""


class _Status(Collector):
    def __init__(self, status: JSON) -> None:
        self._status = status

    def collect(self) -> Iterable[Metric]:
        yield from _gateway(self._status)
        yield from _mirror(self._status.get("mirror", {}))
        yield from _verdict(self._status.get("verdict") or {})
        yield from _receivers(self._status.get("receivers", {}))


def exposition(status: JSON) -> bytes:
    """The text format of what ``/status`` says; what it does not know is left out."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Status(status))
    return generate_latest(registry)


def _gateway(status: JSON) -> Iterator[Metric]:
    names = ("run", "kind", "version")
    labels = [str(status.get(name) or "") for name in names]
    yield _labelled(
        GaugeMetricFamily("llm_migrate_run_info", "The run that goes on.", labels=names), [(labels, 1)]
    )
    yield _gauge("llm_migrate_uptime_seconds", "Since the gateway was started.", status.get("uptime_s"))
    yield _gauge("llm_migrate_open_requests", "Requests of clients in hand.", status.get("open_requests"))
    yield _gauge(
        "llm_migrate_mirroring",
        "1 while requests are mirrored, 0 after the kill switch.",
        status.get("mirroring"),
    )
    counters = status.get("counters", {})
    outcomes = CounterMetricFamily(
        "llm_migrate_requests",
        "Requests of clients that passed, by what became of their copy.",
        labels=["outcome"],
    )
    yield _labelled(outcomes, [([name], counters[name]) for name in OUTCOMES if name in counters])
    withheld = CounterMetricFamily(
        "llm_migrate_copies_withheld",
        "Mirrored requests that the candidate was not asked.",
        labels=["reason"],
    )
    yield _labelled(withheld, [([reason], count) for reason, count in status.get("withheld", {}).items()])
    for name, meaning in _SUFFERED.items():
        yield _counter(f"llm_migrate_{name}", meaning, counters.get(name))


def _mirror(mirror: JSON) -> Iterator[Metric]:
    store = mirror.get("store", {})
    yield _gauge("llm_migrate_mirror_up", "1 while the mirror process takes copies.", mirror.get("up"))
    yield _counter(
        "llm_migrate_mirror_restarts", "Times that the mirror process came back.", mirror.get("restarts")
    )
    yield _gauge(
        "llm_migrate_copies_in_flight", "Copies that wait for the candidate.", mirror.get("in_flight")
    )
    breaker = mirror.get("breaker")
    closed = None if breaker is None else breaker == "closed"
    yield _gauge(
        "llm_migrate_breaker_closed",
        "1 while copies go to the candidate, 0 after it failed too often.",
        closed,
    )
    yield _gauge("llm_migrate_store_queued_records", "Records that wait to be written.", store.get("queued"))
    yield _counter("llm_migrate_store_records_written", "Records in the store.", store.get("written"))
    yield _counter(
        "llm_migrate_store_records_refused", "Records that did not fit the queue.", store.get("refused")
    )
    yield _counter(
        "llm_migrate_store_failures", "Attempts at writing that failed.", store.get("failed_attempts")
    )


def _verdict(said: JSON) -> Iterator[Metric]:
    family = GaugeMetricFamily("llm_migrate_verdict", "1 for the verdict as it stands.", labels=["verdict"])
    yield _labelled(family, [([name], said["verdict"] == name) for name in _VERDICTS] if said else [])
    family = GaugeMetricFamily(
        "llm_migrate_rule_verdict", "1 for what each required rule says.", labels=["rule", "verdict"]
    )
    rules = said.get("rules", {})
    yield _labelled(
        family, [([rule, name], found == name) for rule, found in rules.items() for name in _VERDICTS]
    )
    yield _gauge("llm_migrate_judged_pairs", "Pairs that the last judgement saw.", said.get("pairs"))
    yield _gauge(
        "llm_migrate_scored_pairs", "Pairs that the last judgement rests on.", said.get("scored_pairs")
    )
    for name, meaning in (
        ("judged_at", "Of the last judgement."),
        ("valid_until", "At which the verdict expires."),
    ):
        at = said.get(name)
        yield _gauge(
            f"llm_migrate_verdict_{name}_timestamp_seconds",
            meaning,
            None if at is None else datetime.fromisoformat(at).timestamp(),
        )
    failed = None if not said else said.get("problem") is not None
    yield _gauge("llm_migrate_judgement_failed", "1 when the last try at judging gave no verdict.", failed)


def _receivers(receivers: JSON) -> Iterator[Metric]:
    family = GaugeMetricFamily(
        "llm_migrate_receiver_failed",
        "1 when the receiver could not be told the last time.",
        labels=["receiver"],
    )
    yield _labelled(family, [([name], one["problem"] is not None) for name, one in receivers.items()])


def _gauge(name: str, meaning: str, value: float | None) -> Metric:
    return _labelled(GaugeMetricFamily(name, meaning), [] if value is None else [([], value)])


def _counter(name: str, meaning: str, value: float | None) -> Metric:
    return _labelled(CounterMetricFamily(name, meaning), [] if value is None else [([], value)])


def _labelled(
    family: GaugeMetricFamily | CounterMetricFamily, samples: Iterable[tuple[list[str], float]]
) -> Metric:
    for labels, value in samples:
        family.add_metric(labels, float(value))
    return family
