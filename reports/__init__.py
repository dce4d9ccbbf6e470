"""Judge: pair, compare, measure the noise floor, decide and render. Pure functions over observations.

For notebooks: ``from reports import compare_texts``, ``compare_many`` and ``Texts`` (see docs/compare.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from reports.compare.texts import Texts, compare_many, compare_texts

__all__ = ["Texts", "compare_many", "compare_texts"]


def __getattr__(name: str) -> Any:
    """The cascade is imported when it is first asked for: a gateway reads the policy and does without."""
    if name in __all__:
        from reports.compare import texts

        return getattr(texts, name)
    raise AttributeError(f"module 'reports' has no attribute {name!r}")
