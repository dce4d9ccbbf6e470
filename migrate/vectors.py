"""Vectors by model and text hash: what was embedded once is not embedded again."""

from __future__ import annotations

import hashlib
import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from reports.compare.model import Vectors

_READ = 512
"""Vectors read at once."""

log = logging.getLogger(__name__)

Read = Callable[[str, Sequence[str]], Mapping[str, bytes]]
"""(model, text hashes) to the vectors that are known, each as little-endian float32."""
Write = Callable[[str, Mapping[str, bytes]], None]


class Cache:
    """Vectors of the model ``key``, by text hash. It saves time and nothing else: what cannot be read is computed again.

    ``read`` and ``write`` reach the database; without them nothing is known and nothing kept. Never raises.
    """

    __slots__ = ("_key", "_read", "_write")

    def __init__(self, key: str, read: Read | None, write: Write | None) -> None:
        self._key = key
        self._read = read or _nothing
        self._write = write or _nowhere

    def known(self, hashes: Sequence[str]) -> dict[str, Vectors]:
        """The vectors that are there, by hash; damaged ones are not."""
        found: dict[str, Vectors] = {}
        for start in range(0, len(hashes), _READ):
            found |= self._part(hashes[start : start + _READ])
        return found

    def keep(self, vectors: Mapping[str, Vectors]) -> None:
        if not vectors:
            return
        try:
            self._write(self._key, {name: vector.astype("<f4").tobytes() for name, vector in vectors.items()})
        except Exception:
            log.warning(
                "the cache of vectors cannot be written; a next report computes them again", exc_info=True
            )

    def _part(self, hashes: Sequence[str]) -> dict[str, Vectors]:
        try:
            found = {name: _vector(data) for name, data in self._read(self._key, hashes).items()}
        except Exception:
            log.warning("the cache of vectors cannot be read; they are computed again", exc_info=True)
            return {}
        sizes = Counter(vector.size for vector in found.values())
        usual = max(sizes, key=sizes.__getitem__, default=0)
        return {
            name: vector
            for name, vector in found.items()
            if vector.size == usual > 0 and np.isfinite(vector).all()
        }


def text_hash(text: str) -> str:
    """SHA-256 of the text, of a lone surrogate too."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _vector(data: bytes) -> Vectors:
    return np.frombuffer(data[: len(data) // 4 * 4], dtype="<f4").astype(np.float32)


def _nothing(model: str, hashes: Sequence[str]) -> Mapping[str, bytes]:
    return {}


def _nowhere(model: str, vectors: Mapping[str, bytes]) -> None:
    return None
