"""Free text: formatting, guards and short answers."""

from __future__ import annotations

import pytest

from reports.compare.guards.quantities import quantities
from reports.compare.normal import normalise
from reports.judgement import Severity
from tests.reports.said import categories, compared

UNDECIDED: list[str] = []


class TestFormatting:
    @pytest.mark.parametrize(
        ("old", "new"),
        [
            ("The  pier is\nopen.", "The pier is open"),
            ("\u201cIt\u2019s open\u201d", '"It\'s open"'),
            ("The **pier** is _open_ today", "The pier is open today"),
            ("# Tides\n- low at four\n- high at ten", "Tides\n* low at four.\n* high at ten."),
            ("1. low at four\n2. high at ten", "- low at four\n- high at ten"),
            ("It costs 1,000 dollars", "It costs 1000 dollars"),
            ("It costs 1,234,567 dollars", "It costs 1234567 dollars"),
            ("cafe\u0301 au lait", "caf\u00e9 au lait"),
            ("Use `pip` now", "Use pip now"),
            ("```python\nx = 1\n```", "```\nx = 1\n```"),
            ("open \u2014 always", "open - always"),
            ("a\n\n---\n\nb", "a\n\nb"),
        ],
    )
    def test_formatting_is_no_difference(self, old: str, new: str) -> None:
        assert (compared(old, new).severity, compared(old, new).findings) == (Severity.EQUAL, ())

    @pytest.mark.parametrize(
        ("old", "new"),
        [
            ("2 * 3 * 4", "2 3 4"),
            ("a*b*c", "abc"),
            ("snake_case_name", "snakecasename"),
            ("Is it open?", "Is it open"),
            ("3. Rome", "4. Rome"),
            ("```\nif a:\n    b\n```", "```\nif a:\nb\n```"),
            ("x *= 5", "x = 5"),
        ],
    )
    def test_what_carries_meaning_stays(self, old: str, new: str) -> None:
        assert normalise(old).text != normalise(new).text

    def test_case_is_a_note(self) -> None:
        result = compared("YES", "yes")
        assert (categories(result), result.severity, result.scored) == (["text.case"], Severity.NOTE, True)


class TestShortAnswers:
    def test_they_are_equal_or_they_are_not(self) -> None:
        result = compared("Berth nine", "Berth seven please")
        assert result.severity is Severity.BLOCK
        assert categories(compared("Paris", "Lyon")) == ["text.short"]

    def test_longer_ones_are_left_to_similarity(self) -> None:
        assert compared("Paris", "I believe that it is Paris").undecided

    def test_a_script_without_spaces_has_words_too(self) -> None:
        assert categories(compared("\u5317\u4eac", "\u4e0a\u6d77")) == ["text.short"]
        assert compared("\u6c34" * 12, "\u706b" * 12).undecided


class TestLength:
    def test_a_flood_on_one_side_is_blocked(self) -> None:
        result = compared("A short answer.", "word " * 90_000)
        assert (categories(result)[-1], result.findings[-1].side) == ("text.too_long", "candidate")
        assert result.severity is Severity.BLOCK

    def test_floods_on_both_sides_are_not_scored(self) -> None:
        result = compared("word " * 90_000, "other " * 90_000)
        assert (categories(result), result.scored) == (["text.too_long"], False)


