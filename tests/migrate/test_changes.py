"""What a run says of itself while it goes on: every change once, and few lines where something flaps."""

from __future__ import annotations

from typing import Any

from migrate.changes import Changes


def status(**mirror: Any) -> dict[str, Any]:
    return {
        "mirroring": True,
        "mirror": {"problem": None, "breaker": "closed", "probes": 0, **mirror},
        "verdict": None,
    }


def said(changes: Changes, now: dict[str, Any], at: float) -> list[str]:
    return list(changes.lines(now, at))


def test_where_nothing_changes_nothing_is_said() -> None:
    changes = Changes(0.0)
    for second in range(100):
        assert not said(changes, status(), float(second))
    assert not said(changes, {**status(), "mirror": {"problem": None}}, 100.0), (
        "a mirror that said nothing yet"
    )


def test_an_outage_is_three_lines_however_often_it_is_probed() -> None:
    changes, lines = Changes(0.0), list[str]()
    for second in range(7_200):
        at_probe = second % 60 == 59
        now = status(breaker="half_open" if at_probe else "open", probes=second // 60)
        lines += said(changes, now, float(second))
    lines += said(changes, status(), 7_200.0)
    assert [line.partition(":")[0] for line in lines] == [
        "the circuit breaker opens",
        "the circuit breaker probes",
        "the circuit breaker closes",
    ]


def test_one_that_is_probed_before_anybody_looked_has_opened_first() -> None:
    changes = Changes(0.0)
    (first,) = said(changes, status(breaker="open", probes=1), 1.0)
    (second,) = said(changes, status(breaker="open", probes=1), 2.0)
    assert "opens" in first and "probes" in second


def test_a_breaker_that_flaps_fills_no_log_and_is_said_at_last_as_it_stands() -> None:
    changes, lines = Changes(0.0), list[str]()
    for second in range(86_400):
        lines += said(changes, status(breaker="open" if second % 2 else "closed"), float(second))
    assert 100 < len(lines) <= 6 + 86_400 / 600 + 1
    assert any("more changes)" in line for line in lines)
    later = [said(changes, status(), 86_400.0 + second) for second in range(700)]
    last = [line for some in later for line in some] or lines[-1:]
    assert "closes" in last[-1]


def test_a_mirror_that_goes_and_comes_back_says_why_it_went() -> None:
    changes = Changes(0.0)
    assert said(changes, status(problem="it ended (signal 9)"), 1.0) == [
        "the mirror is down: it ended (signal 9); production goes on unmirrored, and it is started again"
    ]
    assert not said(changes, status(problem="it ended (signal 9)"), 2.0)
    assert said(changes, status(), 3.0) == ["the mirror is up again"]


def test_the_switch_and_the_verdict_are_said() -> None:
    changes = Changes(0.0)
    verdict = {"verdict": "HOLD", "reason": "nothing has been judged yet", "code": "not_judged"}
    assert not said(changes, {**status(), "verdict": verdict}, 1.0)
    verdict = {"verdict": "ROLLBACK", "reason": "errors are too many", "code": "rule"}
    assert said(changes, {**status(), "mirroring": False, "verdict": verdict}, 2.0) == [
        "mirroring is stopped by hand: no copies leave",
        "the verdict is ROLLBACK, was HOLD: errors are too many (rule)",
    ]
    assert said(changes, {**status(), "verdict": verdict}, 3.0) == ["mirroring is started by hand"]
