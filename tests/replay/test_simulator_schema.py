"""Generated values satisfy their schemas; schedules and answers keep their laws."""

from __future__ import annotations

import json
import math
import random
import re
import statistics
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replay.simulator import answers, chance, embeddings, pacing, pattern, schema
from replay.simulator.ask import RefusalError
from replay.simulator.settings import Pacing

TREE: dict[str, Any] = {
    "$defs": {
        "node": {
            "type": "object",
            "properties": {"name": {"type": "string"}, "next": {"$ref": "#/$defs/node"}},
            "required": ["name"],
        }
    },
    "$ref": "#/$defs/node",
}


def values(found: Any, count: int = 60) -> list[Any]:
    return [schema.value(found, number) for number in range(count)]


def test_numbers_stay_within_bounds() -> None:
    for drawn in values({"type": "integer", "minimum": 3, "exclusiveMaximum": 9, "multipleOf": 2}):
        assert drawn in (4, 6, 8)
        assert isinstance(drawn, int)
    assert all(-5 <= drawn <= -4 for drawn in values({"type": "number", "minimum": -5, "maximum": -4}))
    assert all(0 < drawn <= 1 for drawn in values({"type": "number", "exclusiveMinimum": 0, "maximum": 1}))
    assert all(drawn < 0 for drawn in values({"type": "number", "exclusiveMaximum": 0}))
    assert all(drawn > 2 for drawn in values({"type": "integer", "minimum": 2, "exclusiveMinimum": True}))
    assert values({"type": "integer", "minimum": 7, "maximum": 7}, 1) == [7]
    assert all(drawn <= -100 for drawn in values({"type": "integer", "maximum": -100}))


def test_constants_choices_and_alternatives() -> None:
    assert values({"const": [1]}, 2) == [[1], [1]]
    assert set(values({"enum": ["a", "b", None]})) == {"a", "b", None}
    either = {"anyOf": [{"type": "integer"}, {"type": "null"}]}
    assert {type(drawn) for drawn in values(either)} == {int, type(None)}
    assert all(isinstance(drawn, str) for drawn in values({"type": ["string", "null"]}))
    both = {"allOf": [{"properties": {"a": {"type": "integer"}}, "required": ["a"]}, {"required": ["b"]}]}
    assert all({"a", "b"} <= set(drawn) for drawn in values(both))


def test_objects_and_arrays() -> None:
    found = {"type": "object", "properties": {"a": {}, "b": {}}, "required": ["b", "c"]}
    drawn = values(found)
    assert all({"b", "c"} <= set(item) <= {"a", "b", "c"} for item in drawn)
    assert {"a" in item for item in drawn} == {True, False}
    lists = values(
        {"type": "array", "minItems": 2, "maxItems": 4, "uniqueItems": True, "items": {"type": "integer"}}
    )
    assert all(2 <= len(item) <= 4 and len(set(item)) == len(item) for item in lists)
    assert values(
        {"type": "array", "prefixItems": [{"const": 1}, {"const": "x"}], "minItems": 2, "maxItems": 2}, 1
    ) == [[1, "x"]]


def test_strings() -> None:
    assert all(5 <= len(drawn) <= 9 for drawn in values({"type": "string", "minLength": 5, "maxLength": 9}))
    assert all(
        re.fullmatch(r"\d{4}-\d\d-\d\d", drawn) for drawn in values({"type": "string", "format": "date"})
    )
    for expression in (
        r"^[A-Z]{3}-\d{2,4}$",
        r"^(red|green|#[0-9a-f]{6})$",
        r"\w+@\w+\.(com|org)",
        r"^a?b*c+$",
        r"^\+?[^x]$",
    ):
        assert all(
            re.search(expression, drawn) for drawn in values({"type": "string", "pattern": expression})
        )


def test_what_is_beyond_the_pattern_generator_is_a_plain_word() -> None:
    assert pattern.matching(r"(?=x)y", random.Random(1)) is None
    assert pattern.matching(r"(", random.Random(1)) is None
    assert all(values({"type": "string", "pattern": r"(?<!a)b(?!c)\1"}, 3))


