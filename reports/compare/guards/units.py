"""Spellings of units, currencies and spelled-out numbers."""

from __future__ import annotations

from decimal import Decimal

_UNITS = {
    "%": "% percent pct",
    "ms": "ms millisecond milliseconds",
    "s": "s sec secs second seconds",
    "min": "min mins minute minutes",
    "h": "h hr hrs hour hours",
    "day": "day days",
    "week": "week weeks wk wks",
    "month": "month months",
    "year": "year years yr yrs",
    "mm": "mm millimetre millimetres millimeter millimeters",
    "cm": "cm centimetre centimetres centimeter centimeters",
    "m": "m metre metres meter meters",
    "km": "km kilometre kilometres kilometer kilometers kph kmh",
    "inch": "inch inches",
    "ft": "ft foot feet",
    "yd": "yd yds yard yards",
    "mile": "mile miles mi mph mpg",
    "acre": "acre acres",
    "ha": "ha hectare hectares",
    "mg": "mg milligram milligrams",
    "g": "g gram grams gramme grammes",
    "kg": "kg kgs kilo kilos kilogram kilograms",
    "t": "tonne tonnes ton tons",
    "oz": "oz ounce ounces",
    "lb": "lb lbs",
    "pound": "pound pounds",
    "ml": "ml millilitre millilitres milliliter milliliters",
    "cl": "cl centilitre centilitres centiliter centiliters",
    "l": "l litre litres liter liters",
    "tsp": "tsp teaspoon teaspoons",
    "tbsp": "tbsp tablespoon tablespoons",
    "cup": "cup cups",
    "pint": "pint pints",
    "quart": "quart quarts",
    "gal": "gal gallon gallons",
    "kb": "kb kilobyte kilobytes",
    "mb": "mb megabyte megabytes",
    "gb": "gb gigabyte gigabytes",
    "tb": "tb terabyte terabytes",
    "hz": "hz hertz",
    "mhz": "mhz megahertz",
    "ghz": "ghz gigahertz",
    "w": "watt watts",
    "kw": "kw kilowatt kilowatts",
    "kwh": "kwh",
    "v": "volt volts",
    "°c": "°c celsius",
    "°f": "°f fahrenheit",
    "dollar": "dollar dollars bucks",
    "USD": "usd",
    "EUR": "euro euros eur",
    "GBP": "gbp sterling quid",
    "yen": "yen",
    "JPY": "jpy",
    "CNY": "cny rmb yuan renminbi",
    "INR": "rupee rupees inr",
    "CHF": "franc francs chf",
    "CAD": "cad",
    "AUD": "aud",
    "SEK": "sek",
    "NOK": "nok",
    "DKK": "dkk",
    "PLN": "pln zloty",
    "BRL": "brl reais",
    "MXN": "mxn pesos",
    "KRW": "krw won",
    "RUB": "rub rouble roubles ruble rubles",
    "cent": "cent cents",
}
_BY_SPELLING = {word: unit for unit, words in _UNITS.items() for word in words.split()}

CURRENCIES = {
    "$": "dollar",
    "US$": "USD",
    "C$": "CAD",
    "A$": "AUD",
    "€": "EUR",
    "£": "GBP",
    "¥": "yen",
    "₹": "INR",
    "₩": "KRW",
    "₽": "RUB",
} | {code: code for code in "USD EUR GBP JPY CNY INR CHF CAD AUD SEK NOK DKK PLN BRL MXN KRW RUB".split()}  # noqa: SIM905
"""As they stand before a number."""

SCALES = {
    "k": 10**3,
    "thousand": 10**3,
    "m": 10**6,
    "million": 10**6,
    "bn": 10**9,
    "b": 10**9,
    "billion": 10**9,
    "trillion": 10**12,
    "hundred": 10**2,
    "dozen": 12,
}
"""After a number; the letters only where they touch it."""

_SMALL = """one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen
eighteen nineteen"""
WORDS = {word: value for value, word in enumerate(_SMALL.split(), start=1)} | {
    "twenty": 20,
    "thirty": 30,
    "forty": 40,
    "fifty": 50,
    "sixty": 60,
    "seventy": 70,
    "eighty": 80,
    "ninety": 90,
}
"""Lower case. "One" by itself is a pronoun as often as a number."""

_WIDER = {"dollar": ("USD", "CAD", "AUD"), "pound": ("lb", "GBP"), "yen": ("JPY", "CNY")}
"""Words and signs that several units go by."""
_BASES: dict[str, tuple[str, Decimal]] = {
    unit: (base, Decimal(factor))
    for base, units in {
        "s": {"ms": "0.001", "s": "1", "min": "60", "h": "3600"},
        "day": {"day": "1", "week": "7"},
        "month": {"month": "1", "year": "12"},
        "m": {"mm": "0.001", "cm": "0.01", "m": "1", "km": "1000"},
        "inch": {"inch": "1", "ft": "12", "yd": "36"},
        "g": {"mg": "0.001", "g": "1", "kg": "1000", "t": "1000000"},
        "l": {"ml": "0.001", "cl": "0.01", "l": "1"},
        "cent": {"cent": "1", "dollar": "100", "USD": "100"},
    }.items()
    for unit, factor in units.items()
}


def unit_of(word: str) -> str | None:
    """The unit or currency that a word behind a number names; ``None`` for any other word."""
    return CURRENCIES.get(word) or _BY_SPELLING.get(word.lower())


def may_be_same(one: str, two: str) -> bool:
    """Whether two units may be one: "pounds" are a weight or money, "$" is any dollar."""
    return one == two or two in _WIDER.get(one, ()) or one in _WIDER.get(two, ())


def in_base(value: str, unit: str | None) -> tuple[Decimal, str] | None:
    """The amount in the smallest unit of its kind, so that 1.5 h is 90 min; ``None`` where none is known."""
    if unit not in _BASES or len(value) > 15:
        return None
    base, factor = _BASES[unit]
    try:
        return Decimal(value) * factor, base
    except ArithmeticError:
        return None
