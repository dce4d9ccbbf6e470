"""Every case that two responses can show, by number and title; and that it does not matter how they were cut into reads."""

from __future__ import annotations

import itertools
from dataclasses import replace

import orjson
import pytest

from replay.decoding import observe
from replay.exchange import Arm, Observation, Recording, Request
from replay.saved import read_saved
from reports.compare import Comparison, compare
from reports.judgement import Severity
from tests.casebook.cases import ASK, CASES, ELSEWHERE, NINE, STREAM, Case, answer, delta, events, usage


def seen(recording: Recording, arm: Arm) -> Observation:
    return observe(recording, request_id="r", arm=arm, at=1_796_202_000.0, path="/v1/chat/completions")


def cut(recording: Recording, places: list[int]) -> Recording:
    """The same bytes in reads that end at ``places``."""
    body = b"".join(data for _, data in recording.chunks)
    edges = [0, *places, len(body)]
    pieces = (body[a:b] for a, b in itertools.pairwise(edges) if a < b)
    return replace(recording, chunks=tuple((0.0, piece) for piece in pieces))


def judged(case: Case, places: list[int] | None = None) -> Comparison:
    body = orjson.dumps(case.request)
    asked = Request(
        id="r", at=0.0, method="POST", path="/v1/chat/completions", headers=(), body=body, conversation=""
    )
    sides = (read_saved(case.baseline), read_saved(case.candidate))
    old, new = (side if places is None else cut(side, places) for side in sides)
    return compare(asked, seen(old, Arm.BASELINE), seen(new, Arm.CANDIDATE))


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.number}-{case.title}")
def test_the_severity_is_the_one_that_its_report_asks_for(case: Case) -> None:
    found = judged(case)
    told = [(f.category, f.severity.value, f.message, f.evidence) for f in found.findings]
    assert found.severity is case.severity, told
    if case.category:
        (worst, *_) = [f for f in found.findings if f.category == case.category] or [None]
        assert worst is not None and worst.severity is case.severity, told
        assert case.words in worst.message + worst.evidence, told
    if case.severity is Severity.EQUAL:
        assert all(f.severity is Severity.EQUAL for f in found.findings), told


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.number}-{case.title}")
def test_it_does_not_matter_how_the_bytes_came(case: Case) -> None:
    whole = judged(case)
    length = max(len(case.baseline), len(case.candidate))
    assert judged(case, list(range(length))) == whole
    for place in range(length):
        assert judged(case, [place]) == whole, place


def test_every_case_has_a_test_or_a_reason() -> None:
    assert {case.number for case in CASES} | ELSEWHERE.keys() == set(range(1, 53))


def test_43_parser_holds_tokens_back() -> None:
    """The usage counter grows while nothing is shown: late text is the parser's doing, not the engine's."""
    counted = [delta() | {"usage": usage(9, n)} for n in (1, 100, 200)]
    last = [delta(content=NINE, finish="stop"), {"choices": [], "usage": usage(9, 200)}]
    pieces = [events(one, done=False).partition(b"\r\n\r\n")[2] for one in (*counted, *last)]
    times = [0.1, 2.0, 4.0, 4.1, 4.1]
    head = read_saved(events())
    slow = replace(head, chunks=(*zip(times, pieces, strict=True), (4.2, b"data: [DONE]\n\n")), ended_at=4.2)
    quick = replace(slow, chunks=tuple((0.1, data) for _, data in slow.chunks))
    asked = Request(
        id="r",
        at=0.0,
        method="POST",
        path="/v1/chat/completions",
        headers=(),
        body=orjson.dumps(STREAM | {"max_tokens": 200}),
        conversation="",
    )
    found = compare(asked, seen(quick, Arm.BASELINE), seen(slow, Arm.CANDIDATE))
    assert [f.category for f in found.findings if f.severity is Severity.WARN] == ["latency.parser_buffering"]


def test_a_stream_where_none_was_asked_for_and_the_other_way_round() -> None:
    stream = events(delta(content="six", finish="stop"))
    whole = answer("six")
    for request, right, wrong, category in (
        (STREAM, stream, whole, "stream.not_streamed"),
        (ASK, whole, stream, "stream.unasked"),
    ):
        case = Case(
            number=0,
            title="",
            request=request,
            baseline=right,
            candidate=wrong,
            severity=Severity.BLOCK,
            category=category,
        )
        test_the_severity_is_the_one_that_its_report_asks_for(case)
