"""What is formatting: texts that differ in it only have one key."""

from __future__ import annotations

import pytest

from reports.compare.normal import Code, normalise, same_text

WRAPPED = "The lock opens at nine,\nand it closes at five\nin the afternoon.\nAsk the keeper."
FLOWING = "The lock opens at nine, and it closes at five in the afternoon. Ask the keeper."


class TestProse:
    @pytest.mark.parametrize(
        ("one", "two"),
        [
            (WRAPPED, FLOWING),
            ('He said "no".', "He said 'no'"),
            ("Answer:\nfour", "**Answer**\n\nfour"),
            ("It costs 1,000, or 2,000.", "It costs 1000, or 2000"),
            (r"\(5 \times 3 = 15\)", "5 x 3 = 15"),
            (r"\boxed{15}", "**15**"),
            ("$x + y$ is it", "x + y is it"),
            ("n ≤ 5", "n <= 5"),
            ("See [the page](https://a.example)", "See the page (https://a.example)"),
            ("1. a\n2. b\n\nand\n\n1. c\n2. d", "- a\n- b\n\nand\n\n- c\n- d"),
            ("▪ a\n▪ b", "* a\n* b"),
        ],
    )
    def test_formatting_does_not_count(self, one: str, two: str) -> None:
        assert normalise(one).key == normalise(two).key
        assert same_text(one, two)

    @pytest.mark.parametrize(
        ("one", "two"),
        [
            ("It costs $5 and $6", "It costs 5 and 6"),
            ("Is it open?", "Is it open"),
            ("3. Rome", "4. Rome"),
            ("x = 1.5", "x = 15"),
            ("a, b", "a b c"),
        ],
    )
    def test_what_carries_meaning_stays(self, one: str, two: str) -> None:
        assert not same_text(one, two)

    def test_a_sentence_broken_over_lines_is_one(self) -> None:
        assert normalise(WRAPPED).sentences == normalise(FLOWING).sentences
        assert len(normalise("name: Ann\nage: 7\n- dog\n- cat").sentences) == 3

    def test_many_short_lines_take_no_longer_than_one_long(self) -> None:
        assert len(normalise("a\n" * 200_000).sentences) == 1


class TestParts:
    def test_code_and_addresses_stand_apart_from_prose(self) -> None:
        plain = normalise(
            "Run it:\n\n```Bash\nmake  all\n```\n\nthen see https://WWW.a.example/X/ or ask Ann@a.example."
        )
        assert plain.code == (Code(language="bash", lines=("make  all",)),)
        assert plain.links == ("a.example/X", "ann@a.example")
        assert "make" not in plain.prose and "example" not in plain.prose
        assert plain.text.startswith("Run it make  all then see https://")

    def test_other_fences_and_one_that_is_never_closed(self) -> None:
        assert normalise("~~~\nx\n```\ny\n~~~\nz").code == (Code(language="", lines=("x", "```", "y")),)
        assert normalise("```\nx").code == (Code(language="", lines=("x",)),)

    def test_words_are_in_lower_case(self) -> None:
        assert normalise("It's 6PM, ÉTÉ!").words == {"it", "s", "6pm", "été"}
