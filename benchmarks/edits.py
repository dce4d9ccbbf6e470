"""One place of a text changed, or spelled differently: the edits that ``benchmarks.changes`` makes pairs of."""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random

Edit = Callable[[str, Random], tuple[str, str] | None]
"""From a text the two texts of a pair; ``None`` when it has no place for such a change."""
SENTENCE_END = re.compile(r"(?<=[.!?])\s+")


def replaced(
    text: str, pattern: re.Pattern[str], new: Callable[[re.Match[str]], str], chance: Random
) -> tuple[str, str] | None:
    """``text``, and ``text`` with one match, by chance, replaced."""
    matches = list(pattern.finditer(text))
    if not matches:
        return None
    match = chance.choice(matches)
    return text, text[: match.start()] + new(match) + text[match.end() :]


def _swapping(table: dict[str, tuple[str, ...]], flags: re.RegexFlag = re.IGNORECASE) -> Edit:
    """Puts another word for one of the table's keys."""
    keys = sorted(table, key=len, reverse=True)
    parts = "|".join(re.escape(key) for key in keys)
    pattern = re.compile(rf"(?<![\w<>=-])(?:{parts})(?![\w<>=-])", flags)
    lower = {key.lower(): words for key, words in table.items()}

    def edit(text: str, chance: Random) -> tuple[str, str] | None:
        return replaced(
            text, pattern, lambda match: _like(match[0], chance.choice(lower[match[0].lower()])), chance
        )

    return edit


def _like(old: str, new: str) -> str:
    return new[:1].upper() + new[1:] if old[:1].isupper() and not old.isupper() else new


# Numbers.

_NUMBER = re.compile(r"(?<![\w.,:/$€£-])\d+(?:,\d{3})*(?:\.\d+)?(?![\w:/%-]|[.,]\d)")
_SPELLED = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_SPELLED_NUMBER = re.compile(rf"\b(?:{'|'.join(_SPELLED)})\b(?!-)")


def _number(text: str, chance: Random) -> tuple[str, str] | None:
    if chance.random() < 0.25 and _SPELLED_NUMBER.search(text):
        return replaced(
            text, _SPELLED_NUMBER, lambda m: chance.choice([w for w in _SPELLED if w != m[0]]), chance
        )
    return replaced(text, _NUMBER, lambda match: _other_number(match[0], chance), chance)


def _other_number(old: str, chance: Random) -> str:
    value = old.replace(",", "")
    options = [
        value + "0",
        str(int(value.partition(".")[0]) + 1),
        value[::-1].strip(".") if len(value) > 1 else "0",
    ]
    if "." in value:
        options.append(value.replace(".", ""))
    same = {float(value)}
    return chance.choice([one for one in options if float(one) not in same])


# Dates, times, units, money.

_MONTHS = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]
_DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
_DATE_FORMS = (
    "{y}-{m:02}-{d:02}",
    "{month} {d}, {y}",
    "{d} {month} {y}",
    "{mon} {d}, {y}",
    "the {d}{th} of {month} {y}",
    "{month} {d}{th}",
    "{y}/{m:02}/{d:02}",
)
_TIME_FORMS = ("{h:02}:{n:02}", "{h12}:{n:02} {ap}m", "{h12}:{n:02} {ap}.m.", "{h12}:{n:02}{AP}M")


def _written(form: str, day: tuple[int, int, int]) -> str:
    y, m, d = day
    th = "th" if 10 < d < 14 else {1: "st", 2: "nd", 3: "rd"}.get(d % 10, "th")
    return form.format(y=y, m=m, d=d, th=th, month=_MONTHS[m - 1], mon=_MONTHS[m - 1][:3])


def _clock(form: str, minute: int) -> str:
    h, n = divmod(minute, 60)
    ap = "p" if h >= 12 else "a"
    return form.format(h=h, n=n, h12=(h + 11) % 12 + 1, ap=ap, AP=ap.upper())


def _day(chance: Random) -> tuple[int, int, int]:
    return chance.randint(1990, 2030), chance.randint(1, 12), chance.randint(1, 28)


def _another_day(day: tuple[int, int, int], chance: Random, year: bool) -> tuple[int, int, int]:
    y, m, d = day
    options = [(y, m % 12 + 1, d), (y, m, d % 28 + 1)] + [(y + 1, m, d)] * year
    return chance.choice(options)


def _added(text: str, phrase: str) -> str:
    """The text with a phrase at its end, before the closing mark."""
    body = text.rstrip(".!?")
    return f"{body} {phrase}{text[len(body) :] or '.'}"


