"""The language and the script of an answer, and letters of another script that slipped into it."""

from __future__ import annotations

import re
import unicodedata

from reports.compare.model import both, odd_one
from reports.compare.normal import Plain
from reports.judgement import Finding, Severity
from reports.language import language
from reports.script import script

_FOREIGN = re.compile("[\u0370-\u1fff\u2c00-\u2dff\u2e80-\ud7ff\uf900-\ufaff\ufe70-\ufefc\uff66-\uffdc]")
"""Characters beyond the Latin script."""
_FEW = 2


def guard_languages(baseline: Plain, candidate: Plain) -> Finding | None:
    """BLOCK for another script or language; WARN where letters of another script stand on one side only."""
    if not (baseline.prose.isascii() and candidate.prose.isascii()):
        old, new = script(baseline.prose), script(candidate.prose)
        if old and new and old != new:
            return _finding(
                "text.script",
                Severity.BLOCK,
                f"the baseline is in {old} script, the candidate in {new}",
                baseline,
                candidate,
            )
    was, now = language(baseline.words), language(candidate.words)
    if was and now and was != now:
        return _finding(
            "text.language",
            Severity.BLOCK,
            f"the baseline is in {was}, the candidate in {now}",
            baseline,
            candidate,
        )
    return _slipped(baseline, candidate)


def _slipped(baseline: Plain, candidate: Plain) -> Finding | None:
    old, new = _foreign(baseline.prose), _foreign(candidate.prose)
    side = odd_one(bool(old - new), bool(new - old))
    if side is None:
        return None
    scripts = (old - new) | (new - old)
    message = f"letters of {', '.join(sorted(scripts))} script stand on the {side}'s side only"
    return _finding("text.mixed_script", Severity.WARN, message, baseline, candidate, side)


def _foreign(text: str) -> frozenset[str]:
    """Scripts beyond the Latin of which a text has letters, beside single ones as in formulas."""
    if text.isascii():
        return frozenset()
    letters = _FOREIGN.findall(text)
    if len(letters) < _FEW:
        return frozenset()
    names = (unicodedata.name(letter, "unknown").partition(" ")[0].lower() for letter in set(letters))
    return frozenset(names) - {"greek"}  # the letters of mathematics


def _finding(
    category: str, severity: Severity, message: str, baseline: Plain, candidate: Plain, side: str = "pair"
) -> Finding:
    return Finding(
        comparator="text",
        category=category,
        severity=severity,
        message=message,
        side=side,
        evidence=both(baseline.text, candidate.text),
    )
