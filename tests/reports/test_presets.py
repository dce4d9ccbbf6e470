"""What the presets take out of an answer."""

from __future__ import annotations

import time
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from reports.compare.presets import choice, code_fence, label, last_number
from tests.reports.hostile import HOSTILE


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("She has 3 left and makes 2 * 9 = $18 a day.\n#### 18", "18"),
        ("A: 18.0", "18"),
        ("**18**", "18"),
        (r"$\boxed{18}$", "18"),
        ("It comes to $1,234.50.", "1234.5"),
        ("one and 1\u202f234", "1234"),
        ("1,234,567 people", "1234567"),
        ("18,50 Euro", "18.5"),
        ("1.234,56 €", "1234.56"),
        ("3, 4, 5", "5"),
        ("3,4,5", "5"),
        ("between 10-15", "15"),
        ("it is -5", "-5"),
        ("it is \u22125 degrees", "-5"),
        ("-$5", "-5"),
        (".5", "0.5"),
        ("3/4", "3/4"),
        ("2 1/2 cups", "5/2"),
        (r"\frac{3}{4}", "3/4"),
        ("3:30 pm", "7/2"),
        ("5e3", "5000"),
        ("1e3.", "1000"),
        ("10^6", "1000000"),
        ("3.2 \u00d7 10⁸ m/s", "320000000"),
        (r"3 \times 10^{-2}", "0.03"),
        ("5k", "5000"),
        ("5 million", "5000000"),
        ("50 %", "50"),
    ],
)
def test_the_last_number_is_read_as_a_person_reads_it(text: str, value: str) -> None:
    assert last_number(text) == Fraction(value)


@pytest.mark.parametrize("text", ["none at all", "v1.2.3", "H2O", "1/0", "0^-1", "9" * 300, "10^999"])
def test_what_is_no_number_is_none(text: str) -> None:
    assert last_number(text) is None


@pytest.mark.parametrize(
    ("text", "letter"),
    [
        ("B", "B"),
        ("(b)", "B"),
        ("**B**.", "B"),
        ("B) Paris", "B"),
        ("B. Paris", "B"),
        ("B - Paris", "B"),
        ("The answer is (B).", "B"),
        ("The answer is A because B is too far.", "A"),
        ("At first the answer is A, it seems.\nBut no: the answer is C.", "C"),
        ("The correct option is D", "D"),
        ("Therefore the answer is:\n\n**E**", "E"),
        (r"$\boxed{\text{D}}$", "D"),
        ("Die Antwort ist C.", "C"),
        ("答案是B", "B"),
        ("I think so (C)", "C"),
        ("The answer is a list", None),
        ("The answer is Berlin", None),
        ("The answer is I think the first", None),
        ("A tidal wave of item(s)", None),
        ("Paris", None),
    ],
)
def test_the_letter_chosen(text: str, letter: str | None) -> None:
    assert choice(text) == letter


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Positive.", "positive"),
        (" **spam**\n", "spam"),
        ('"ham"', "ham"),
        ("not spam", "not spam"),
        ("two\nlines", None),
        ("word " * 30, None),
        (" ", None),
    ],
)
def test_a_label_is_a_short_line(text: str, name: str | None) -> None:
    assert label(text) == name


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("Try:\n```sql\nSELECT 1;  \n\n```\nIt gives 1.", "SELECT 1;"),
        ("~~~\na\n~~~", "a"),
        ("1. So:\n   ```py\n   def f():\n       pass\n   ```", "def f():\n    pass"),
        ("````md\n```\na\n```\n````", "```\na\n```"),
        ("```\nfirst\n```\n```\nsecond\n```", "first"),
        ("```\ncut off", None),
        ("SELECT 1;", None),
    ],
)
def test_the_first_closed_block_is_the_code(text: str, code: str | None) -> None:
    assert code_fence(text) == code


PRESETS: tuple[Callable[[str], Any], ...] = (last_number, choice, label, code_fence)
ENDLESS = (
    "1,111" * 40_000,
    "1/1/" * 40_000,
    "answer is " * 20_000,
    "```a\n" * 40_000,
    "(" * 200_000,
    "1 " * 90_000,
)


@pytest.mark.parametrize("preset", PRESETS, ids=lambda preset: preset.__name__)
def test_hostile_answers_neither_raise_nor_take_long(preset: Callable[[str], Any]) -> None:
    for text in (*HOSTILE.values(), *ENDLESS):
        begun = time.perf_counter()
        preset(text)
        assert time.perf_counter() - begun < 3, text[:40]
