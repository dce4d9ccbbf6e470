"""JSON that a program reads."""

from __future__ import annotations

from typing import Any

import pytest

from reports.judgement import Severity
from tests.reports.said import categories, compared

OBJECT: dict[str, Any] = {"response_format": {"type": "json_object"}}
KG = {"type": "object", "required": ["kg"], "properties": {"kg": {"type": "number"}}}
SCHEMAS: list[dict[str, Any]] = [
    {"response_format": {"type": "json_schema", "json_schema": {"name": "form", "schema": KG}}},
    {"guided_json": KG},
    {"guided_json": '{"type": "object", "required": ["kg"], "properties": {"kg": {"type": "number"}}}'},
    {"structured_outputs": {"json": KG}},
]


@pytest.mark.parametrize("asked", [OBJECT, *SCHEMAS])
def test_prose_in_place_of_the_asked_json_is_blocked(asked: dict[str, Any]) -> None:
    result = compared('{"kg": 12.5}', "It weighs about 12.5 kilograms.", **asked)
    assert (categories(result), result.severity) == (["structured.invalid"], Severity.BLOCK)
    assert result.findings[0].message.startswith("the candidate's answer is not the JSON that was asked for")


@pytest.mark.parametrize("asked", [OBJECT, *SCHEMAS, {}])
def test_spelling_does_not_matter(asked: dict[str, Any]) -> None:
    result = compared('{"kg": 12.5, "b": [1]}', '{\n  "b": [1.0],\n  "kg": 12.50\n}', **asked)
    assert (result.severity, result.findings) == (Severity.EQUAL, ())


@pytest.mark.parametrize("asked", SCHEMAS)
def test_a_breach_of_the_asked_schema_is_named(asked: dict[str, Any]) -> None:
    result = compared('{"kg": 12.5}', '{"weight": 12.5}', **asked)
    assert categories(result)[0] == "structured.schema_violation"
    assert "the candidate's JSON breaks the asked schema: $.kg is missing" in result.findings[0].message


def test_a_breach_on_both_sides_is_a_warning() -> None:
    result = compared('{"weight": 1}', '{"weight": 1.0}', **SCHEMAS[0])
    assert (categories(result), result.severity) == (["structured.schema_violation"], Severity.WARN)


@pytest.mark.parametrize(
    ("old", "new", "place"),
    [
        ('{"a": {"b": 1}}', '{"a": {"b": true}}', "$.a.b: baseline 1, candidate true"),
        ('{"a": 1}', '{"a": 1, "c": []}', "$.c: baseline absent, candidate list of 0"),
        ('[{"a": "Hull"}]', '[{"a": "Cork"}]', '$[0].a: baseline "Hull", candidate "Cork"'),
        ('{"n": 10}', '{"n": 10000}', "$.n: baseline 10, candidate 10000"),
    ],
)
def test_a_value_that_differs_is_blocked_with_its_path(old: str, new: str, place: str) -> None:
    for asked in ({}, OBJECT):
        result = compared(old, new, **asked)
        assert (categories(result), result.severity) == (["structured.values"], Severity.BLOCK)
        assert place in result.findings[0].message


def test_texts_inside_may_differ_in_formatting() -> None:
    old, new = '{"note": "It\\u2019s **open**."}', '{"note": "It\'s open"}'
    assert compared(old, new).severity is Severity.EQUAL


def test_a_code_fence_counts_only_where_json_was_asked_for() -> None:
    fenced = '```json\n{"kg": 1}\n```'
    assert compared('{"kg": 1}', fenced).severity is Severity.EQUAL
    assert categories(compared('{"kg": 1}', fenced, **OBJECT)) == ["structured.invalid"]


def test_prose_on_both_sides_is_compared_as_prose() -> None:
    assert categories(compared("It weighs 12 kg in all.", "It weighs 13 kg in all.", **OBJECT)) == [
        "text.number"
    ]


def test_an_answer_that_only_begins_like_json_is_text() -> None:
    assert categories(compared("[Note] the pier is shut", "[Note] the pier is not shut")) == ["text.negation"]
