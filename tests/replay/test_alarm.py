"""Waking up on time, never before it."""

from __future__ import annotations

import asyncio
import time

import pytest

from replay import alarm
from replay.alarm import Alarm, take_short_turns


@pytest.fixture(params=["the machine's own clock", "the event loop's"], autouse=True)
def clock(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "the event loop's":
        monkeypatch.setattr(alarm.sys, "platform", "another")


async def test_never_early_and_soon_after() -> None:
    late = []
    with Alarm() as one:
        for after in (0.0001, 0.0007, 0.001, 0.0034, 0.02) * 8:
            due = time.monotonic() + after
            await one.until(due)
            late.append(time.monotonic() - due)
    assert min(late) >= 0 and sorted(late)[len(late) // 2] < 0.002


async def test_a_moment_that_has_passed_is_not_waited_for() -> None:
    with Alarm() as one:
        before = time.monotonic()
        await one.until(before - 5)
        assert time.monotonic() - before < 0.005


async def test_others_run_meanwhile_and_a_wait_can_be_given_up() -> None:
    with Alarm() as one:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(one.until(time.monotonic() + 60), 0.02)
        due = time.monotonic() + 0.01  # the one that was given up rings for nobody
        await one.until(due)
        assert 0 <= time.monotonic() - due < 0.5


def test_short_turns_are_asked_for_or_not_but_never_fail() -> None:
    assert take_short_turns() in (True, False)
