"""Loops, broken characters, and what belongs to a template."""

# ruff: noqa: RUF001 - letters of other scripts are what these tests are made of

from __future__ import annotations

import pytest

from reports.compare.guards.characters import guard_characters
from reports.compare.guards.loops import loop
from reports.compare.guards.markup import guard_markup
from reports.compare.normal import normalise
from reports.judgement import Severity
from tests.reports.said import categories, compared

MARKS = (
    *(
        "<|im_end|>",
        "<|eot_id|>",
        "[INST]",
        "[/INST]",
        "</s>",
        "<end_of_turn>",
        "<think>",
        "<0x0A>",
        "<<SYS>>",
    ),
    *(
        "<\uff5cend\u2581of\u2581sentence\uff5c>",
        "[TOOL_CALLS]",
        "\u0120the\u0120cat",
        "<unk>",
        "</tool_response>",
    ),
)
PLAIN = "The lock opens at nine and closes at five on every day of the week."


class TestLoops:
    @pytest.mark.parametrize(
        "text",
        [
            PLAIN + " It is open and" * 8,
            "I will check that for you. " * 6,
            PLAIN + " the" * 30,
            "First, go there. " + "Then, turn left and walk on until the end of the road. " * 4,
            "好的我们来看一下" * 12,
        ],
    )
    def test_a_phrase_without_end_is_a_loop(self, text: str) -> None:
        assert loop(normalise(text).text)
        assert "text.loop" in categories(compared(PLAIN, text))
        assert "text.loop" in categories(compared(text, PLAIN))

    @pytest.mark.parametrize(
        "text",
        [
            PLAIN,
            "No, no, no, no: that is not how it works, and you know that as well as I do my friend.",
            "| 0 | 0 | 0 | 0 | 0 | 0 | 0 | 0 | 0 | 0 | 0 | 0 | 0 | 0 | 0 |",
            "Monday: open. Tuesday: open. Wednesday: open. Thursday: open. Friday: open. Saturday: closed.",
            "- red: 1\n- blue: 2\n- green: 3\n- white: 4\n- black: 5\n- brown: 6",
            "- - - - - - - - - - - - - - - - - - - - - - - - - - - - - -",
        ],
    )
    def test_lists_tables_and_emphasis_are_none(self, text: str) -> None:
        assert loop(normalise(text).text) is None

    def test_a_loop_on_both_sides_is_no_difference(self) -> None:
        text = PLAIN + " It is open and" * 8
        assert "text.loop" not in categories(compared(text, text + " then It is open and"))


class TestCharacters:
    @pytest.mark.parametrize("broken", ["caf\ufffd", "cafÃ©", "donâ€™t", "ðŸ˜€"])
    def test_broken_on_one_side_is_blocked(self, broken: str) -> None:
        finding = guard_characters(normalise("It says don't café here"), normalise(f"It says {broken} here"))
        assert finding is not None and (finding.side, finding.severity) == ("candidate", Severity.BLOCK)

    @pytest.mark.parametrize(
        "text", ["café", "São Paulo, Âme, Ãrvore", "“don’t” – 5 €", "naïve façade", "😀 👍🏽"]
    )
    def test_accents_and_pictures_are_not_broken(self, text: str) -> None:
        assert guard_characters(normalise("plain"), normalise(text)) is None


class TestMarkup:
    @pytest.mark.parametrize("mark", MARKS)
    def test_tokens_of_a_template_on_one_side_are_blocked(self, mark: str) -> None:
        for old, new, side in (
            (PLAIN, f"{PLAIN} {mark}", "candidate"),
            (f"{PLAIN} {mark}", PLAIN, "baseline"),
        ):
            finding = guard_markup(normalise(old), normalise(new))
            assert finding is not None and (finding.category, finding.side) == ("text.markup", side)

    @pytest.mark.parametrize(
        "text", ["a < b and c > d", "[1] see there", "<b>bold</b>", "x | y", "array[INSTANCE]", "<s>old</s"]
    )
    def test_other_signs_are_none(self, text: str) -> None:
        assert guard_markup(normalise(PLAIN), normalise(text)) is None

    def test_both_sides_may_speak_of_tokens(self) -> None:
        assert guard_markup(normalise("It is <|im_end|> here"), normalise("Here it is <|im_end|>")) is None

    def test_another_turn_is_a_warning(self) -> None:
        finding = guard_markup(normalise(PLAIN), normalise(f"{PLAIN} User: And tomorrow?"))
        assert finding is not None and (finding.category, finding.severity) == (
            "text.extra_turn",
            Severity.WARN,
        )
        assert guard_markup(normalise(PLAIN), normalise("Name: Ann. User name: ann")) is None
