"""Addresses of pages and mailboxes: one wrong letter leads elsewhere."""

from __future__ import annotations

from reports.compare.model import both, excerpt, odd_one
from reports.compare.normal import Plain
from reports.judgement import Finding, Severity


def guard_links(baseline: Plain, candidate: Plain) -> Finding | None:
    """BLOCK when each side has an address that the other has not; WARN when one side alone has more of them."""
    if not (baseline.links or candidate.links):
        return None
    gone, come = _missing(baseline, candidate), _missing(candidate, baseline)
    if not (gone or come):
        return None
    side = odd_one(bool(gone), bool(come))
    if side is None:
        message = (
            f"addresses differ: the baseline has {excerpt(gone[0], 80)}, the candidate {excerpt(come[0], 80)}"
        )
    else:
        message = f"an address stands on the {side}'s side only: {excerpt((gone or come)[0], 80)}"
    return Finding(
        comparator="text",
        category="text.link",
        severity=Severity.WARN if side else Severity.BLOCK,
        message=message,
        side=side or "pair",
        evidence=both(" ".join(baseline.links), " ".join(candidate.links)),
    )


def _missing(one: Plain, two: Plain) -> list[str]:
    """Addresses of one text that the other does not have, not even without their scheme."""
    known = frozenset(two.links)
    missing = [link for link in dict.fromkeys(one.links) if link not in known]
    if not missing or len(missing) > _MOST:
        return missing
    text = two.text.lower()
    return [link for link in missing if link.lower() not in text]


_MOST = 32
"""Addresses that are looked for in the other text letter by letter."""
