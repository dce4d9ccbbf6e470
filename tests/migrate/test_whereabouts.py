"""The words for requests without a copy: the same in status and on one line, each request in one place."""

from __future__ import annotations

from typing import Any

from migrate.tap import EVENTS, OUTCOMES
from migrate.whereabouts import lost, summary, withheld


def status(mirror: dict[str, int], **counters: int) -> dict[str, Any]:
    return {
        "counters": dict.fromkeys((*EVENTS, *OUTCOMES), 0) | counters,
        "mirror": {"counters": mirror} if mirror else {},
    }


def test_what_breaker_and_limits_withhold_is_said_with_its_reason() -> None:
    now = status(
        {"copies": 5, "not_sent.rate_limit": 2, "not_sent.breaker_open": 10, "not_sent.paused": 0},
        passed=1_900,
        mirrored=17,
        not_sampled=1_883,
    )
    assert withheld(now["mirror"]) == {"breaker_open": 10, "rate_limit": 2}
    assert summary(now) == (
        "passed 1,900 · mirrored 17 · withheld 12 (breaker open 10, rate limit 2) · not sampled 1,883"
    )


def test_what_found_no_place_in_a_queue_is_lost_and_said_once() -> None:
    now = status({"mirror_full": 1}, passed=9, mirrored=2, queue_full=4, mirror_down=3)
    assert lost(now["counters"], now["mirror"]) == {"queue_full": 4, "mirror_down": 3, "mirror_full": 1}
    assert summary(now) == "passed 9 · mirrored 2 · lost 8 (queue full 4, mirror down 3, mirror full 1)"


def test_before_the_mirror_has_said_anything_nothing_is_withheld() -> None:
    now = status({})
    assert withheld(now["mirror"]) == lost(now["counters"], now["mirror"]) == {}
    assert summary(now) == "passed 0 · mirrored 0"
