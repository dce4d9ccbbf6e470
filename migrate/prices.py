"""The price list: entries by name, each with its source and the day on which it was read."""

from __future__ import annotations

import difflib
from functools import cache
from typing import Any

import yaml

from migrate.shipped import shipped

NAME = "prices.yaml"


@cache
def price_list() -> dict[str, dict[str, Any]]:
    """Every entry of ``configs/prices.yaml``: fields of a configuration's ``price:`` by the entry's name."""
    found: dict[str, dict[str, Any]] = yaml.safe_load(shipped(NAME))
    return found


def listed(name: str) -> dict[str, Any]:
    """One entry. Raises ValueError with the nearest names for one that there is not."""
    entries = price_list()
    if name not in entries:
        near = difflib.get_close_matches(name, entries, n=3, cutoff=0.4) or sorted(entries)
        raise ValueError(f"{name!r} is not in the price list; it has {', '.join(near)}")
    return entries[name]
