"""Characters that no writer puts into an answer: replacement characters, and UTF-8 that was read as something else."""

from __future__ import annotations

import re

from reports.compare.model import both, odd_one
from reports.compare.normal import Plain
from reports.judgement import Finding, Severity

_BROKEN = re.compile(
    r"\ufffd|\u00c3[\u0080-\u00bf\u0192\u2020-\u203a\u20ac]|\u00e2\u20ac[\u0080-\u00ff\u0152-\u0178\u02dc\u2013-\u2122\"']|\u00f0\u0178"
)
"""U+FFFD, and how an accented letter, a curly quote or a picture begins that was read as Latin-1 or Windows-1252."""


def guard_characters(baseline: Plain, candidate: Plain) -> Finding | None:
    """BLOCK when one side alone holds characters that were broken on the way."""
    if baseline.text.isascii() and candidate.text.isascii():
        return None
    old, new = _BROKEN.search(baseline.text), _BROKEN.search(candidate.text)
    side = odd_one(old is not None, new is not None)
    broken = old or new
    if side is None or broken is None:
        return None
    text = baseline.text if side == "baseline" else candidate.text
    around = text[max(0, broken.start() - 40) : broken.end() + 40]
    return Finding(
        comparator="text",
        category="text.broken_characters",
        severity=Severity.BLOCK,
        message=f"characters were broken on the {side}'s side: {broken[0]!a}",
        side=side,
        evidence=both(around, candidate.text) if side == "baseline" else both(baseline.text, around),
    )
