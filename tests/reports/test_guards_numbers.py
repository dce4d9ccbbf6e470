"""Numbers with units and money: what was spelled otherwise, and what is otherwise."""

from __future__ import annotations

import pytest

from reports.compare.guards.numbers import guard_numbers
from reports.compare.guards.quantities import quantities
from reports.compare.normal import normalise


def found(old: str, new: str) -> str | None:
    finding, back = (
        guard_numbers(normalise(old), normalise(new)),
        guard_numbers(normalise(new), normalise(old)),
    )
    assert (finding is None) == (back is None)
    return None if finding is None else finding.category


def read(text: str) -> list[tuple[str, str | None]]:
    plain = normalise(text)
    return [(one.value, one.unit) for one in quantities(plain.prose, plain.words)]


class TestReading:
    @pytest.mark.parametrize(
        ("text", "value", "unit"),
        [
            ("1,000", "1000", None),
            ("one thousand", "1000", None),
            ("two hundred and fifty km", "250", "km"),
            ("a twenty-one-day trip", "21", "day"),
            ("5 dozen", "60", None),
            ("$1.2 million", "1200000", "dollar"),
            ("US$5", "5", "USD"),
            ("C$5", "5", "CAD"),
            ("EUR 5", "5", "EUR"),
            ("5 €", "5", "EUR"),
            ("£5bn", "5000000000", "GBP"),
            ("25 per cent", "25", "%"),
            ("20 degrees Celsius", "20", "°c"),
            ("20 °C", "20", "°c"),
            ("a 40-hour week", "40", "h"),
            ("-5", "-5", None),
            ("007", "7", None),
            ("0.50", "0.5", None),
            ("M8", "m8", None),
            ("3rd", "3", None),
            ("4K", "4000", None),
        ],
    )
    def test_a_number_has_one_value_and_one_unit(self, text: str, value: str, unit: str | None) -> None:
        assert read(f"it is {text} here") == [(value, unit)]

    def test_two_numbers_in_words_stay_two(self) -> None:
        assert read("two three and four") == [("2", None), ("3", None), ("4", None)]

    def test_one_alone_is_a_pronoun(self) -> None:
        assert read("the one that someone wants, often of some weight") == []


class TestUnits:
    @pytest.mark.parametrize(
        ("old", "new"),
        [
            ("add 3 cups of flour", "add 3 gallons of flour"),
            ("it runs 60 mph", "it runs 60 km/h"),
            ("add 5 km, then 5 km", "add 5 km, then 5 miles"),
            ("it costs C$5", "it costs A$5"),
            ("it weighs 5 lb", "it weighs 5 kg"),
            ("it costs ₹500", "it costs ¥500"),
        ],
    )
    def test_another_unit_is_blocked(self, old: str, new: str) -> None:
        assert found(old, new) == "text.unit"

    @pytest.mark.parametrize(
        ("old", "new"),
        [
            ("it takes 90 minutes", "it takes 1.5 hours"),
            ("it is 5 km away", "it is 5000 m away"),
            ("it costs 50 cents", "it costs $0.50"),
            ("it costs 5 pounds", "it costs £5"),
            ("it weighs 5 pounds", "it weighs 5 lb"),
            ("it costs $5", "it costs C$5"),
            ("it costs $5", "it costs 5"),
            ("60 miles per hour", "60 mph"),
        ],
    )
    def test_the_same_amount_is_not(self, old: str, new: str) -> None:
        assert found(old, new) is None

    def test_numbers_in_code_and_addresses_are_not_read(self) -> None:
        assert found("See http://a.example/v2 for it", "See http://b.example/v3 for it") is None
        assert found("Run\n```\nx = 1\n```", "Run\n```\nx = 2\n```") is None
