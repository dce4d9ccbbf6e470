"""Files of ``configs/`` as they are shipped: in the wheel inside this package, in a clone beside it."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path


def shipped(name: str) -> str:
    """The text of a file of ``configs/``. Raises FileNotFoundError for an installation without it."""
    packed = files("migrate") / "configs" / name
    return (packed if packed.is_file() else Path(__file__).parents[1] / "configs" / name).read_text("utf-8")
