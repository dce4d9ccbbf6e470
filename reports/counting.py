"""Counts as words. Pure."""

from __future__ import annotations


def some(count: int, noun: str, nouns: str | None = None) -> str:
    """``1 pair``, ``1,200 pairs``. ``nouns``: a plural that is not made with an s."""
    return f"{count:,} {noun if count == 1 else nouns or f'{noun}s'}"
