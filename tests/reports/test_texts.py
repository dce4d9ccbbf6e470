"""Answers from anywhere: texts and response bodies, one pair and many."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from reports import Texts, compare_many, compare_texts
from reports.compare.model import Vectors
from reports.judgement import Severity

NINE = "The tide is high at nine in the morning at that port."
REWORDED = "At that port, high tide comes at nine in the morning."


def body(text: str | None, **fields: Any) -> dict[str, Any]:
    choice = {"index": 0, "message": {"role": "assistant", "content": text} | fields, "finish_reason": "stop"}
    return {"object": "chat.completion", "model": "m", "choices": [choice]}


def alike(texts: Sequence[str]) -> Vectors:
    return np.ones((len(texts), 1), dtype=np.float32)


def categories(*answers: Any, **more: Any) -> list[str]:
    return [finding.category for finding in compare_texts(*answers, **more).findings]


def test_a_text_against_itself_is_equal_and_scored() -> None:
    found = compare_texts(NINE, NINE)
    assert (found.severity, found.scored, found.similarity) == (Severity.EQUAL, True, None)


def test_rules_decide_without_a_model() -> None:
    assert categories("The refund was approved today.", "The refund was not approved today.") == [
        "text.negation"
    ]
    assert (
        compare_texts("It costs 42 USD per month, all in.", "It costs 24 USD per month, all in.").severity
        is Severity.BLOCK
    )


def test_what_only_similarity_can_decide_is_unscored_without_it() -> None:
    found = compare_texts(NINE, REWORDED)
    assert not found.scored and [f.category for f in found.findings] == ["similarity.unscored"]
    with_model = compare_texts(NINE, REWORDED, embed=alike)
    assert with_model.scored and with_model.similarity == 1.0 and with_model.severity is Severity.NOTE
    assert compare_texts(NINE, REWORDED, embed=lambda t: alike(t) * 0.5, floor=0.2).severity is Severity.NOTE


def test_a_text_beside_a_body_is_compared_by_what_was_said_and_nothing_else() -> None:
    long = body(NINE) | {"usage": {"prompt_tokens": 9, "completion_tokens": 12, "total_tokens": 21}}
    assert categories(NINE, long) == categories(long, NINE) == []
    call = {"id": "a", "type": "function", "function": {"name": "tide", "arguments": "{}"}}
    assert categories(NINE, body(None, tool_calls=[call])) == ["tools.extra"]


@pytest.mark.parametrize(
    "other",
    [
        {"object": "text_completion", "choices": [{"index": 0, "text": NINE, "finish_reason": "stop"}]},
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "text", "text": NINE}],
            "stop_reason": "end_turn",
        },
        {
            "object": "response",
            "status": "completed",
            "output": [
                {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": NINE}]}
            ],
        },
    ],
    ids=["completions", "messages", "responses"],
)
def test_every_interface_says_the_same(other: dict[str, Any]) -> None:
    assert compare_texts(body(NINE), other).severity in (Severity.EQUAL, Severity.NOTE)
    assert compare_texts(NINE, other).severity is Severity.EQUAL


def test_the_request_says_what_is_right() -> None:
    schema = {"type": "object", "properties": {"hour": {"type": "number"}}, "required": ["hour"]}
    request = {"response_format": {"type": "json_schema", "json_schema": {"name": "t", "schema": schema}}}
    assert compare_texts('{"hour": 9}', '{ "hour": 9.0 }', request=request).severity is Severity.EQUAL
    assert categories('{"hour": 9}', "At nine, as every day.", request=request) == ["structured.invalid"]


def test_an_error_is_an_answer_too() -> None:
    error = {"error": {"message": "too many requests", "type": "rate_limit_error"}}
    assert compare_texts(NINE, error).severity is Severity.BLOCK
    assert compare_texts(error, error).severity is Severity.EQUAL


@pytest.mark.parametrize(
    ("answer", "kind"), [({"a": 1}, ValueError), (None, TypeError), (7, TypeError), ([], TypeError)]
)
def test_what_is_no_answer_is_refused_by_its_side(answer: Any, kind: type[Exception]) -> None:
    with pytest.raises(kind, match="the candidate is"):
        compare_texts(NINE, answer)
    with pytest.raises(kind, match="the baseline is"):
        compare_texts(answer, NINE)


def test_many_pairs_come_in_order_with_few_calls_of_the_model_and_no_more_are_read_than_needed() -> None:
    taken = 0
    calls: list[int] = []

    def pairs() -> Iterator[Texts]:
        nonlocal taken
        for taken in range(1, 1_001):
            other = REWORDED if taken % 2 else NINE
            yield Texts(id=str(taken), baseline=NINE, candidate=other, repeat=NINE if taken % 3 else None)

    def embed(texts: Sequence[str]) -> Vectors:
        calls.append(len(texts))
        return alike(texts)

    found = compare_many(pairs(), embed=embed)
    first, again = next(found)
    assert (first.request_id, first.similarity, again and again.severity) == ("1", 1.0, Severity.EQUAL)
    assert taken < 500 and len(calls) == 1
    rest = list(found)
    assert [int(one.request_id) for one, _ in rest] == list(range(2, 1_001)) and len(calls) <= 4
    assert [repeat is None for _, repeat in rest] == [n % 3 == 0 for n in range(2, 1_001)]


def test_the_policy_is_read_without_the_cascade() -> None:
    script = "import sys, reports.policy; sys.exit('reports.compare' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
