"""Repeatable chance: the same parts give the same draw in any process, on any machine."""

from __future__ import annotations

import hashlib
import random
from typing import TypeVar

T = TypeVar("T")

_SPAN = 2**64


def number(*parts: object) -> int:
    """A whole number below 2**64 drawn from ``parts``."""
    digest = hashlib.blake2b(digest_size=8)
    for part in parts:
        digest.update(str(part).encode("utf-8", "surrogatepass"))
        digest.update(b"\x1f")
    return int.from_bytes(digest.digest(), "big")


def share(*parts: object) -> float:
    """A number in [0, 1) drawn from ``parts``."""
    return number(*parts) / _SPAN


def stream(*parts: object) -> random.Random:
    """A generator for many draws. Use only its ``random()``, whose sequence Python keeps between versions."""
    return random.Random(number(*parts))


def pick(rng: random.Random, options: tuple[T, ...]) -> T:
    """One of ``options``, each as likely as the others."""
    return options[int(rng.random() * len(options))]


def between(rng: random.Random, low: int, high: int) -> int:
    """A whole number from ``low`` to ``high``, both included."""
    return low + int(rng.random() * (high - low + 1))


def hexes(length: int, *parts: object) -> str:
    """``length`` hexadecimal digits, at most 64, drawn from ``parts``."""
    joined = "\x1f".join(map(str, parts)).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(joined, digest_size=32).hexdigest()[:length]
