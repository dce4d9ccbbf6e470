"""Model names: which one was probably meant. Pure."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence

from migrate.preflight.lines import clean

_SHOWN = 3
_CLOSE = 0.5


def closest(model: str, listed: Sequence[str]) -> list[str]:
    """Up to three of the listed names that may be meant by ``model``, the likeliest first; the only one always is."""
    if len(listed) == 1:
        return list(listed)
    scored = sorted(((_likeness(model, name), name) for name in listed[:5000]), key=lambda pair: -pair[0])
    return [name for score, name in scored[:_SHOWN] if score >= _CLOSE]


def _likeness(asked: str, listed: str) -> float:
    """From 0 to 2, by the last part of a path or id, letters and digits only: a name that only says more is likeliest."""
    left, right = _bare(asked), _bare(listed)
    ratio = difflib.SequenceMatcher(None, left, right).ratio()
    if not left or not right:
        return 0.0
    return 1 + ratio if left in right else max(ratio, 0.9) if right in left else ratio


def _bare(name: str) -> str:
    last = name.rstrip("/").rpartition("/")[2]
    return re.sub(r"[^a-z0-9]", "", last.lower())[:200]


def some(names: Sequence[str]) -> str:
    """Names as they may be shown: a few, and how many more."""
    few = ", ".join(clean(name, most=60) for name in names[:_SHOWN])
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return few + more or "none"