class TestNumbers:
    @pytest.mark.parametrize(
        ("old", "new"),
        [
            ("The fee is $42.10 for each visit", "The fee is $4210 for each visit"),
            ("Use an M8 bolt for this one", "Use an M10 bolt for this one"),
            ("It is -5 degrees outside right now", "It is 5 degrees outside right now"),
            ("Wait for three days and ask again", "Wait for five days and ask again"),
            ("Install version 2.1.3 before you start", "Install version 2.1.4 before you start"),
            ("It holds 5 million litres of water", "It holds 5 thousand litres of water"),
            ("The pier is open from 9", "The pier is open in the morning"),
            ("About 25 percent are here by now", "About twenty-six percent are here by now"),
        ],
    )
    def test_another_number_is_blocked(self, old: str, new: str) -> None:
        result = compared(old, new)
        assert (categories(result), result.severity) == (["text.number"], Severity.BLOCK)

    @pytest.mark.parametrize(
        ("old", "new"),
        [
            ("It will take 3 days from now on", "It will take 3 weeks from now on"),
            ("The fee is $5 for each visit", "The fee is 5 euros for each visit"),
            ("It is 20 km from the pier", "It is 20 miles from the pier"),
            ("It is 20 \u00b0C in the water", "It is 20 \u00b0F in the water"),
        ],
    )
    def test_another_unit_is_blocked(self, old: str, new: str) -> None:
        assert categories(compared(old, new)) == ["text.unit"]

    @pytest.mark.parametrize(
        ("old", "new"),
        [
            ("The fee is $5 for every visit", "Each visit costs 5 dollars"),
            ("The fee is USD 5.00 for every visit", "Each visit costs $5"),
            ("It opens at 6:30 p.m. on every day", "Every day it opens at 18:30"),
            ("Wait for three days and ask again", "Ask again after 3 days"),
            ("It holds 5 million litres of water", "It holds 5,000,000 litres of water"),
            ("About 25% of them are here by now", "By now about twenty-five percent are here"),
            ("The two of them went home early", "They both went home early today"),
            ("Take 3-5 tablets on each day", "Take 3 to 5 tablets on each day"),
            ("It is due on March 3rd at noon", "It is due at noon on March 3"),
            ("It is 5km from here to there", "It is 5 kilometres from here to there"),
        ],
    )
    def test_the_same_number_in_other_words_is_not(self, old: str, new: str) -> None:
        assert categories(compared(old, new)) == []

    def test_what_is_read_from_a_text(self) -> None:
        found = [
            (q.value, q.unit)
            for q in quantities(
                "-3 to 4.50 km, $1.2m, 7th, v2, 10.0.0.1 and twenty-one days", frozenset({"twenty"})
            )
        ]
        assert found == [
            ("-3", None),
            ("4.5", "km"),
            ("1200000", "dollar"),
            ("7", None),
            ("v2", None),
            ("10.0.0.1", None),
            ("21", "day"),
        ]


class TestNegation:
    @pytest.mark.parametrize(
        ("old", "new"),
        [
            ("The refund was approved by the bank.", "The refund was not approved by the bank."),
            ("It is safe for children under supervision.", "It isn't safe for children under supervision."),
            ("We can ship this parcel to Norway.", "We cannot ship this parcel to Norway."),
            ("Leave the engine on while you fill it.", "Never leave the engine on while you fill it."),
            ("Somebody has paid the invoice already.", "Nobody has paid the invoice already."),
        ],
    )
    def test_a_negation_on_one_side_is_blocked(self, old: str, new: str) -> None:
        for result in (compared(old, new), compared(new, old)):
            assert (categories(result), result.severity) == (["text.negation"], Severity.BLOCK)

    def test_it_is_found_in_the_middle_of_a_long_answer(self) -> None:
        lines = [
            f"Point {chr(97 + n)} speaks of the {w} at length."
            for n, w in enumerate(("pier", "boat", "bell", "rope"))
        ]
        changed = [
            *lines[:2],
            lines[2].replace("speaks", "does not speak"),
            "Let me know if you need more.",
            lines[3],
        ]
        assert categories(compared(" ".join(lines), " ".join(changed))) == ["text.negation"]

    @pytest.mark.parametrize(
        ("old", "new"),
        [
            ("Why isn't the old pier open today?", "Why is the old pier not open today?"),
            ("It's not possible to enter after dark.", "It isn't possible to enter after dark."),
            ("You cannot park here at night.", "You can't park here at night."),
            ("It is open on Monday but not on Sunday.", "It is open on Monday. It is not open on Sunday."),
            ("It is not only cheap but also very quick.", "It is cheap and it is also very quick."),
            ("No, the pier is closed on Sunday.", "The pier is closed on Sunday."),
        ],
    )
    def test_the_same_negation_in_other_words_is_not(self, old: str, new: str) -> None:
        assert categories(compared(old, new)) == []


class TestYesNo:
    @pytest.mark.parametrize(
        ("old", "new"),
        [
            ("Yes, it is open to everybody.", "No, it is open to members."),
            ("True", "False."),
            ("Correct.", "Incorrect."),
        ],
    )
    def test_opposite_openings_are_blocked_with_both_named(self, old: str, new: str) -> None:
        result = compared(old, new)
        assert categories(result)[0] == "text.yes_no"
        assert result.findings[0].message == "the baseline says yes, the candidate says no"
        assert compared(new, old).findings[0].message == "the baseline says no, the candidate says yes"

    @pytest.mark.parametrize(
        ("old", "new"),
        [
            ("Yes, it is open to everybody.", "Yeah it is open to everybody, as far as I know."),
            ("Right now the pier is open to everybody.", "No visitor pays for the open pier right now."),
        ],
    )
    def test_other_openings_are_not(self, old: str, new: str) -> None:
        assert "text.yes_no" not in categories(compared(old, new))