def _date(text: str, chance: Random) -> tuple[str, str] | None:
    if chance.random() < 0.3:
        days = {name: tuple(day for day in _DAYS if day != name) for name in _DAYS}
        months = {
            name: tuple(month for month in _MONTHS if month != name)
            for name in _MONTHS
            if name not in ("May", "March")
        }
        return _swapping(days | months, re.RegexFlag(0))(text, chance)
    form, day = chance.choice(_DATE_FORMS), _day(chance)
    other = _another_day(day, chance, "{y}" in form)
    lead = "" if form.startswith("the") else "on "
    lead = "on " if lead or form.startswith("the") else lead
    return _added(text, lead + _written(form, day)), _added(text, lead + _written(form, other))


def _date_spelled(text: str, chance: Random) -> tuple[str, str]:
    day = _day(chance)
    one, two = chance.sample([form for form in _DATE_FORMS if "{y}" in form], 2)
    return _added(text, "on " + _written(one, day)), _added(text, "on " + _written(two, day))


def _time(text: str, chance: Random) -> tuple[str, str]:
    minute, form = 5 * chance.randint(0, 287), chance.choice(_TIME_FORMS)
    other = (minute + chance.choice((5, 60, 720))) % 1440
    return _added(text, "at " + _clock(form, minute)), _added(text, "at " + _clock(form, other))


def _time_spelled(text: str, chance: Random) -> tuple[str, str]:
    minute = 5 * chance.randint(0, 287)
    one, two = chance.sample(_TIME_FORMS, 2)
    return _added(text, "at " + _clock(one, minute)), _added(text, "at " + _clock(two, minute))


_UNIT_GROUPS = (
    "seconds minutes hours days weeks months years",
    "inches feet yards miles kilometers meters centimeters",
    "grams kilograms pounds ounces tons",
    "liters gallons milliliters cups",
    "mph km/h",
    "celsius fahrenheit",
    "dozen hundred thousand million",
    "kg lb g",
    "km m mi cm",
    "KB MB GB TB",
)
_UNIT_RIVALS = {
    unit: tuple(other for other in group.split() if other != unit)
    for group in _UNIT_GROUPS
    for unit in group.split()
}
_AFTER_NUMBER = re.compile(
    rf"(?<=\d )(?:{'|'.join(sorted(map(re.escape, _UNIT_RIVALS), key=len, reverse=True))})\b", re.IGNORECASE
)


def _unit(text: str, chance: Random) -> tuple[str, str] | None:
    return replaced(text, _AFTER_NUMBER, lambda match: chance.choice(_UNIT_RIVALS[_known(match[0])]), chance)


def _known(unit: str) -> str:
    return unit if unit in _UNIT_RIVALS else unit.lower()


_UNITS_SPELLED = {
    "kilometers": ("km", "kilometres"),
    "meters": ("m", "metres"),
    "kilograms": ("kg", "kilos"),
    "grams": ("g",),
    "minutes": ("min", "mins"),
    "hours": ("hrs", "h"),
    "pounds": ("lbs", "lb"),
    "ounces": ("oz",),
    "inches": ("in.", "inch"),
    "feet": ("ft",),
    "percent": ("%", "per cent"),
    "liters": ("l", "litres"),
    "seconds": ("s", "sec"),
    "miles": ("mi",),
}
_SPELLABLE = re.compile(rf"(?<=\d )(?:{'|'.join(_UNITS_SPELLED)})\b")
_MONEY = re.compile(r"\$(\d+(?:,\d{3})*(?:\.\d+)?)(?![\d.]*\s?(?:million|billion|[kKmMbB]\b))")


def _unit_spelled(text: str, chance: Random) -> tuple[str, str] | None:
    return replaced(text, _SPELLABLE, lambda match: chance.choice(_UNITS_SPELLED[match[0]]), chance)


def _currency(text: str, chance: Random) -> tuple[str, str] | None:
    options = ("€{}", "£{}", "¥{}", "{} euros", "{} GBP", "CHF {}", "{} rupees")
    return replaced(text, _MONEY, lambda match: chance.choice(options).format(match[1]), chance)


def _currency_spelled(text: str, chance: Random) -> tuple[str, str] | None:
    options = ("{} dollars", "USD {}", "{} USD", "US${}", "{}$")
    return replaced(text, _MONEY, lambda match: chance.choice(options).format(match[1]), chance)


# Who does what to whom.

