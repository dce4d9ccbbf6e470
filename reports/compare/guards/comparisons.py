"""Comparisons and bounds: "at least 5" is not "more than 5", and "before dinner" not "after dinner"."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from reports.compare.guards.units import WORDS
from reports.compare.model import both
from reports.compare.normal import Plain
from reports.judgement import Finding, Severity

_AMOUNT, _TIME = "amount", "time"
MORE, LESS, LEAST, MOST = "more than", "less than", "at least", "at most"
BEFORE, AFTER = "before", "after"

Meaning = tuple[str, str]
"""What is compared (an axis), and how."""

_OPPOSITES = """older/younger taller/shorter longer/shorter faster/slower quicker/slower heavier/lighter hotter/colder
warmer/cooler wider/narrower closer/farther nearer/further better/worse stronger/weaker richer/poorer harder/easier
deeper/shallower thicker/thinner louder/quieter brighter/darker"""
_COMPARATIVES: dict[str, Meaning] = {
    **dict.fromkeys(("more", "greater", "higher", "larger", "bigger"), (_AMOUNT, MORE)),
    **dict.fromkeys(("less", "fewer", "lower", "smaller"), (_AMOUNT, LESS)),
    **dict.fromkeys(("earlier", "sooner"), (_TIME, BEFORE)),
    "later": (_TIME, AFTER),
    "other": (_AMOUNT, "other than"),
} | {word: (pair, word) for pair in _OPPOSITES.split() for word in pair.split("/")}
"""By the word before "than"."""
_PHRASES: dict[str, Meaning] = {
    **dict.fromkeys(("at least", "minimum of"), (_AMOUNT, LEAST)),
    **dict.fromkeys(("at most", "maximum of", "up to", "not exceeding"), (_AMOUNT, MOST)),
    **dict.fromkeys(("above", "over", "exceeding", "in excess of"), (_AMOUNT, MORE)),
    **dict.fromkeys(("below", "under"), (_AMOUNT, LESS)),
    **dict.fromkeys(("exactly", "precisely", "equal to"), (_AMOUNT, "exactly")),
    **dict.fromkeys(("before", "prior to", "ahead of", "until", "till"), (_TIME, BEFORE)),
    "after": (_TIME, AFTER),
}
_SIGNS: dict[str, Meaning] = {
    ">": (_AMOUNT, MORE),
    "<": (_AMOUNT, LESS),
    ">=": (_AMOUNT, LEAST),
    "<=": (_AMOUNT, MOST),
    "=": (_AMOUNT, "exactly"),
    "==": (_AMOUNT, "exactly"),
    "===": (_AMOUNT, "exactly"),
    "!=": (_AMOUNT, "other than"),
}
_BEHIND: dict[str, Meaning] = {
    **dict.fromkeys(("more", "higher", "greater", "above", "up", "later"), (_AMOUNT, LEAST)),
    **dict.fromkeys(("less", "fewer", "lower", "below", "under"), (_AMOUNT, MOST)),
}
"""By the word after "or" or "and", behind what is bounded: "5 or more"."""
_DENIED = {MORE: MOST, LESS: LEAST, LEAST: LESS, MOST: MORE, BEFORE: AFTER, AFTER: BEFORE}
"""What "no" or "not" before a comparison makes of it."""
_INCLUSIVE = {MORE: LEAST, LESS: MOST}

# Each pattern begins with letters, so that it is found fast; what stands before is looked at then.
_THAN = re.compile(r"than\b( or equal to\b)?")
_PHRASE = re.compile(
    "|".join(rf"{one[0]}(?<!\w.){one[1:]}\b" for one in sorted(_PHRASES, key=len, reverse=True))
)
_OR_MORE = re.compile(rf"(?:or|and) ({'|'.join(_BEHIND)})\b(?! than)")
_SIGN = re.compile(r"[<>=!](?<![<>=!-].)=?=?(?![<>=])(?= ?[\d\w$€£-])")
_OPERAND = re.compile(
    r"(?:\W{0,3}(?:the|a|an|his|her|its|their|my|your|our|this|that|of|or|to|is|about|around)\b){0,3}\W{0,3}(\w+(?:\.\d+)?)"
)
_LAST = re.compile(r"(\w+)\W{0,3}\Z")
_STEM = 5


def guard_comparisons(baseline: Plain, candidate: Plain) -> Finding | None:
    """BLOCK when one thing is compared otherwise: on each side an operator before the same word that the other has not."""
    old, new = _grouped(baseline), _grouped(candidate)
    for key, was in old.items():
        now = new.get(key, was)
        if was == now:
            continue
        gone, come = sorted(was - now), sorted(now - was)
        if gone and come:
            with_what = f' with "{key[1]}"' if key[1] else ""
            return Finding(
                comparator="text",
                category="text.comparison",
                severity=Severity.BLOCK,
                message=f"comparisons{with_what} differ: baseline {', '.join(gone)}, candidate {', '.join(come)}",
                evidence=both(baseline.text, candidate.text),
            )
    return None


def _grouped(plain: Plain) -> dict[tuple[str, str], Counter[str]]:
    """How often each thing is compared how, by axis and thing."""
    found: dict[tuple[str, str], Counter[str]] = {}
    for (axis, how), operand in _comparisons(plain.prose.lower(), plain.words):
        found.setdefault((axis, operand), Counter())[how] += 1
    return found


def _comparisons(text: str, words: frozenset[str]) -> Iterator[tuple[Meaning, str]]:
    if "than" in words:
        for match in _THAN.finditer(text):
            before = text[max(0, match.start() - 24) : match.start()].split()[-2:]
            meaning = _COMPARATIVES.get(before[-1]) if before else None
            if meaning:
                axis, how = meaning
                how = _INCLUSIVE.get(how, how) if match[1] else how
                yield (axis, _denied(how, before[0])), _behind(text, match.end())
    for match in _PHRASE.finditer(text):
        axis, how = _PHRASES[match[0]]
        before = text[max(0, match.start() - 8) : match.start()].split()[-1:]
        yield (axis, _denied(how, *before)), _behind(text, match.end())
    if not words.isdisjoint(_BEHIND):
        for match in _OR_MORE.finditer(text):
            if word := _LAST.search(text, max(0, match.start() - 24), match.start()):
                yield _BEHIND[match[1]], _stem(word[1])
    if "<" in text or ">" in text or "=" in text:
        for match in _SIGN.finditer(text):
            if meaning := _SIGNS.get(match[0]):
                yield meaning, _behind(text, match.end())


def _denied(how: str, before: str = "") -> str:
    return _DENIED.get(how, how) if before in ("no", "not") else how


def _behind(text: str, at: int) -> str:
    """The stem of the word that is compared with; empty at the end of a text."""
    word = _OPERAND.match(text, at, at + 80)
    return _stem(word[1]) if word else ""


def _stem(word: str) -> str:
    """Numbers as they are written in digits."""
    return str(WORDS[word]) if word in WORDS else word[:_STEM]
