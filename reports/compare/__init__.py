"""When two answers to one request would serve a user differently, and why.

Phase 1, ``compare``, is deterministic and cheap: a cascade of comparators, one file each, stops at the first that
decides. Phase 2, ``resolve``, embeds what is left of all pairs in one go. ``embed`` is an argument, so all is pure.

To widen it: a comparator is one function in one file and one entry of ``cascade.COMPARATORS``; a guard is one
function in ``guards/`` and one entry of ``guards.GUARDS``.
"""

from __future__ import annotations

from reports.compare.cascade import COMPARATORS, compare, resolve
from reports.compare.model import Case, Comparator, Comparison, Embed, Step

__all__ = ["COMPARATORS", "Case", "Comparator", "Comparison", "Embed", "Step", "compare", "resolve"]
