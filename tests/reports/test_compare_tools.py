"""Tool calls: what a client that runs them would notice, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from replay.exchange import Choice, ToolCall
from reports.compare import compare
from reports.judgement import Severity
from tests.reports.said import calls, categories, choice, compared, request, seen

HULL = ("get_tide", '{"port": "Hull"}')
CORK = ("get_tide", '{"port": "Cork"}')
WIND = ("get_wind", '{"port": "Hull"}')


def tool(name: str = "set", **schema: Any) -> list[dict[str, Any]]:
    return [{"type": "function", "function": {"name": name, "parameters": {"type": "object", **schema}}}]


class TestEqualCalls:
    def test_spelling_of_the_arguments_does_not_matter(self) -> None:
        old, new = calls(("set", '{"a": 1, "b": [true]}')), calls(("set", '{ "b":[true],"a":1 }'))
        assert (compared(old, new).severity, compared(old, new).findings) == (Severity.EQUAL, ())

    def test_ids_and_order_do_not_matter(self) -> None:
        old, new = calls(HULL, WIND), calls(WIND, HULL)
        turned = replace(new, tool_calls=tuple(replace(c, id=f"call_{c.name}") for c in new.tool_calls))
        assert [found.category for found in compared(old, turned).findings] == ["tools.id_format"]
        assert compared(old, turned).severity is Severity.NOTE

    def test_no_arguments_are_an_empty_object(self) -> None:
        assert compared(calls(("now", "")), calls(("now", "{}"))).findings == ()

    def test_text_beside_equal_calls_is_a_note(self) -> None:
        result = compared(calls(HULL, text="Let me look."), calls(HULL, text="One moment, no 5 please."))
        assert (categories(result), result.severity, result.scored) == (["tools.text"], Severity.NOTE, True)


class TestNumbers:
    @pytest.mark.parametrize(
        ("old", "new"),
        [("1", "true"), ("0", "false"), ("5", '"5"'), ("5", "6"), ("null", "0"), ("[2]", "[3]")],
    )
    def test_types_are_kept_apart(self, old: str, new: str) -> None:
        result = compared(calls(("set", f'{{"x": {old}}}')), calls(("set", f'{{"x": {new}}}')))
        assert categories(result) == ["tools.arguments"]
        assert "$.x" in result.findings[0].message

    def test_an_integer_is_its_float_unless_the_schema_says_integer(self) -> None:
        old, new = calls(("set", '{"x": 5}')), calls(("set", '{"x": 5.0}'))
        assert compared(old, new).findings == ()
        assert compared(old, new, tools=tool(properties={"x": {"type": "number"}})).findings == ()
        strict = compared(old, new, tools=tool(properties={"x": {"type": "integer"}}))
        assert categories(strict) == ["tools.arguments"]
        assert strict.findings[0].message.endswith("$.x: baseline 5, candidate 5.0")

    def test_types_named_as_python_names_them_are_no_integers(self) -> None:
        odd = [
            {
                "function": {
                    "name": "set",
                    "parameters": {"type": "dict", "properties": {"x": {"type": "float"}}},
                }
            }
        ]
        assert compared(calls(("set", '{"x": 5}')), calls(("set", '{"x": 5.0}')), tools=odd).findings == ()
        assert categories(compared(calls(("set", '{"x": 5}')), calls(("set", '{"x": "5"}')), tools=odd)) == [
            "tools.arguments"
        ]

    def test_large_integers_are_not_rounded(self) -> None:
        old, new = (
            calls(("set", '{"x": 12345678901234567890123}')),
            calls(("set", '{"x": 12345678901234567890124}')),
        )
        assert categories(compared(old, new)) == ["tools.arguments"]


class TestDifferences:
    def test_an_argument_that_differs_is_named_with_its_path(self) -> None:
        old = calls(("set", '{"where": [{"port": "Hull"}, {"port": "Cork"}]}'))
        new = calls(("set", '{"where": [{"port": "Hull"}, {"port": "Vigo", "x": null}]}'))
        message = compared(old, new).findings[0].message
        assert '$.where[1].port: baseline "Cork", candidate "Vigo"' in message
        assert "$.where[1].x: baseline absent, candidate null" in message

    def test_a_missing_call(self) -> None:
        result = compared(calls(HULL, WIND), calls(HULL))
        assert (categories(result), result.severity) == (["tools.missing"], Severity.BLOCK)
        assert (
            result.findings[0].message == "the baseline calls get_wind, the candidate does not make this call"
        )

    def test_prose_in_place_of_a_call(self) -> None:
        result = compared(calls(HULL), choice("High tide is at four."))
        assert categories(result) == ["tools.missing"]
        assert result.findings[0].message == "the baseline calls get_tide, the candidate answers in text"

    def test_a_call_in_place_of_prose(self) -> None:
        result = compared(choice("High tide is at four."), calls(HULL))
        assert categories(result) == ["tools.extra"]
        assert result.findings[0].message == "the candidate calls get_tide, the baseline answers in text"

    def test_another_name(self) -> None:
        result = compared(calls(HULL), calls(WIND))
        assert categories(result) == ["tools.name"]
        assert result.findings[0].message == "the candidate calls get_wind where the baseline calls get_tide"

    def test_a_call_made_twice_is_not_the_same_as_once(self) -> None:
        assert categories(compared(calls(HULL, CORK), calls(HULL, HULL))) == ["tools.arguments"]
        assert categories(compared(calls(HULL), calls(HULL, HULL))) == ["tools.extra"]


class TestBrokenCalls:
    def test_arguments_that_are_no_json(self) -> None:
        result = compared(calls(("tag", '{"note": "x"}')), calls(("tag", '{"note": "say "hi""}')))
        assert (categories(result), result.severity) == (["tools.arguments_invalid_json"], Severity.BLOCK)

    def test_arguments_cut_at_the_limit_say_so(self) -> None:
        old, new = calls(("write", '{"body": "Chapter one"}')), calls(("write", '{"body": "Chapter o'))
        result = compare(request(max_tokens=64), seen(old, tokens=20), seen(new, tokens=64))
        assert categories(result) == ["tools.truncated_arguments"]

    def test_both_broken_is_a_warning_and_otherwise_broken_a_difference_too(self) -> None:
        assert categories(compared(calls(("f", "{")), calls(("f", "{"), text=" "))) == [
            "tools.arguments_invalid_json"
        ]
        assert compared(calls(("f", "{")), calls(("f", "{"))).severity is Severity.WARN
        assert "tools.arguments" in categories(compared(calls(("f", "{")), calls(("f", "["))))

    def test_markup_left_in_the_text_is_blamed_on_the_parser(self) -> None:
        result = compared(
            calls(("dim", '{"pct":40}')), '<tool_call>\n{"name":"dim","arguments":{"pct":40}}\n</tool_call>'
        )
        assert categories(result) == ["tools.unparsed_markup"]
        assert "tool parser" in result.findings[0].message

    def test_markup_on_both_sides_is_text_like_any_other(self) -> None:
        text = "Write <tool_call> before the JSON and close it."
        assert compared(text, text + " ").severity is Severity.EQUAL

    def test_one_id_for_two_calls(self) -> None:
        twice = Choice(
            tool_calls=tuple(
                ToolCall(name=name, arguments=arguments, id="a") for name, arguments in (HULL, WIND)
            ),
            finish_reason="tool_calls",
        )
        assert categories(compared(calls(HULL, WIND), twice)) == ["tools.duplicate_id"]


class TestSchema:
    WAKE = tool(
        "wake", required=["at"], properties={"at": {"type": "string"}, "how": {"enum": ["bell", "light"]}}
    )

    @pytest.mark.parametrize(
        ("arguments", "breach"),
        [
            ("{}", "$.at is missing"),
            ('{"at": 7}', "$.at is not of type string"),
            ('{"at": "7", "how": "drum"}', '$.how is "drum"'),
            ("[]", "$ is not of type object"),
        ],
    )
    def test_a_breach_on_one_side_is_blocked_and_explained(self, arguments: str, breach: str) -> None:
        result = compared(calls(("wake", '{"at": "7"}')), calls(("wake", arguments)), tools=self.WAKE)
        assert (categories(result)[0], result.severity) == ("tools.schema_violation", Severity.BLOCK)
        assert breach in result.findings[0].message

    def test_a_breach_on_both_sides_is_a_warning(self) -> None:
        result = compared(calls(("wake", "{}")), calls(("wake", "{ }")), tools=self.WAKE)
        assert (categories(result), result.severity) == (["tools.schema_violation"], Severity.WARN)

    def test_words_that_the_check_does_not_know_are_no_breach(self) -> None:
        odd = tool("wake", properties={"at": {"$ref": "#/x", "type": "float", "pattern": "^a"}, "b": True})
        result = compared(
            calls(("wake", '{"at": 1, "b": 2}')), calls(("wake", '{"b": 2, "at": 1}')), tools=odd
        )
        assert result.findings == ()

    def test_a_closed_object_and_alternatives(self) -> None:
        closed = tool(
            "f",
            additionalProperties=False,
            properties={"a": {"anyOf": [{"type": "null"}, {"type": "string"}]}},
        )
        good = calls(("f", '{"a": null}'))
        assert (
            "$.b is not allowed"
            in compared(good, calls(("f", '{"a": null, "b": 1}')), tools=closed).findings[0].message
        )
        assert "$.a fits none" in compared(good, calls(("f", '{"a": 1}')), tools=closed).findings[0].message
