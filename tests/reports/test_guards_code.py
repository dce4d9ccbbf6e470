"""Fenced code and commands."""

from __future__ import annotations

import pytest

from reports.compare.guards.code import guard_code
from reports.compare.normal import normalise
from reports.judgement import Severity
from tests.reports.said import compared

FUNCTION = """def total(items):
    result = 0
    for item in items:
        if item.price > 5:
            result += item.price
    return result"""


def fenced(code: str, language: str = "python") -> str:
    return f"Here it is:\n\n```{language}\n{code}\n```"


def found(old: str, new: str) -> tuple[str, Severity] | None:
    finding, back = guard_code(normalise(old), normalise(new)), guard_code(normalise(new), normalise(old))
    assert (finding and finding.severity) == (back and back.severity)
    return None if finding is None else (finding.category, finding.severity)


class TestPrograms:
    @pytest.mark.parametrize(
        "same",
        [
            FUNCTION.replace("    ", "  "),
            FUNCTION.replace("    ", "\t"),
            FUNCTION.replace("result = 0", "result = 0  # the sum"),
            "# Adds up.\n" + FUNCTION.replace("\n", "\n\n"),
            FUNCTION.replace(" = 0", "=0"),
        ],
    )
    def test_formatting_and_comments_do_not_count(self, same: str) -> None:
        assert found(fenced(FUNCTION), fenced(same, "")) is None

    @pytest.mark.parametrize(
        "changed",
        [
            FUNCTION.replace("> 5", ">= 5"),
            FUNCTION.replace("5", "50"),
            FUNCTION.replace("+=", "-="),
            FUNCTION.replace("            result", "        result"),
            FUNCTION.replace("    return result", "        return result"),
        ],
    )
    def test_a_program_changed_in_one_place_is_blocked(self, changed: str) -> None:
        assert found(fenced(FUNCTION), fenced(changed)) == ("text.code", Severity.BLOCK)

    def test_one_written_otherwise_or_with_other_names_is_a_warning(self) -> None:
        other = "def total(items):\n    return sum(i.price for i in items if i.price > 5)"
        assert found(fenced(FUNCTION), fenced(other)) == ("text.code", Severity.WARN)
        assert found(fenced(FUNCTION), fenced(FUNCTION.replace("item", "thing"))) == (
            "text.code",
            Severity.WARN,
        )

    def test_a_warning_leaves_the_decision_to_similarity(self) -> None:
        result = compared(fenced(FUNCTION), fenced(FUNCTION.replace("item", "thing")))
        assert (result.severity, bool(result.undecided)) == (Severity.WARN, True)

    def test_blocks_may_be_cut_otherwise(self) -> None:
        head, _, tail = FUNCTION.partition("    for")
        cut = f"```python\n{head}```\nand\n```python\n    for{tail}\n```"
        assert found(fenced(FUNCTION), cut) is None

    def test_code_without_a_fence_is_the_same_code(self) -> None:
        assert found("Use it:\n```\nx = total(items)\n```", "Use it: `x = total(items)`") is None

    def test_code_that_has_gone_is_blocked_where_it_was_the_answer(self) -> None:
        assert found(fenced(FUNCTION), "Write a loop that adds the prices.") == ("text.code", Severity.BLOCK)
        long = "The function adds all prices, one by one, in the order in which they come. " * 3
        assert found(long + "\n```\nx = 1\n```", long) == ("text.code", Severity.WARN)

    def test_a_fence_that_is_never_closed_ends_with_the_text(self) -> None:
        assert found(fenced(FUNCTION), fenced(FUNCTION).removesuffix("```")) is None

    def test_a_fence_on_one_line_opens_nothing(self) -> None:
        assert normalise("```pip install x``` and go on").code == ()


class TestCommands:
    def test_another_command_is_blocked(self) -> None:
        assert found(fenced("rm -r build", "sh"), fenced("rm -r ~", "bash")) == (
            "text.command",
            Severity.BLOCK,
        )
        assert found(fenced("$ rm -r build", ""), fenced("$ rm -r ~", "")) == ("text.command", Severity.BLOCK)

    def test_prompts_comments_and_output_do_not_count(self) -> None:
        one = "$ pip install 'x'   # first\nSuccessfully installed x\n$ x --version"
        assert found(fenced(one, "console"), fenced('pip install "x"\nx --version', "sh")) is None

    def test_one_more_is_a_warning(self) -> None:
        assert found(fenced("make", "sh"), fenced("make\nmake test", "sh")) == ("text.command", Severity.WARN)
