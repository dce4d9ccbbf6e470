"""Choice letters and yes or no."""

from __future__ import annotations

import pytest

from reports.compare.guards.choices import choice
from reports.compare.guards.yes_no import polarity
from reports.compare.normal import normalise
from tests.reports.said import categories, compared


@pytest.mark.parametrize(
    ("text", "letter"),
    [
        ("B", "B"),
        ("(b)", "B"),
        ("**B**", "B"),
        ("B.", "B"),
        ("Answer: B", "B"),
        ("B) Paris", "B"),
        ("B. Paris is the capital", "B"),
        ("The answer is (B).", "B"),
        ("The correct answer is B because it is larger", "B"),
        ("Not A. So the answer is (C)", "C"),
        (r"\boxed{D}", "D"),
        ("The best option is C.", "C"),
        ("A good answer is hard to find", None),
        ("I think so", None),
        ("Plan B was better", None),
        ("Option A is cheap and option B is dear", None),
        ("I would choose option B.", "B"),
        ("The answer is A matter of taste", None),
        ("42", None),
    ],
)
def test_the_letter_that_is_chosen(text: str, letter: str | None) -> None:
    assert choice(normalise(text)) == letter


def test_another_letter_is_blocked_and_another_form_is_not() -> None:
    assert "text.choice" in categories(compared("The answer is (B).", "C"))
    assert "text.choice" not in categories(compared("The answer is (B).", "B) Paris, of course"))


@pytest.mark.parametrize(
    ("text", "yes"),
    [
        ("Ja, das geht.", True),
        ("Nein.", False),
        ("Sí, claro.", True),
        ("Oui.", True),
        ("Non, merci", False),
        ("Да.", True),
        ("Нет, это не так", False),
        ("はい、そうです。", True),
        ("いいえ。", False),
        ("是的。", True),
        ("不是。", False),
        ("Não.", False),
        ("The answer is no.", False),
        ("Answer: yes", True),
        ("Ja ist das Wort", None),
        ("是一个词", None),
        ("No visitor pays", None),
    ],
)
def test_yes_and_no_in_several_languages(text: str, yes: bool | None) -> None:
    assert polarity(normalise(text).text) is yes
