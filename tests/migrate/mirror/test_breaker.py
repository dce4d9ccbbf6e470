"""The circuit breaker, with the clock as an argument."""

from __future__ import annotations

import dataclasses

import pytest

from migrate.mirror.breaker import Breaker, State, speaks_against
from replay.exchange import ErrorClass, Failure, Outcome
from tests.migrate.samples import observation


def opened() -> Breaker:
    breaker = Breaker(failures=5, recovery=60)
    for now in range(5):
        breaker.record(0, failed=True, now=float(now))
    return breaker


def probe(breaker: Breaker, now: float) -> int:
    entry = breaker.allow(now)
    assert entry is not None
    return entry


def test_five_failures_in_a_row_open_it() -> None:
    breaker = Breaker(failures=5, recovery=60)
    for now in range(4):
        breaker.record(0, failed=True, now=float(now))
    breaker.record(probe(breaker, 4.0), failed=True, now=4.0)
    assert breaker.allow(5.0) is None and breaker.state(5.0) is State.OPEN


def test_a_success_in_between_starts_the_count_again() -> None:
    breaker = Breaker(failures=2, recovery=60)
    for failed in (True, False, True):
        breaker.record(0, failed=failed, now=0.0)
    assert breaker.allow(0.0) == 0


def test_probes_of_an_outage_are_counted() -> None:
    breaker = opened()
    for now in (64.0, 125.0):
        breaker.record(probe(breaker, now), failed=True, now=now)
    assert (breaker.state(126.0), breaker.probes) == (State.OPEN, 2)
    breaker.record(probe(breaker, 186.0), failed=False, now=186.0)
    assert (breaker.state(187.0), breaker.probes) == (State.CLOSED, 0)


def test_after_recovery_one_probe_decides() -> None:
    breaker = opened()
    assert breaker.allow(63.9) is None
    assert breaker.state(64.0) is State.HALF_OPEN
    entry = probe(breaker, 64.0)
    assert breaker.allow(64.0) is None
    breaker.record(entry, failed=False, now=65.0)
    assert breaker.allow(65.0) is not None and breaker.state(65.0) is State.CLOSED


def test_a_failed_probe_opens_it_for_another_while() -> None:
    breaker = opened()
    breaker.record(probe(breaker, 64.0), failed=True, now=70.0)
    assert breaker.allow(129.9) is None and breaker.allow(130.0) is not None


def test_a_cancelled_probe_lets_another_one_go() -> None:
    breaker = opened()
    breaker.forget(probe(breaker, 64.0))
    assert breaker.allow(64.0) is not None


def test_a_copy_from_before_it_opened_decides_nothing_afterwards() -> None:
    breaker = opened()
    breaker.record(0, failed=False, now=5.0)
    assert breaker.state(6.0) is State.OPEN
    probe(breaker, 64.0)
    breaker.record(0, failed=False, now=65.0)
    breaker.forget(0)
    assert breaker.allow(66.0) is None  # the probe is still on its way


@pytest.mark.parametrize(
    ("outcome", "error_class", "against"),
    [
        (Outcome.OK, None, False),
        (Outcome.HTTP_ERROR, ErrorClass.BAD_REQUEST, False),
        (Outcome.HTTP_ERROR, ErrorClass.CONTEXT_OVERFLOW, False),
        (Outcome.HTTP_ERROR, ErrorClass.SERVER, True),
        (Outcome.HTTP_ERROR, ErrorClass.RATE_LIMITED, True),
        (Outcome.TIMEOUT, ErrorClass.TIMEOUT, True),
        (Outcome.NOT_SENT, None, False),
    ],
)
def test_only_the_backends_own_failures_count(
    outcome: Outcome, error_class: ErrorClass | None, against: bool
) -> None:
    failure = None if error_class is None else Failure(outcome=outcome, error_class=error_class, message="")
    seen = dataclasses.replace(observation(), outcome=outcome, failure=failure)
    assert speaks_against(seen) is against
