"""What many pairs amount to: severities, causes by place, and the noise floor with its interval."""

from __future__ import annotations

import json

import pytest

from reports.compare import Comparison
from reports.judgement import Finding, Severity
from reports.many import Tally, as_line, as_text, outcome


def said(severity: Severity, *, scored: bool = True, name: str = "p") -> Comparison:
    finding = Finding(comparator="c", category=f"c.{severity.value.lower()}", severity=severity, message="m")
    return Comparison(request_id=name, severity=severity, findings=(finding,), scored=scored)


SAME, OTHER = said(Severity.EQUAL), said(Severity.BLOCK)
UNSCORED = said(Severity.NOTE, scored=False)


@pytest.mark.parametrize("severity", list(Severity))
def test_the_outcome_is_the_severity(severity: Severity) -> None:
    assert outcome(said(severity)) is severity


def test_what_was_not_scored_is_neither_alike_nor_different() -> None:
    assert outcome(UNSCORED) is Severity.INVALID
    assert outcome(said(Severity.BLOCK, scored=False)) is Severity.INVALID


def test_a_line_is_json() -> None:
    line = as_line("a", OTHER, None)
    assert line.keys() == {"id", "severity", "findings", "similarity"}
    assert json.loads(json.dumps(line))["findings"][0]["severity"] == "BLOCK"
    assert as_line(1, SAME, UNSCORED)["repeat"] == {"severity": "INVALID", "similarity": None}


def test_the_noise_floor_is_of_scored_pairs_with_a_repeat_alone() -> None:
    tally = Tally()
    assert tally.noise is None and "not known" in as_text(tally)
    pairs = [(OTHER, SAME)] * 30 + [(SAME, OTHER)] * 10 + [(OTHER, OTHER)] * 20 + [(SAME, SAME)] * 40
    for at, (first, repeat) in enumerate(pairs):
        tally.add(at, first, repeat)
    tally.add(100, OTHER, None)
    tally.add(101, OTHER, UNSCORED)
    tally.add(102, UNSCORED, OTHER)
    noise = tally.noise
    assert noise is not None and (noise.pairs, noise.candidate, noise.repeat) == (100, 0.5, 0.3)
    assert noise.excess == pytest.approx(0.2) and 0 < noise.low < 0.2 < noise.high < 0.5
    assert tally.severities == {Severity.BLOCK: 52, Severity.EQUAL: 50, Severity.INVALID: 1}


def test_a_backend_against_itself_has_an_excess_around_nothing() -> None:
    tally = Tally()
    for at in range(1_000):
        tally.add(at, OTHER if at % 10 == 0 else SAME, OTHER if at % 10 == 5 else SAME)
    noise = tally.noise
    assert noise is not None and noise.low < 0 < noise.high and noise.excess == 0


def test_the_first_pair_of_a_cause_is_its_example() -> None:
    tally = Tally()
    for at in (9, 3, 7):
        tally.add(at, said(Severity.BLOCK, name=f"p{at}"), None)
    tally.add(1, said(Severity.WARN, name="w"), None)
    grave, other = tally.causes
    assert (grave.category, grave.count, grave.example, grave.first_at) == ("c.block", 3, "p3", 3)
    assert other.category == "c.warn"
    text = as_text(tally, width=60)
    assert text.index("BLOCK") < text.index("WARN") and all(len(line) <= 60 for line in text.splitlines())


def test_more_causes_than_fit_are_counted() -> None:
    tally = Tally()
    for at in range(20):
        finding = Finding(comparator="c", category=f"c.{at}", severity=Severity.WARN, message="m")
        tally.add(at, Comparison(request_id="p", severity=Severity.WARN, findings=(finding,)), None)
    assert "8 more causes" in as_text(tally)
