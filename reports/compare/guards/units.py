"""Spellings of units, currencies and spelled-out numbers."""

from __future__ import annotations

_UNITS = {
    "%": "% percent pct",
    "ms": "ms millisecond milliseconds",
    "s": "s sec secs second seconds",
    "min": "min mins minute minutes",
    "h": "h hr hrs hour hours",
    "day": "day days",
    "week": "week weeks wk",
    "month": "month months",
    "year": "year years yr yrs",
    "mm": "mm millimetre millimetres millimeter millimeters",
    "cm": "cm centimetre centimetres centimeter centimeters",
    "m": "m metre metres meter meters",
    "km": "km kilometre kilometres kilometer kilometers",
    "inch": "inch inches",
    "ft": "ft foot feet",
    "mile": "mile miles mi",
    "mg": "mg milligram milligrams",
    "g": "g gram grams gramme grammes",
    "kg": "kg kilo kilos kilogram kilograms",
    "t": "tonne tonnes ton tons",
    "oz": "oz ounce ounces",
    "lb": "lb lbs pound pounds",
    "ml": "ml millilitre millilitres milliliter milliliters",
    "l": "l litre litres liter liters",
    "kb": "kb kilobyte kilobytes",
    "mb": "mb megabyte megabytes",
    "gb": "gb gigabyte gigabytes",
    "tb": "tb terabyte terabytes",
    "hz": "hz hertz",
    "w": "watt watts",
    "kw": "kw kilowatt kilowatts",
    "kwh": "kwh",
    "v": "volt volts",
    "°c": "°c celsius",
    "°f": "°f fahrenheit",
    "USD": "dollar dollars usd",
    "EUR": "euro euros eur",
    "GBP": "gbp sterling",
    "JPY": "yen jpy",
    "INR": "rupee rupees inr",
    "CHF": "franc francs chf",
    "cent": "cent cents",
}
_BY_SPELLING = {word: unit for unit, words in _UNITS.items() for word in words.split()}

CURRENCIES = {
    "$": "USD",
    "€": "EUR",
    "£": "GBP",
    "¥": "JPY",
    "₹": "INR",
    "USD": "USD",
    "EUR": "EUR",
    "GBP": "GBP",
    "JPY": "JPY",
    "INR": "INR",
    "CHF": "CHF",
}
"""Before a number."""

SCALES = {
    "k": 10**3,
    "K": 10**3,
    "thousand": 10**3,
    "M": 10**6,
    "million": 10**6,
    "bn": 10**9,
    "BN": 10**9,
    "B": 10**9,
    "billion": 10**9,
    "trillion": 10**12,
    "hundred": 10**2,
}
"""After a number; the letters only where they touch it."""

_SMALL = """two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen
eighteen nineteen twenty"""
WORDS = {word: value for value, word in enumerate(_SMALL.split(), start=2)} | {
    "thirty": 30,
    "forty": 40,
    "fifty": 50,
    "sixty": 60,
    "seventy": 70,
    "eighty": 80,
    "ninety": 90,
}
"""Lower case. "One" is left out: it is a pronoun as often as a number."""


def unit_of(word: str) -> str | None:
    """The unit or currency that a word behind a number names; ``None`` for any other word.

    Currency symbols count behind a number too ("5 €"). "Pounds" are taken for a weight unless £ or GBP says otherwise.
    """
    return CURRENCIES.get(word) or _BY_SPELLING.get(word.lower())
