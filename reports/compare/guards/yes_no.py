"""Yes against no at the head of an answer."""

from __future__ import annotations

import re

from reports.compare.model import both
from reports.compare.normal import Plain
from reports.judgement import Finding, Severity

_HEAD = re.compile(
    r"\A\W*(?:(yes|yeah|yep|correct|true|right)|(no|nope|incorrect|false|wrong))"
    r"(?=\W*\Z|\s*[,.;:!-]|\s+(?:it|they|you|we|i|there|he|she|this|that|the)\b)",
    re.IGNORECASE,
)


def guard_yes_no(baseline: Plain, candidate: Plain) -> Finding | None:
    """BLOCK when one answer begins with yes (or true, correct …) and the other with no."""
    old, new = polarity(baseline.text), polarity(candidate.text)
    if old is None or new is None or old == new:
        return None
    return Finding(
        comparator="text",
        category="text.yes_no",
        severity=Severity.BLOCK,
        message=f"the baseline says {_word(old)}, the candidate says {_word(new)}",
        evidence=both(baseline.text, candidate.text),
    )


def polarity(text: str) -> bool | None:
    """True for a leading yes, False for a leading no, ``None`` for neither."""
    match = _HEAD.match(text[:200])
    return None if match is None else match[1] is not None


def _word(polarity: bool) -> str:
    return "yes" if polarity else "no"
