"""Outcomes, finish reasons, empty answers, refusals and leaked thoughts."""

from __future__ import annotations

import pytest

from replay.exchange import Arm, Choice, ErrorClass, Observation, Outcome
from reports.compare import compare
from reports.judgement import Severity
from tests.reports.said import calls, categories, choice, compared, failed, lost, request, seen

TEXT = "The tide turns at four and the bar is safe by six."


class TestOutcomes:
    def test_both_failed_alike_is_equal(self) -> None:
        result = compare(request(), failed(ErrorClass.SERVER), failed(ErrorClass.SERVER, Arm.CANDIDATE))
        assert (result.severity, result.scored) == (Severity.EQUAL, True)

    def test_both_failed_otherwise_is_a_warning_that_names_both(self) -> None:
        result = compare(request(), failed(ErrorClass.AUTH), failed(ErrorClass.OVERLOADED, Arm.CANDIDATE))
        assert result.severity is Severity.WARN
        assert result.findings[0].message == "the baseline failed with auth, the candidate with overloaded"

    def test_a_failed_candidate_is_blocked(self) -> None:
        result = compare(request(), seen(TEXT), failed(ErrorClass.TIMEOUT, Arm.CANDIDATE))
        finding = result.findings[0]
        assert (finding.category, finding.severity, finding.side) == (
            "error.timeout",
            Severity.BLOCK,
            "candidate",
        )
        assert finding.message == "the candidate failed with timeout where the baseline answered"

    def test_a_failed_baseline_leaves_nothing_to_compare_with(self) -> None:
        result = compare(request(), failed(ErrorClass.SERVER), seen(TEXT, arm=Arm.CANDIDATE))
        finding = result.findings[0]
        assert (result.severity, result.scored, finding.side) == (Severity.NOTE, False, "baseline")

    @pytest.mark.parametrize("outcome", [Outcome.CLIENT_CANCELLED, Outcome.MIRROR_DROPPED, Outcome.NOT_SENT])
    def test_an_answer_that_was_never_there_is_not_scored(self, outcome: Outcome) -> None:
        for old, new in ((seen(TEXT), lost(outcome)), (lost(outcome, Arm.BASELINE), seen(TEXT))):
            result = compare(request(), old, new)
            assert (categories(result), result.scored) == ([f"transport.{outcome.value}"], False)
            assert result.severity is Severity.NOTE

    @pytest.mark.parametrize("pair", [(None, seen(TEXT)), (seen(TEXT), None), (None, None)])
    def test_an_arm_that_was_not_asked_is_not_scored(
        self, pair: tuple[Observation | None, Observation | None]
    ) -> None:
        result = compare(request(), *pair)
        assert (categories(result), result.scored) == (["transport.not_sent"], False)

    def test_arguments_as_an_object_break_typed_clients(self) -> None:
        made = calls(("dim", '{"pct":40}'))
        result = compare(request(), seen(made), seen(made, oddities=("tools.arguments_type",)))
        assert (categories(result), result.severity) == (["tools.arguments_type"], Severity.BLOCK)

    def test_an_oddity_of_both_sides_is_no_difference(self) -> None:
        odd = ("stream.done_missing",)
        assert compare(request(), seen(TEXT, oddities=odd), seen(TEXT, oddities=odd)).findings == ()
        only = compare(request(), seen(TEXT), seen(TEXT, oddities=odd))
        assert (categories(only), only.severity) == (["stream.done_missing"], Severity.NOTE)


