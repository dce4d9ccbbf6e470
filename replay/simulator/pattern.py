"""A text that matches a simple regular expression: literals, classes, groups, alternatives and counts."""

from __future__ import annotations

import random
import re

from replay.simulator import chance

_CLASSES = {
    "d": "0123456789",
    "w": "abcdefghijkmnpqrstuvwxyz0123456789_",
    "s": " ",
    "D": "ab",
    "W": "-",
    "S": "ab1",
}
_ANY = "abcdefghijklmnopqrstuvwxyz"
_COUNT = re.compile(r"\{(\d*)(,?)(\d*)\}")
_MOST = 64
"""Repetitions are bounded: a pattern of ten thousand letters is nobody's tool argument."""


def matching(expression: str, rng: random.Random) -> str | None:
    """A text in which ``expression`` is found; ``None`` where that is beyond us (look-around, references)."""
    try:
        compiled = re.compile(expression)
        text, rest = _alternatives(expression, rng)
    except (re.error, ValueError, IndexError, RecursionError):
        return None
    return text if not rest and compiled.search(text) else None


def _alternatives(source: str, rng: random.Random) -> tuple[str, str]:
    """Text for everything up to an unmatched closing bracket, and the source from there on."""
    options: list[str] = []
    while True:
        text, source = _sequence(source, rng)
        options.append(text)
        if not source.startswith("|"):
            return chance.pick(rng, tuple(options)), source
        source = source[1:]


def _sequence(source: str, rng: random.Random) -> tuple[str, str]:
    text = ""
    while source and source[0] not in "|)":
        if source[0] in "^$":
            source = source[1:]
            continue
        start = source
        _, source = _atom(source, rng)
        low, high, source = _repeats(source)
        for _ in range(chance.between(rng, low, high)):
            text += _atom(start, rng)[0]
    return text, source


def _atom(source: str, rng: random.Random) -> tuple[str, str]:
    head = source[0]
    if head == "(":
        inner = source[1:].removeprefix("?:")
        if inner.startswith("?"):
            raise ValueError("groups with flags or look-around are not generated")
        text, rest = _alternatives(inner, rng)
        return text, rest[1:]
    if head == "[":
        return _from_class(source, rng)
    if head == "\\":
        return chance.pick(rng, tuple(_CLASSES.get(source[1], source[1]))), source[2:]
    return (chance.pick(rng, tuple(_ANY)) if head == "." else head), source[1:]


def _from_class(source: str, rng: random.Random) -> tuple[str, str]:
    end = 2 if source[1] == "]" else 1
    while source[end] != "]":
        end += 2 if source[end] == "\\" else 1
    allowed = re.compile(source[: end + 1])
    letters = tuple(letter for letter in map(chr, range(32, 127)) if allowed.fullmatch(letter))
    return chance.pick(rng, letters), source[end + 1 :]


def _repeats(source: str) -> tuple[int, int, str]:
    """Lowest and highest count of the atom before ``source``, and what follows the count."""
    simple = {"?": (0, 1), "*": (0, 3), "+": (1, 4)}
    if source[:1] in simple and source:
        low, high = simple[source[0]]
        return low, high, source[1:].removeprefix("?")
    if match := _COUNT.match(source):
        low = int(match[1] or 0)
        high = int(match[3]) if match[3] else (low + 3 if match[2] else low)
        return min(low, _MOST), min(high, _MOST), source[match.end() :].removeprefix("?")
    return 1, 1, source
