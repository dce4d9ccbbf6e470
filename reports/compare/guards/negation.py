"""A negation that one side has and the other has not, in sentences that otherwise say the same."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from reports.compare.model import both, excerpt
from reports.compare.normal import Plain
from reports.judgement import Finding, Severity

_WORD = re.compile(r"\w+(?:'\w+)?")
_CUE_WORDS = "not no never none nobody nothing nowhere neither without cannot unable isnt cant dont wont"
_FUNCTION_WORDS = """a an the is are was were be been being am do does did done has have had having will would shall
should can could may might must to of in on at by for from with and or but so as if then than that this these those it
its he she they we you i me my your his her their our us them there here"""
_CUES = frozenset(_CUE_WORDS.split())
_FUNCTION = frozenset(_FUNCTION_WORDS.split())
_STEM = 5
_WINDOW = 4
"""Sentences to either side of the proportional place that are looked at."""
_LIKE = 0.5
_VERY_LIKE = 0.8
"""Share of common stems from which two sentences speak of the same thing; the second where the texts negate equally
often, because one sentence may only have been cut in two."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sentence:
    text: str
    stems: frozenset[str]
    negations: int


def guard_negation(baseline: Plain, candidate: Plain) -> Finding | None:
    """BLOCK when the closest sentences of the two texts differ in how often they negate."""
    old, new = _read(baseline), _read(candidate)
    balance = sum(part.negations for part in old) == sum(part.negations for part in new)
    threshold = _VERY_LIKE if balance else 0.25 if len(old) == len(new) == 1 else _LIKE
    for one, two in _closest(old, new, threshold):
        if one.negations != two.negations:
            return _finding(one, two)
    for one, two in _closest(new, old, threshold):
        if one.negations != two.negations:
            return _finding(two, one)
    return None


def negations(words: Sequence[str]) -> int:
    """How often lower-case words negate: ``isn't`` and ``is not`` once, ``not only`` and an opening ``no,`` never."""
    return sum(
        word in _CUES or word.endswith("n't")
        for at, word in enumerate(words)
        if not (word == "not" and words[at + 1 : at + 2] == ["only"])
    )


def _read(plain: Plain) -> list[_Sentence]:
    return [_sentence(text) for text in plain.sentences]


def _sentence(text: str) -> _Sentence:
    words = _WORD.findall(text.lower())
    opening = 1 if words[:1] in (["no"], ["nope"]) and re.match(r"\W*\w+\s*(?:[,;:-]|\Z)", text[:40]) else 0
    stems = frozenset(
        word[:_STEM]
        for word in words
        if word not in _FUNCTION and word not in _CUES and not word.endswith("n't")
    )
    return _Sentence(text=text, stems=stems, negations=negations(words[opening:]))


def _closest(
    left: list[_Sentence], right: list[_Sentence], threshold: float
) -> Iterator[tuple[_Sentence, _Sentence]]:
    """Each sentence of ``left`` with its most similar one of ``right`` around the same place."""
    for at, one in enumerate(left):
        middle = at * len(right) // len(left)
        near = right[max(0, middle - _WINDOW) : middle + _WINDOW + 1]
        scored = [(_overlap(one.stems, two.stems), two) for two in near]
        best, two = max(scored, key=lambda pair: pair[0], default=(0.0, one))
        if best >= threshold:
            yield one, two


def _overlap(one: frozenset[str], two: frozenset[str]) -> float:
    union = len(one | two)
    return len(one & two) / union if union else 0.0


def _finding(old: _Sentence, new: _Sentence) -> Finding:
    side = "baseline" if old.negations > new.negations else "candidate"
    return Finding(
        comparator="text",
        category="text.negation",
        severity=Severity.BLOCK,
        message=f"a negation stands on the {side}'s side only: {excerpt(old.text if side == 'baseline' else new.text, 100)}",
        side=side,
        evidence=both(old.text, new.text),
    )
