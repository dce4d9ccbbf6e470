"""Yes against no at the head of an answer."""

from __future__ import annotations

import re

from reports.compare.model import both
from reports.compare.normal import Plain
from reports.judgement import Finding, Severity

_YES = "yes|yeah|yep|correct|true|right"
_NO = "no|nope|incorrect|false|wrong"
_HEAD = re.compile(
    rf"\A\W*(?:({_YES})|({_NO}))(?=\W*\Z|\s*[,.;:!-]|\s+(?:it|they|you|we|i|there|he|she|this|that|the)\b)",
    re.IGNORECASE,
)
_ELSEWHERE = re.compile(
    r"\A\W*(?:(sí|sim|sì|oui|ja|jawohl|tak|да|はい|是的?|对|對|네)|(non|nein|não|nee|nie|нет|いいえ|不是?|不对|不對|아니요))"
    r"(?=\W*\Z|\s*[,.;:!、。\uff0c\uff01-])",
    re.IGNORECASE,
)
"""In other languages only where the word stands by itself: "non" and "ja" begin sentences that are no answers."""
_SAID = re.compile(
    rf"\b(?:answer|claim|statement)\b(?: is|:) ?(?:({_YES})|({_NO}))\b(?=\W*\Z|[,.;:!])", re.IGNORECASE
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
    """True for a leading yes or "the answer is yes", False for a no, ``None`` for neither."""
    head = text[:200]
    match = _HEAD.match(head) or _ELSEWHERE.match(head) or _SAID.search(head)
    return None if match is None else match[1] is not None


def _word(polarity: bool) -> str:
    return "yes" if polarity else "no"
