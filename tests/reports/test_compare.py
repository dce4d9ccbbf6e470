"""The cascade as a whole: order, several choices, labels, laws, and what it survives."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replay.exchange import Arm, Choice, ErrorClass, ToolCall
from reports.compare import compare
from reports.judgement import Severity
from tests.reports.said import calls, categories, choice, compared, failed, request, seen

LONG = "The ferry leaves the harbour every morning and comes back before the evening bell."
TEXTS = st.text(max_size=80) | st.sampled_from([LONG, "Yes, it is.", "No, it is not.", "$42.10", "{}", "***"])


class TestOrder:
    def test_the_nearest_cause_is_named_and_not_its_consequences(self) -> None:
        cut = calls(("get_tide", '{"port": "Hu'), finish="length")
        result = compared(calls(("get_tide", '{"port": "Hull"}')), cut)
        assert categories(result) == ["finish.truncated"]

    def test_identical_answers_leave_nothing_to_say(self) -> None:
        result = compared(LONG, LONG)
        assert (result.severity, result.findings, result.scored) == (Severity.EQUAL, (), True)

    def test_what_rules_cannot_decide_is_left_to_similarity_and_not_scored_yet(self) -> None:
        result = compared(
            LONG, "Every morning a ferry departs, and it returns by the time the evening bell rings."
        )
        assert not result.scored and result.similarity is None
        assert result.undecided[0][0].startswith("The ferry leaves")


class TestSeveralChoices:
    def test_order_does_not_matter(self) -> None:
        result = compare(request(n=3), seen("ash", "elm", "oak"), seen("oak", "ash", "elm"))
        assert (result.severity, result.findings) == (Severity.EQUAL, ())

    def test_as_many_of_each_are_needed(self) -> None:
        result = compare(request(n=3), seen("ash", "ash", "oak"), seen("ash", "oak", "oak"))
        assert categories(result) == ["text.short"]

    def test_with_several_prompts_the_index_decides(self) -> None:
        body = request(prompt=["name a tree", "name a fish"])
        assert compare(body, seen("oak", "cod"), seen("cod", "oak")).severity is Severity.BLOCK

    def test_a_missing_choice_is_blocked(self) -> None:
        result = compare(request(n=2), seen("ash", "elm"), seen("ash"))
        assert categories(result) == ["choices.missing"]
        assert result.findings[0].side == "candidate"
        assert result.findings[0].message == "the candidate gives 1 of the 2 choices that the baseline gives"

    def test_each_undecided_choice_is_kept(self) -> None:
        old = seen(LONG, "Bread rises because yeast makes gas inside the dough.")
        new = seen(
            "A ferry goes out each morning and is back at evening.",
            "Yeast in the dough makes gas, so bread rises.",
        )
        assert len(compare(request(n=2), old, new).undecided) == 2


class TestAnswersWithoutChoices:
    def test_equal_bytes_are_equal(self) -> None:
        result = compare(request(), seen(raw=b"[1]"), seen(raw=b"[1]"))
        assert (result.severity, result.scored) == (Severity.EQUAL, True)

    def test_other_bytes_are_not_scored(self) -> None:
        result = compare(request(), seen(raw=b"[1]"), seen(raw=b"[2]"))
        assert (categories(result), result.scored) == (["compare.no_choices"], False)


# One fault each, on one side alone; swapping the answers has to swap the words.
ONE_SIDED: dict[str, tuple[Choice, Choice, dict[str, Any]]] = {
    "empty": (choice("A real answer of some words."), choice("  "), {}),
    "truncated": (choice("A real answer."), choice("A real", finish_reason="length"), {}),
    "no finish reason": (choice("A real answer."), choice("A real answer.", finish_reason=None), {}),
    "refusal": (choice("The tide is at four."), choice("I'm sorry, but I can't help with that."), {}),
    "markup": (calls(("dim", "{}")), choice("<tool_call>dim</tool_call>"), {}),
    "thoughts": (choice("Wait until six."), choice("tide is low</think>Wait until six."), {}),
    "arguments": (calls(("dim", "{}")), calls(("dim", "{")), {}),
    "ids": (
        calls(("dim", "{}"), ("dim", "{}")),
        Choice(tool_calls=(ToolCall(name="dim", arguments="{}", id="a"),) * 2, finish_reason="tool_calls"),
        {},
    ),
    "json": (choice('{"a": 1}'), choice("a is 1"), {"response_format": {"type": "json_object"}}),
}


@pytest.mark.parametrize("fault", ONE_SIDED)
def test_the_side_with_the_fault_is_named_and_never_the_other(fault: str) -> None:
    good, bad, body = ONE_SIDED[fault]
    for side, result in (
        ("candidate", compared(good, bad, **body)),
        ("baseline", compared(bad, good, **body)),
    ):
        finding = result.findings[0]
        assert finding.side == side
        assert f"the {side}" in finding.message.split(" where ")[0].split("; the ")[0].split(" and the ")[0]


def test_evidence_quotes_each_side_under_its_own_name() -> None:
    finding = compared("The fee is $42.10 a day.", "The fee is $4210 a day.").findings[0]
    assert finding.message == "numbers differ: the baseline has 42.1, the candidate 4210"
    assert finding.evidence == "baseline: The fee is $42.10 a day | candidate: The fee is $4210 a day"


class TestLaws:
    @given(TEXTS, TEXTS, st.sampled_from(["stop", "length", "eos", None]))
    def test_an_answer_equals_itself(self, text: str, reasoning: str, finish: str | None) -> None:
        said = choice(text, reasoning=reasoning, finish_reason=finish)
        result = compared(said, said)
        assert (result.severity, result.findings) == (Severity.EQUAL, ())

    @given(TEXTS, TEXTS)
    def test_the_decision_on_texts_is_symmetric(self, one: str, two: str) -> None:
        there, back = compared(one, two), compared(two, one)
        assert (there.severity, there.scored) == (back.severity, back.scored)
        assert sorted(categories(there)) == sorted(categories(back))

    @given(
        st.dictionaries(st.text(max_size=4), st.integers() | st.text(max_size=9) | st.booleans(), max_size=5)
    )
    def test_the_order_of_json_keys_does_not_matter(self, value: dict[str, Any]) -> None:
        text, turned = json.dumps(value), json.dumps(dict(reversed(value.items())), indent=1)
        assert compared(text, turned).severity is Severity.EQUAL
        assert compared(calls(("f", text)), calls(("f", turned))).severity is Severity.EQUAL


HOSTILE = {
    "lone surrogates": "\ud800" * 5_000,
    "combining marks": "a" + "\u0301\u0323" * 50_000,
    "emphasis": "*_" * 50_000,
    "white space": " " * 100_000 + "x",
    "digits": "1" * 100_000,
    "grouped digits": "1,000" + ",000" * 25_000 + "x",
    "unclosed brackets": "[" * 100_000,
    "nested brackets": "[" * 5_000 + "]" * 5_000,
    "nested below the parser's limit": '{"a":' * 300 + "1" + "}" * 300,
    "not a number": '{"a": NaN, "b": -Infinity}',
    "a huge integer": '{"a": ' + "9" * 4_200 + "}",
    "an integer too long to read": '{"a": ' + "9" * 6_000 + "}",
    "an overflowing float": '{"a": 1e999}',
    "apologies": "I'm sorry, but " * 5_000,
    "control characters": "\x1b[31m\x00" * 5_000,
    "line breaks": "\n" * 100_000,
    "a longer text than anyone reads": "word " * 100_000,
}
_TOOLS = [
    {"function": {"name": "f", "parameters": {"properties": {"a": {"type": "integer"}}, "required": ["a"]}}}
]


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.timeout(20)
def test_hostile_answers_are_compared_like_any_other(name: str) -> None:
    text = HOSTILE[name]
    plain = "An ordinary answer of more than five words."
    asked: dict[str, Any] = {"tools": _TOOLS, "response_format": {"type": "json_object"}}
    results = [
        compared(text, plain),
        compared(text, text + " and a tail"),
        compared(plain, text, **asked),
        compared(calls(("f", text)), calls(("f", '{"a": 1}')), **asked),
        compared(calls(("f", text)), calls(("f", text + "x")), **asked),
    ]
    for result in results:
        assert result.severity is not Severity.INVALID
        for finding in result.findings:
            assert f"{finding.message}{finding.evidence}".isprintable()


def test_a_hostile_request_body_is_one_without_a_contract() -> None:
    for body in (b"\xff\xfe", b"[" * 10_000, b"null", b'{"tools": [1, {"function": 3}], "max_tokens": true}'):
        asked = replace(request(), body=body)
        assert compare(asked, seen("oak"), seen("ash")).severity is Severity.BLOCK


def test_our_own_failure_is_invalid_and_not_scored() -> None:
    broken = Choice(text=None, finish_reason="stop")  # type: ignore[arg-type]
    result = compare(request(), seen("oak"), seen(broken, arm=Arm.CANDIDATE))
    assert (result.severity, result.scored) == (Severity.INVALID, False)
    assert set(categories(result)) == {"compare.error"}
    assert "compare_emptiness failed on this pair: AttributeError" in result.findings[-1].message


def test_a_failed_candidate_is_blocked_before_anything_is_read() -> None:
    result = compare(request(), seen("oak"), failed(ErrorClass.SERVER, Arm.CANDIDATE))
    assert (categories(result), result.severity, result.scored) == (
        ["error.server_error"],
        Severity.BLOCK,
        True,
    )
