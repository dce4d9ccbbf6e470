"""The letter that answers a multiple-choice question."""

from __future__ import annotations

import re

from reports.compare.model import both
from reports.compare.normal import Plain
from reports.judgement import Finding, Severity

_WHOLE = re.compile(r"\A\W*(?:(?:final )?answer|option|choice)?\W*([A-J])\W*\Z", re.IGNORECASE)
_HEAD = re.compile(r"\A[\W]{0,3}([A-J])(?:[).:\]]|\)?\.)\s")
_LETTER = re.compile(r"\(?([A-J])\)?\Z")
_SAID = re.compile(
    r"(?:[Aa]nswer|ANSWER|[Aa]ntwort|[Rr]éponse|[Rr]espuesta|答案|(?:[Cc]orrect|[Rr]ight|[Bb]est) (?:option|choice|one)"
    r"|[Cc]hoose|[Pp]ick|[Ss]elect)"
    r"(?: (?:is|ist|est|es)|是|为)?[:\s\uff1a]{0,3}(?:[Oo]ption |[Cc]hoice )?[(\[\"']{0,2}([A-J])(?![\w'])"
    r"(?=[)\]\"'.,;:!?]|\s+(?:because|since|as|is|-|\()|\W*\Z)"
)
_SHORT = 40
_HINTS = frozenset("answer correct right best choose pick select antwort réponse respuesta".split())  # noqa: SIM905


def guard_choices(baseline: Plain, candidate: Plain) -> Finding | None:
    """BLOCK when both answers choose a letter, and not the same."""
    old, new = choice(baseline), choice(candidate)
    if old is None or new is None or old == new:
        return None
    return Finding(
        comparator="text",
        category="text.choice",
        severity=Severity.BLOCK,
        message=f"the baseline chooses {old}, the candidate {new}",
        evidence=both(baseline.text, candidate.text),
    )


def choice(plain: Plain) -> str | None:
    """The letter that a text chooses, as in "B", "(B) Paris", or the last "the answer is (B)"; ``None`` without one."""
    text = plain.prose
    if len(text) <= _SHORT and (whole := _WHOLE.match(text)):
        return whole[1].upper()
    said = _SAID.findall(text) if not (plain.words.isdisjoint(_HINTS) and text.isascii()) else ()
    if said:
        return str(said[-1])
    first = plain.sentences[0] if plain.sentences else ""
    head = _HEAD.match(text) or _LETTER.match(first)
    return head[1] if head else None