def test_recursive_schemas_end() -> None:
    assert all(len(json.dumps(drawn)) < 2000 for drawn in values(TREE))
    endless = {"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]}
    assert json.dumps(schema.value(endless, 1))
    assert schema.value({"$ref": "#/$defs/none"}, 1)
    wide = {"type": "object", "properties": {n: {"$ref": "#"} for n in "abcde"}, "required": list("abcde")}
    assert len(json.dumps(schema.value(wide, 1))) < 2_000_000
    assert len(schema.value({"type": "array", "minItems": 10**9}, 1)) == 100
    loop = {"$defs": {"a": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"}
    assert schema.value(loop, 1)


def test_python_like_type_names_of_function_catalogues() -> None:
    found = {
        "type": "dict",
        "properties": {"x": {"type": "float"}, "y": {"type": "tuple"}},
        "required": ["x", "y"],
    }
    drawn = schema.value(found, 1)
    assert isinstance(drawn["x"], float | int)
    assert isinstance(drawn["y"], list)


SCHEMAS = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-9, 9)
    | st.sampled_from(["object", "array", "string", "integer", "x", "#"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["type", "properties", "required", "items", "anyOf", "allOf", "enum", "minimum", "$ref"]
            ),
            inner,
        )
    ),
    max_leaves=8,
)


@given(SCHEMAS, st.integers())
def test_any_schema_gives_json_or_is_refused(found: Any, seed: int) -> None:
    drawn = drawn_or_refused(found, seed)
    assert drawn == drawn_or_refused(found, seed)
    json.dumps(drawn, allow_nan=False)


def drawn_or_refused(found: Any, seed: int) -> Any:
    try:
        return schema.value(found, seed)
    except RefusalError:
        return "refused"


@given(st.text(), st.integers())
def test_pieces_put_together_are_the_text(text: str, seed: int) -> None:
    assert "".join(answers.pieces(text)) == text
    said = answers.text(text, seed)
    assert answers.wrong(said, text, seed) != said
    assert answers.reworded(said, seed) != said


def test_lengthened_answers_have_the_length() -> None:
    for count in (1, 7, 300):
        tokens = answers.lengthened("A start.", count, 5)
        assert len(tokens) == count
        assert "A start.".startswith("".join(tokens)[:8])


def test_schedule_has_the_median_and_spread_told() -> None:
    told = Pacing(ttft=0.2, ttft_spread=0.5, itl=0.01, itl_spread=0.1)
    schedules = [pacing.schedule(told, 3, seed) for seed in range(2000)]
    logs = [math.log(due[0]) for due in schedules]
    assert statistics.median(due[0] for due in schedules) == pytest.approx(0.2, rel=0.1)
    assert statistics.stdev(logs) == pytest.approx(0.5, rel=0.1)
    assert statistics.median(due[2] - due[1] for due in schedules) == pytest.approx(0.01, rel=0.05)
    assert pacing.schedule(told, 3, 7) == pacing.schedule(told, 3, 7)
    assert pacing.schedule(Pacing(), 3, 7) == (0.0, 0.0, 0.0)


@given(st.integers(0, 50), st.floats(0, 1, exclude_max=True), st.floats(0.1, 9))
def test_a_stall_delays_later_tokens_only(count: int, at: float, pause: float) -> None:
    due = tuple(float(number) for number in range(count))
    late = [after - before for before, after in zip(due, pacing.stalled(due, at, pause), strict=True)]
    assert {round(delay, 6) for delay in late} <= {0.0, round(pause, 6)}
    assert [round(delay, 6) for delay in late] == sorted(round(delay, 6) for delay in late)
    assert count < 2 or (late[0] == 0 and late[-1] > 0)


def test_draws_are_the_same_on_every_machine() -> None:
    assert chance.number("a", 1) == 6781920191073471699
    assert chance.stream("a").random() == pytest.approx(0.3532829576341793)


def test_texts_that_share_words_are_close() -> None:
    def cosine(one: str, other: str) -> float:
        pair = embeddings.vector(one, 64, seed=0), embeddings.vector(other, 64, seed=0)
        return sum(a * b for a, b in zip(*pair, strict=True))

    assert cosine("a calm grey sea", "a calm grey sea") == pytest.approx(1)
    assert (
        cosine("a calm grey sea", "a calm grey lake") > 0.5 > cosine("a calm grey sea", "invoices due monday")
    )
