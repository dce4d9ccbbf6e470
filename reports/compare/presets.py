"""What the presets of a task take out of an answer: its last number, the letter it chose, its label, its code.

Each returns ``None`` when the answer holds no such thing. Time is linear in the text.
"""

from __future__ import annotations

import re
import textwrap
from fractions import Fraction

from reports.compare.guards import choices
from reports.compare.normal import normalise

_LONGEST_LABEL = 80
"""Characters beyond which a line is prose and no label."""
_LONGEST_NUMBER = 200
_HIGHEST_POWER = 99
_LONGEST_BASE = 20
"""Characters of a number that is raised to a power."""
_DIGITS = r"\d{1,3}(?:,\d{3}){1,12}(?!,?\d)(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+"
_EUROPEAN = r"\d{1,3}(?:\.\d{3}){1,12},\d+(?![\d,.]\d)|\d+,\d{1,2}(?![\d,]|\.\d)"
_NUMBER = re.compile(
    rf"""
    (?<![^\W_])(?<!\d\.)                                # neither within a word nor within a version
    (?:(?<![\w)\]}}%])(?P<minus>[-\u2212\u2013])[$€£¥]?)?
    (?:
        (?P<clock>\d{{1,3}}(?::\d\d){{1,2}})(?![\d:])
      | (?:(?P<ones>\d{{1,9}})\ )?(?P<over>\d{{1,18}})/(?P<under>\d{{1,18}})(?![\d/])
      | (?P<european>(?<!\d,)(?:{_EUROPEAN}))
      | (?P<digits>{_DIGITS})
        (?:[eE](?P<exponent>[-+]?\d{{1,3}})(?!\w|\.\d)|\^\{{?(?P<power>[-+]?\d{{1,4}})\}}?)?
    )
    (?:\ ?(?:[x\u00d7*\u00b7]|\\times|\\cdot)\ ?10\ ?\^\ ?\{{?(?P<tens>[-+]?\d{{1,3}})\}}?)?
    (?:\ (?P<word>thousand|million|billion|trillion)\b|(?P<letter>[kKMB]|bn)(?![^\W_]))?
    """,
    re.VERBOSE,
)
_FRACTION = re.compile(r"\\[dt]?frac\s?\{(-?\d{1,18})\}\s?\{(\d{1,18})\}")
_SUPERSCRIPT = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
_RAISED = re.compile(r"(?<=\d)[⁰¹²³⁴⁵⁶⁷⁸⁹⁻]{1,4}")
_NARROW = re.compile(r"(?<=\d)[\u00a0\u2009\u202f](?=\d{3}(?!\d))")
_SCALES = {
    "thousand": 3, "k": 3, "K": 3, "million": 6, "M": 6, "billion": 9, "bn": 9, "B": 9, "trillion": 12,
}  # fmt: skip

_HEAD = re.compile(r"\A\W*([A-Z])(?=[).:]|\s*[-\u2013\u2014]\s)")
_BRACKETED = re.compile(r"(?:(?<!\w)\(|\{)([A-Ja-j])[)}]")
_QUOTES = " \"'`()[]{}<>"


def last_number(text: str) -> Fraction | None:
    """The value of the last number: grouped or not, a fraction, a power of ten, "5k", "1,5 million" and "3:30" included.

    Units and currencies are not looked at.
    """
    for line in reversed(text.splitlines()):
        found = None
        for found in _NUMBER.finditer(_levelled(line)):  # noqa: B007 - the last one is used
            pass
        if found is not None:
            return _value(found)
    return None


def _levelled(line: str) -> str:
    line = _FRACTION.sub(r"\1/\2", _NARROW.sub("", line))
    return (
        line if line.isascii() else _RAISED.sub(lambda raised: "^" + raised[0].translate(_SUPERSCRIPT), line)
    )


def _value(found: re.Match[str]) -> Fraction | None:
    """``None`` for what no reader would take for a number."""
    if len(found[0]) > _LONGEST_NUMBER or (found["under"] and not int(found["under"])):
        return None
    value = _base(found)
    power = int(found["power"] or 1)
    if power != 1 and (not value or abs(power) > _HIGHEST_POWER or len(found[0]) > _LONGEST_BASE):
        return None
    scale = (
        int(found["exponent"] or 0)
        + int(found["tens"] or 0)
        + _SCALES.get(found["word"] or found["letter"], 0)
    )
    value = value**power * Fraction(10) ** scale
    return -value if found["minus"] else value


def _base(found: re.Match[str]) -> Fraction:
    if found["clock"]:
        parts = found["clock"].split(":")
        return sum((Fraction(int(part), 60**at) for at, part in enumerate(parts)), Fraction(0))
    if found["over"]:
        return int(found["ones"] or 0) + Fraction(int(found["over"]), int(found["under"]))
    if found["european"]:
        return Fraction(found["european"].replace(".", "").replace(",", "."))
    return Fraction(found["digits"].replace(",", ""))


def choice(text: str) -> str | None:
    """The letter chosen, in upper case: "B", the last "the answer is B", "B. Paris" in front, or the last "(B)"."""
    if stated := choices.choice(normalise(text)):
        return stated
    if head := _HEAD.match(text):
        return head[1]
    bracketed = _BRACKETED.findall(text)
    return bracketed[-1].upper() if bracketed else None


def label(text: str) -> str | None:
    """The whole answer without formatting, quotes and case; ``None`` for more than a line."""
    name = normalise(text.strip()).text.strip(_QUOTES).casefold()
    return name if 0 < len(name) <= _LONGEST_LABEL and "\n" not in text.strip() else None


def code_fence(text: str) -> str | None:
    """The content of the first fenced block that is closed, without white space at line ends and without its indentation."""
    fence = ""
    block: list[str] = []
    for line in text.splitlines():
        bare = line.strip()
        if not fence:
            fence = "`" * _run(bare, "`") or "~" * _run(bare, "~")
            block = []
        elif bare.startswith(fence) and not bare.strip(fence[0]):
            return textwrap.dedent("\n".join(block)).strip("\n")
        else:
            block.append(line.rstrip())
    return None


def _run(line: str, mark: str) -> int:
    """How many marks open a fence; 0 when they open none."""
    length = len(line) - len(line.lstrip(mark))
    return length if length >= 3 and mark not in line[length:] else 0