class TestFinish:
    @pytest.mark.parametrize(
        ("old", "new"), [("stop", "eos"), ("stop", "eos_token"), ("length", "model_length"), ("stop", "STOP")]
    )
    def test_spellings_of_one_reason_are_equal(self, old: str, new: str) -> None:
        result = compared(choice(TEXT, finish_reason=old), choice(TEXT, finish_reason=new))
        assert (result.severity, result.findings) == (Severity.EQUAL, ())

    @pytest.mark.parametrize(
        ("reason", "category"),
        [
            ("length", "finish.truncated"),
            ("content_filter", "finish.content_filter"),
            ("network_error", "finish.error"),
            ("repetition", "finish.repetition"),
        ],
    )
    def test_a_spoilt_answer_on_one_side_is_blocked(self, reason: str, category: str) -> None:
        result = compared(choice(TEXT), choice(TEXT, finish_reason=reason))
        assert (categories(result), result.severity) == ([category], Severity.BLOCK)

    def test_a_cut_on_both_sides_is_no_difference(self) -> None:
        cut = choice(TEXT, finish_reason="length")
        assert compared(cut, choice(TEXT + " And", finish_reason="length")).severity is Severity.EQUAL

    def test_an_unknown_reason_is_a_warning_with_its_own_word(self) -> None:
        result = compared(choice(TEXT), choice(TEXT, finish_reason="wandered_off"))
        assert (categories(result), result.severity) == (["finish.unknown"], Severity.WARN)
        assert "wandered_off" in result.findings[0].message

    def test_a_missing_reason_is_a_warning(self) -> None:
        result = compared(choice(TEXT), choice(TEXT, finish_reason=None))
        assert (categories(result), result.severity) == (["finish.missing"], Severity.WARN)

    def test_stop_is_tool_calls_where_the_call_was_forced(self) -> None:
        old, new = calls(("dim", "{}"), finish="tool_calls"), calls(("dim", "{}"), finish="stop")
        for forced in ("required", {"type": "function", "function": {"name": "dim"}}):
            assert compared(old, new, tool_choice=forced).findings == ()
        free = compared(old, new, tool_choice="auto")
        assert (categories(free), free.severity) == (["finish.differs"], Severity.WARN)

    def test_other_calls_are_not_blamed_on_the_finish_reason(self) -> None:
        assert categories(compared(calls(("dim", "{}")), choice(TEXT))) == ["tools.missing"]


class TestEmptiness:
    def test_one_empty_answer_is_blocked(self) -> None:
        assert categories(compared(TEXT, " \n")) == ["text.empty"]

    def test_two_empty_answers_are_equal(self) -> None:
        assert compared("", " \n").severity is Severity.EQUAL

    def test_a_tool_call_is_not_empty(self) -> None:
        assert "text.empty" not in categories(compared(TEXT, calls(("dim", "{}"))))

    def test_thoughts_that_ate_the_answer_are_mentioned(self) -> None:
        result = compared(TEXT, choice("", reasoning="hmm " * 10))
        assert "40 characters on reasoning" in result.findings[0].message


class TestRefusal:
    @pytest.mark.parametrize(
        "words",
        [
            "I'm sorry, but I can't help with that request.",
            "I\u2019m sorry, but I can\u2019t assist with that.",
            "I cannot comply with this.",
            "As an AI language model, I am not able to assist with that.",
            "Unfortunately, I am unable to provide that information.",
            "I must decline.",
        ],
    )
    def test_a_refusal_where_the_other_answers_is_blocked(self, words: str) -> None:
        result = compared(TEXT, words)
        assert (categories(result), result.severity) == (["refusal.one_sided"], Severity.BLOCK)

    @pytest.mark.parametrize(
        "words",
        [
            "I cannot find an exact date, but the ferry runs daily in summer.",
            "Sorry to hear that! Please send a photo of the cracked lid.",
            "You can't return worn shoes, but we can repair them.",
            "I can help with that request right now.",
        ],
    )
    def test_an_answer_that_sounds_a_little_like_one_is_none(self, words: str) -> None:
        assert "refusal.one_sided" not in categories(compared(TEXT, words))

    def test_two_refusals_serve_alike(self) -> None:
        result = compared("I can't help with that.", "I'm sorry, but I cannot assist with this request.")
        assert (categories(result), result.severity, result.scored) == (["refusal.both"], Severity.NOTE, True)

    def test_the_wire_has_a_field_for_it(self) -> None:
        assert categories(compared(TEXT, choice(refusal="No."))) == ["refusal.one_sided"]


class TestReasoning:
    def test_a_leaked_tag_is_blocked_and_the_parser_suspected(self) -> None:
        parsed = choice("Wait until six.", reasoning="tide is low")
        result = compared(parsed, "tide is low\n</think>\n\nWait until six.")
        assert categories(result) == ["reasoning.unparsed"]
        assert "reasoning parser" in result.findings[0].message

    def test_other_thoughts_are_a_note_whatever_they_say(self) -> None:
        result = compared(choice(TEXT, reasoning="yes, 5"), choice(TEXT, reasoning="no, 6"))
        assert (categories(result), result.severity, result.scored) == (
            ["reasoning.differs"],
            Severity.NOTE,
            True,
        )

    def test_spacing_of_thoughts_is_nothing(self) -> None:
        old, new = Choice(text=TEXT, reasoning="a  b"), Choice(text=TEXT, reasoning="a b\n")
        assert compared(old, new).findings == ()
