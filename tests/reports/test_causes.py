"""Many findings, few causes."""

from __future__ import annotations

import random

from reports.causes import causes
from reports.compare import Comparison
from reports.judgement import Finding, Severity


def finding(
    category: str, severity: Severity = Severity.BLOCK, side: str = "candidate", message: str = ""
) -> Finding:
    return Finding(
        comparator="c", category=category, severity=severity, message=message or category, side=side
    )


def pair(identity: str, *findings: Finding) -> Comparison:
    return Comparison(request_id=identity, severity=Severity.NOTE, findings=findings)


def test_one_cause_is_one_line_with_its_count_and_times() -> None:
    many = [(100.0 + n, pair(f"r{n}", finding("tools.missing", message=f"m{n}"))) for n in range(50)]
    (cause,) = causes(many)
    assert (cause.category, cause.count, cause.first_at, cause.last_at) == ("tools.missing", 50, 100.0, 149.0)
    assert (cause.example, cause.message) == ("r0", "m0")


def test_two_choices_of_one_answer_are_one_request() -> None:
    (cause,) = causes([(1.0, pair("r", finding("text.short"), finding("text.short")))])
    assert cause.count == 1


def test_sides_are_kept_apart() -> None:
    found = causes([(1.0, pair("r", finding("text.empty"), finding("text.empty", side="baseline")))])
    assert sorted(cause.side for cause in found) == ["baseline", "candidate"]


def test_the_gravest_come_first_and_then_the_most_frequent() -> None:
    compared = [
        (1.0, pair("a", finding("note", Severity.NOTE), finding("rare"))),
        (2.0, pair("b", finding("note", Severity.NOTE), finding("often"))),
        (
            3.0,
            pair("c", finding("note", Severity.NOTE), finding("often"), finding("broken", Severity.INVALID)),
        ),
    ]
    assert [cause.category for cause in causes(compared)] == ["broken", "often", "rare", "note"]


def test_the_example_is_the_earliest_of_the_gravest() -> None:
    compared = [
        (1.0, pair("early", finding("x", Severity.WARN))),
        (3.0, pair("late", finding("x"))),
        (2.0, pair("middle", finding("x"))),
    ]
    (cause,) = causes(compared)
    assert (cause.severity, cause.example, cause.count, cause.first_at) == (Severity.BLOCK, "middle", 3, 1.0)


def test_equal_findings_are_no_cause() -> None:
    assert causes([(1.0, pair("r", finding("error.server_error", Severity.EQUAL)))]) == ()


def test_the_order_of_arrival_does_not_show() -> None:
    compared = [(float(n % 3), pair(f"r{n}", finding(f"k{n % 2}", message=f"m{n}"))) for n in range(20)]
    shuffled = compared[:]
    random.Random(4).shuffle(shuffled)
    assert causes(compared) == causes(shuffled)
