"""Free text: equal but for formatting, then guards, then short answers; the rest is left to similarity."""

from __future__ import annotations

from replay.exchange import Choice
from reports.compare.guards import GUARDS
from reports.compare.guards.polarity import same_content
from reports.compare.model import SETTLED, Case, Step, both, odd_one, worst
from reports.compare.normal import Plain, normalise
from reports.judgement import Finding, Severity

LONGEST = 400_000
"""Characters beyond which a text is not looked into: no reader has an answer of that length."""
SHORT = 5
"""Answers of fewer words than this leave similarity nothing to go by: they have the same words or they differ."""


def compare_text(case: Case) -> Step:
    """EQUAL, NOTE or BLOCK where rules can tell, else the two texts for similarity to decide."""
    old, new = said(case.baseline), said(case.candidate)
    if old == new:
        return SETTLED
    if max(len(old), len(new)) > LONGEST:
        return _too_long(old, new)
    return compare_plain(normalise(old), normalise(new))


def said(choice: Choice) -> str:
    """What the user reads."""
    return choice.text or choice.refusal


def compare_plain(baseline: Plain, candidate: Plain) -> Step:
    """The same for normalised texts. The decision does not depend on which text is whose."""
    if baseline.key == candidate.key:
        return SETTLED
    if baseline.key.casefold() == candidate.key.casefold():
        return Step(findings=(_case(baseline, candidate),), settled=True)
    findings = tuple(found for guard in GUARDS if (found := guard(baseline, candidate)) is not None)
    if worst(findings) is Severity.BLOCK:
        return Step(findings=findings)
    if max(_words(baseline), _words(candidate)) < SHORT and not same_content(baseline.text, candidate.text):
        return Step(findings=(*findings, _short(baseline, candidate)))
    return Step(findings=findings, undecided=("\n".join(baseline.sentences), "\n".join(candidate.sentences)))


def _words(plain: Plain) -> int:
    """Words between spaces; a script without spaces counts two characters as one word."""
    wide = sum(char > "\u2e7f" for char in plain.text)
    return len(plain.text.split()) + wide // 2


def _too_long(old: str, new: str) -> Step:
    side = odd_one(len(old) > LONGEST, len(new) > LONGEST)
    finding = Finding(
        comparator="text",
        category="text.too_long",
        severity=Severity.BLOCK if side else Severity.NOTE,
        message=f"the answer has more than {LONGEST} characters: baseline {len(old)}, candidate {len(new)}",
        side=side or "pair",
        evidence=both(old, new),
    )
    return Step(findings=(finding,), settled=True, scored=side is not None)


def _case(baseline: Plain, candidate: Plain) -> Finding:
    message = "only upper and lower case differ"
    return _finding("text.case", Severity.NOTE, message, baseline, candidate)


def _short(baseline: Plain, candidate: Plain) -> Finding:
    message = f"short answers (below {SHORT} words) differ"
    return _finding("text.short", Severity.BLOCK, message, baseline, candidate)


def _finding(category: str, severity: Severity, message: str, baseline: Plain, candidate: Plain) -> Finding:
    return Finding(
        comparator="text",
        category=category,
        severity=severity,
        message=message,
        evidence=both(baseline.text, candidate.text),
    )