_NAME = r"\b(?<![A-Z][a-z]{2} )([A-Z][a-z]{2,})\b(?!'| [A-Z])"
_ROLE = re.compile(rf"{_NAME}( [^.,;:!?()\"A-Z]{{3,80}} ){_NAME}")
_ALIKE = re.compile(r"\b(?:and|or|nor|with|same|met|meets|married|between|versus|vs|both|of|in|at|the)\b|&")
"""Words between two names that may change places without a change of meaning, or that belong to one name."""
_NO_NAMES = re.compile(
    r"""(?x) If|The|How|What|When|Where|Who|Which|Why|Can|Could|Would|Please|Find|Get|Give|Tell|Show|Each|Every|Some|Then
    |There|This|That|They|She|Her|His|Its|For|From|After|Before|During|While|And|But|One|Two|Three|Four|Five|Six|Seven|Eight
    |Nine|Ten|Calculate|Determine|Check|Help|Play|Book|Let|Now|Today|Since|Also|Both|Suppose|Imagine|Assume|Explain|Describe
    |Given|Write|Are|Does|Did|Was|Were|Has|Have|Had|Will|Hence|Thus|You|Your|Compare|Order|Schedule|Convert|List|Add|All|Half
    |First|Second|Third|Last|Next|Another|Other|Search|Set|Send|Turn|Make|Create|Update|Want|Need|Our|Their|Only|Out|Once
    |\w+day|\w+ly|\w+ing|January|February|March|April|May|June|August|September|October|November|December|Christmas|Mrs
    |Miss|Because|However|Therefore|Together|Total|Using|Use|Number|Consider|Include|Within|Under|Over|English|French|Spanish|Python|Java
    |Facebook|Instagram|Pokemon|Shop|Start|Drop|Cold|Warm|Day|Chair|Rug|Fridays|Tickets|Easter|Celsius|Math|Karate|\w+days"""
)
_ACTS = (
    "pays",
    "owes",
    "trusts",
    "called",
    "wrote to",
    "is taller than",
    "works for",
    "teaches",
    "won against",
    "followed",
)


def _role(text: str, chance: Random) -> tuple[str, str] | None:
    """Two names that stand once each change places; now and then in a made sentence before the text."""
    for match in _ROLE.finditer(text):
        one, middle, two = match.groups()
        if _ALIKE.search(middle) or not (_name(one, text) and _name(two, text)) or one == two:
            continue
        if chance.random() < 0.2:
            act = chance.choice(_ACTS)
            return f"{one} {act} {two}. {text}", f"{two} {act} {one}. {text}"
        return text, text[: match.start()] + two + middle + one + text[match.end() :]
    return None


def _name(word: str, text: str) -> bool:
    return text.count(word) == 1 and not _NO_NAMES.fullmatch(word)


# Comparisons.

_OPERATORS: dict[str, tuple[str, ...]] = {
    "at least": ("more than", "at most", "less than"),
    "at most": ("less than", "at least", "more than"),
    "more than": ("at least", "less than", "at most"),
    "less than": ("more than", "at most", "at least"),
    "fewer than": ("more than", "at most"),
    "greater than": ("less than", "greater than or equal to"),
    "no more than": ("more than", "less than"),
    "before": ("after",),
    "after": ("before",),
    "above": ("below",),
    "below": ("above",),
    "older than": ("younger than",),
    "younger than": ("older than",),
    "higher than": ("lower than",),
    "longer than": ("shorter than",),
    "up to": ("at least", "more than"),
    "under": ("over",),
    "until": ("after",),
    "exactly": ("at least", "at most"),
}
_SIGNS = (">", ">=", "<", "<=", "==", "!=")
_LETTERS = "nxkt"


def _operator(text: str, chance: Random) -> tuple[str, str] | None:
    if chance.random() < 0.2:
        one, two = chance.sample(_SIGNS, 2)
        name, value = chance.choice(_LETTERS), chance.randint(2, 99)
        return _added(text, f"if {name} {one} {value}"), _added(text, f"if {name} {two} {value}")
    return _swapping(_OPERATORS)(text, chance)


_OPERATORS_SPELLED: dict[str, tuple[str, ...]] = {
    "at least": ("no less than", "no fewer than", "a minimum of"),
    "at most": ("no more than", "a maximum of", "up to"),
    "no more than": ("at most",),
    "greater than": ("more than", "larger than"),
    "fewer than": ("less than",),
    "up to": ("at most",),
    "before": ("prior to",),
}
_NUMBER_WORDS = {
    "1,000": "one thousand",
    "2,000": "two thousand",
    "100": "one hundred",
    "20": "twenty",
    "50": "fifty",
    "5": "five",
    "3": "three",
    "12": "twelve",
    "25": "twenty-five",
    "10": "ten",
}


def _number_spelled(text: str, chance: Random) -> tuple[str, str] | None:
    edit = _swapping({digits: (word,) for digits, word in _NUMBER_WORDS.items()})
    return edit(text, chance) if not re.search(r"\d[.,/:%-]?\d|[$€£]\d", text) else None


ALTERED: dict[str, Edit] = {
    "number": _number,
    "date": _date,
    "time": _time,
    "unit": _unit,
    "currency": _currency,
    "role": _role,
    "operator": _operator,
}
RESPELLED: dict[str, Edit] = {
    "number": _number_spelled,
    "date": _date_spelled,
    "time": _time_spelled,
    "unit": _unit_spelled,
    "currency": _currency_spelled,
    "operator": _swapping(_OPERATORS_SPELLED),
}
