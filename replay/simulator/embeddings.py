"""Deterministic embeddings: texts that share words have similar vectors."""

from __future__ import annotations

import base64
import math
import struct

from replay.exchange import JSON
from replay.simulator import chance
from replay.simulator.ask import RefusalError, Wrong, estimate_tokens

DIMENSIONS = 64


def answer(data: JSON, *, seed: int) -> JSON:
    """The response to an embedding request. Raises RefusalError."""
    texts = _texts(data.get("input"))
    wanted = data.get("dimensions") or DIMENSIONS
    if not isinstance(wanted, int) or not 1 <= wanted <= 4096:
        raise RefusalError(
            Wrong.INVALID, "dimensions must be a whole number from 1 to 4096", param="dimensions"
        )
    packed = data.get("encoding_format") == "base64"
    vectors = [vector(text, wanted, seed=seed) for text in texts]
    tokens = sum(map(estimate_tokens, texts))
    items = [
        {"object": "embedding", "index": index, "embedding": _packed(found) if packed else found}
        for index, found in enumerate(vectors)
    ]
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return {"object": "list", "data": items, "model": str(data.get("model", "")), "usage": usage}


def vector(text: str, dimensions: int, *, seed: int) -> list[float]:
    """A vector of length 1: the sum of one hashed direction a word."""
    total = [0.0] * dimensions
    for word in text.lower().split() or [""]:
        rng = chance.stream("embedding", seed, word)
        for index in range(dimensions):
            total[index] += rng.random() - 0.5
    length = math.sqrt(sum(number * number for number in total)) or 1.0
    return [number / length for number in total]


def _texts(found: object) -> list[str]:
    if isinstance(found, str):
        return [found]
    if isinstance(found, list) and found and all(isinstance(item, str) for item in found):
        return found
    if isinstance(found, list) and found and all(isinstance(item, int | list) for item in found):
        rows = found if isinstance(found[0], list) else [found]
        return [" ".join(map(str, row)) for row in rows]
    raise RefusalError(Wrong.INVALID, "input must be a string, a list of strings or token ids", param="input")


def _packed(found: list[float]) -> str:
    return base64.b64encode(struct.pack(f"<{len(found)}f", *found)).decode()
