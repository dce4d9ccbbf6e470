"""What decides by task: which entry is used, what is compared, and what is said where one side has nothing to compare."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from replay.exchange import Arm
from reports.compare import Comparison, compare
from reports.judgement import Severity
from reports.policy import Extractor, Policy
from tests.reports.hostile import HOSTILE
from tests.reports.said import calls, categories, choice, request, seen


def entry(**fields: Any) -> Extractor:
    return Extractor.model_validate(fields)


def compared(baseline: Any, candidate: Any, *entries: Extractor, **body: Any) -> Comparison:
    arms = seen(baseline), seen(candidate, arm=Arm.CANDIDATE)
    return compare(request(**body), *arms, extractors=entries)


def outcome(baseline: str, candidate: str, **fields: Any) -> tuple[Severity, list[str]]:
    found = compared(baseline, candidate, entry(**fields))
    swapped = compared(candidate, baseline, entry(**fields))
    assert (found.severity, categories(found)) == (swapped.severity, categories(swapped))
    assert found.scored and not found.undecided
    return found.severity, categories(found)


EQUAL, DIFFERS = (Severity.NOTE, ["task.text"]), (Severity.BLOCK, ["task.differs"])
MISSING = (Severity.BLOCK, ["task.missing"])
ONE_WAY = "16 - 3 - 4 = 9 eggs, so she makes 9 * 2 = $18."
ANOTHER = "She uses 7 of 16 and sells the rest at $2 each.\nThat is 18.00 dollars"
SQL = "Here you are:\n\n```sql\nSELECT port\nFROM tides;\n```\n"


@pytest.mark.parametrize(
    ("baseline", "candidate", "fields", "expected"),
    [
        (ONE_WAY, ANOTHER, {"take": "last_number"}, EQUAL),
        (ONE_WAY, ONE_WAY.replace("$18", "$26"), {"take": "last_number"}, DIFFERS),
        (ONE_WAY, "She makes quite a lot.", {"take": "last_number"}, MISSING),
        ("about 3.14", "about 3.1416", {"take": "last_number"}, DIFFERS),
        ("about 3.14", "about 3.1416", {"take": "last_number", "within": 0.002}, EQUAL),
        ("0.2", "0.3", {"take": "last_number", "within": 0.1}, EQUAL),
        ("The answer is (B).", "B) Paris, for it is the capital.", {"take": "choice"}, EQUAL),
        ("The answer is (B).", "The answer is (C).", {"take": "choice"}, DIFFERS),
        ("spam", "**Spam.**", {"take": "label"}, (Severity.EQUAL, [])),
        ("spam", "not spam", {"take": "label"}, DIFFERS),
        ("spam", "I think that it is spam.\nIt wants money.", {"take": "label"}, MISSING),
        (SQL, SQL.replace("Here you are", "The query") + "It lists ports.", {"take": "code_fence"}, EQUAL),
        (SQL, SQL.replace("port\n", "harbour\n"), {"take": "code_fence"}, DIFFERS),
        (SQL, "SELECT port FROM tides;", {"take": "code_fence"}, MISSING),
        ("Mood: Happy\nWhy? Sun.", "Mood: happy\nIt shines.", {"regex": r"Mood: (\w+)"}, EQUAL),
        ("Mood: happy", "Mood: sad", {"regex": r"Mood: (\w+)"}, DIFFERS),
        ("Sum: 1,200 USD", "Sum: $1200.00 in all", {"regex": r"Sum: (.+)", "as": "number"}, EQUAL),
        ("Tags: tide, wind", "Tags: Wind; tide.", {"regex": "Tags: (.*)", "as": "labels"}, EQUAL),
        ("Tags: a | b", "Tags:\n- b\n- **A**\n", {"regex": "(?s)Tags:(.*)", "as": "labels"}, EQUAL),
        ("Tags: tide, wind", "Tags: tide", {"regex": "Tags: (.*)", "as": "labels"}, DIFFERS),
        (
            '{"a": {"b": [{"c": 5}]}, "d": 1}',
            '{"a": {"b": [{"c": 5.0}]}, "d": 2}',
            {"json": "$.a.b[0].c"},
            EQUAL,
        ),
        ('{"a": 5}', '{"a": "5"}', {"json": "a"}, DIFFERS),
        ('{"a": 5}', '{"a": "5 USD"}', {"json": "a", "as": "number"}, EQUAL),
        ('{"a": true}', '{"a": 1}', {"json": "a"}, DIFFERS),
        ('{"a": null}', '{"a": null, "b": 1}', {"json": "a"}, EQUAL),
        (
            '{"a": ["x", "y"]}',
            '{"a": ["Y", "x"]}',
            {"json": "a", "as": "labels"},
            (Severity.NOTE, ["task.text"]),
        ),
        ('{"a": 5}', '{"b": 5}', {"json": "a"}, MISSING),
        ('{"a": 5}', 'So:\n```json\n{"a": 5}\n```', {"json": "a"}, EQUAL),
        ('{"a": 5}', '{"a": 6}', {"json": "$"}, DIFFERS),
        ('{"a": 1e400}', '{"a": 5}', {"json": "a", "as": "number"}, MISSING),
    ],
)
def test_what_decides_is_compared_by_its_type(
    baseline: str, candidate: str, fields: dict[str, Any], expected: tuple[Severity, list[str]]
) -> None:
    assert outcome(baseline, candidate, **fields) == expected


def test_the_finding_names_the_values_and_the_side_that_lacks_one() -> None:
    found = compared(ONE_WAY, "so 37/2", entry(take="last_number")).findings[0]
    assert found.message == "the last number differs: baseline 18, candidate 18.5"
    lacking = compared(ONE_WAY, "none", entry(take="last_number")).findings[0]
    assert (lacking.side, lacking.comparator) == ("candidate", "task")
    paths = compared('{"a": {"b": 1}}', '{"a": {"b": 2}}', entry(json="a")).findings[0]
    assert "$.b: baseline 1, candidate 2" in paths.message


def test_where_neither_side_has_it_the_whole_answers_count() -> None:
    same = compared("It is done.", "it is done", entry(take="last_number"))
    assert (same.severity, categories(same)) == (Severity.WARN, ["task.missing", "text.case"])
    other = compared("It was done.", "It was not done.", entry(take="last_number"))
    assert (other.severity, categories(other)[0]) == (Severity.BLOCK, "task.missing")


def test_the_first_entry_that_matches_route_and_model_is_used() -> None:
    entries = (
        entry(route="/v1/completions", take="label"),
        entry(model="math-*", take="last_number"),
        entry(take="choice"),
    )
    assert categories(compared("so 18", "it is 18", *entries, model="math-7b")) == ["task.text"]
    assert categories(compared("(B) 18", "(C) 18", *entries, model="exam")) == ["task.differs"]
    assert categories(compared("(B) 18", "(C) 18", *entries[:2], model="maths"))[0] != "task.differs"
    assert categories(compared("(B) 18", "(C) 18", *entries)) == ["task.differs"]


def test_a_nearer_cause_is_named_first() -> None:
    math = entry(take="last_number")
    cut = compared(choice("so 1", finish_reason="length"), "so 18", math)
    assert categories(cut) == ["finish.truncated"]
    assert categories(compared("so 18", "I'm sorry, I can't help with that.", math)) == ["refusal.one_sided"]
    assert categories(compared("so 18", "", math)) == ["text.empty"]
    called = compared(calls(("sum", "{}")), calls(("sum", '{"a": 1}')), math)
    assert categories(called) == ["tools.arguments"]


def test_asked_for_json_is_compared_where_the_entry_says() -> None:
    body = {"response_format": {"type": "json_object"}}
    ask = entry(json="total")
    assert categories(compared('{"total": 5, "why": "a"}', '{"total": 5, "why": "b"}', ask, **body)) == [
        "task.text"
    ]
    assert categories(compared('{"total": 5}', '{"total": 5', ask, **body)) == ["task.missing"]


@pytest.mark.parametrize(
    "fields",
    [
        {"take": "last_number"},
        {"take": "choice"},
        {"take": "label"},
        {"take": "code_fence"},
        {"regex": "(?s)(.*)", "as": "labels"},
        {"regex": "(a*)*(?:b|x)"},
        {"json": "a.0"},
    ],
    ids=str,
)
def test_hostile_answers_never_break_it(fields: dict[str, Any]) -> None:
    for text in HOSTILE.values():
        found = compared(text, "so 18", entry(**fields))
        assert found.severity is not Severity.INVALID, found


def test_a_hostile_answer_cannot_hang_an_expression() -> None:
    found = compared("ab " * 70_000 + "!", "ab abc", entry(regex=r"^((?:(?:ab ?)+)+)c"))
    assert "task.missing" in categories(found)


def test_a_policy_keeps_its_entries() -> None:
    policy = Policy.model_validate(
        {"compare": [{"model": "m-*", "json": "a.b", "as": "number", "within": 0.5}]}
    )
    assert Policy.model_validate(policy.model_dump(mode="json", by_alias=True)) == policy


def test_an_entry_takes_one_thing() -> None:
    for fields in (
        {},
        {"take": "label", "json": "a"},
        {"json": "a", "within": 1},
        {"take": "choice", "as": "text"},
    ):
        with pytest.raises(ValidationError):
            entry(**fields)
