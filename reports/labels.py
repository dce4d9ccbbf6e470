"""Labels: by which comparator two answers differ, from the coarsest difference to the finest. Pure."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

Bits = NDArray[np.int32]
"""A bit for each label, the coarsest lowest."""
Ranks = NDArray[np.int64]
"""The place in ``LABELS`` of the coarsest label; ``ALIKE`` where there is none."""

NOISE_LIMIT = 0.30
"""Share of the baseline's repeats that may differ by a label that decides anything."""

UNSAID = "not said"
"""The label of a difference of which nobody says by what; it counts as coarse, so that no noise hides in it."""
_OTHERS = "others"
"""Comparators that this list does not know: as fine as any."""
LABELS = (
    UNSAID,
    "transport",
    "error",
    "envelope",
    "stream",
    "contract",
    "client_risk",
    "usage",
    "latency",
    "media",
    "choices",
    "emptiness",
    "finish",
    "refusal",
    "reasoning",
    "tools",
    "structured",
    "task",
    "vectors",
    "text",
    "similarity",
    "judge",
    _OTHERS,
)
"""Comparators, coarsest first: an answer or none, its wire, its end, its shape, its values, its words."""
ALIKE = len(LABELS)
FINEST = len(LABELS) - 1
"""The level at which every label counts."""
TRANSPORT = 1 << LABELS.index("transport")
_PLACES = {label: place for place, label in enumerate(LABELS)}
_SURE = ("refusal", "finish", "transport")
"""Labels that any answer can be looked at for, the finest first."""


def bits(names: Iterable[str]) -> int:
    """The bits of comparators by name; 0 of none."""
    return sum({1 << _PLACES.get(name, FINEST) for name in names})


def ranks(found: Bits) -> Ranks:
    """The coarsest label of each."""
    lowest = (found & -found).astype(np.float64)
    places: Ranks = np.where(found == 0, ALIKE, np.log2(np.maximum(lowest, 1)).astype(np.int64))
    return places


def quiet_level(by_rank: NDArray[np.int64]) -> NDArray[np.int64]:
    """The finest level at which the baseline differs from its own repeats in at most ``NOISE_LIMIT`` of them; -1: none.

    ``by_rank``: repeats by the coarsest label of their difference, on the last axis (``ALIKE`` + 1 long). At a level all
    labels up to it count.
    """
    total = by_rank.sum(axis=-1, keepdims=True)
    noisy = by_rank[..., :ALIKE].cumsum(axis=-1) > NOISE_LIMIT * total
    level: NDArray[np.int64] = (~noisy).sum(axis=-1) - 1
    return level


def fallback(level: int, seen: int) -> str:
    """The label that stands for a level: the finest up to it that was ``seen`` (bits), else one that always applies."""
    found = [label for place, label in enumerate(LABELS[: level + 1]) if seen >> place & 1]
    return found[-1] if found else next(label for label in _SURE if _PLACES[label] <= level)


def names(found: int) -> tuple[str, ...]:
    """The labels of bits, coarsest first."""
    return tuple(label for place, label in enumerate(LABELS) if found >> place & 1)
