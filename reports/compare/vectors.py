"""Answers of the embeddings interface: the vector of each input, beside the other side's vector of the same input."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from reports.compare.model import SETTLED, Step, odd_one, other
from reports.judgement import Finding, Severity

FLOOR = 0.99
"""Cosine of two vectors of one input. Measured over 804 texts with all-MiniLM-L6-v2 beside float32, lowest: another batch
1.0000, float16 1.0000, bfloat16 0.9998, weights in int8 0.9966, in fp8 0.9945. Below it: weights in int4 0.82, the
last sentence cut off 0.69, another pooling 0.28."""
_LENGTH = 0.01
"""Relative difference of lengths that inner products begin to feel; rounding to bfloat16 makes less than 0.005."""

Vector = tuple[float, ...]


def compare_vectors(baseline: tuple[Vector, ...], candidate: tuple[Vector, ...]) -> Step:
    """BLOCK when a vector is missing, no list of finite numbers, of another dimension, or points elsewhere.

    Vectors come in the order of their inputs; base64 and lists of numbers are one by then. An empty vector was unreadable.
    """
    if baseline == candidate and all(baseline):
        return SETTLED
    return Step(findings=tuple(_findings(baseline, candidate)), settled=True)


def _findings(old: tuple[Vector, ...], new: tuple[Vector, ...]) -> Iterator[Finding]:
    if len(old) != len(new):
        side = "candidate" if len(new) < len(old) else "baseline"
        yield _finding(
            "vectors.missing", f"the baseline gives {len(old)} vectors, the candidate {len(new)}", side
        )
        return
    if any(not (one and two) for one, two in zip(old, new, strict=True)):
        yield _unreadable(old, new)
        return
    for at, (one, two) in enumerate(zip(old, new, strict=True)):
        if len(one) != len(two):
            message = f"dimensions differ at input {at}: baseline {len(one)}, candidate {len(two)}"
            yield _finding("vectors.dimension", message)
            return
    yield from _apart(old, new)


def _unreadable(old: tuple[Vector, ...], new: tuple[Vector, ...]) -> Finding:
    bad_old, bad_new = (
        next((at for at, vector in enumerate(side) if not vector), None) for side in (old, new)
    )
    side = odd_one(bad_old is not None, bad_new is not None)
    at = bad_old if side == "baseline" else bad_new
    if side is None:
        message = f"both sides' vectors of input {at} hold something that is no finite number"
        return _finding("vectors.not_numbers", message, severity=Severity.WARN)
    message = f"the {side}'s vector of input {at} holds something that is no finite number; the {other(side)}'s does not"
    return _finding("vectors.not_numbers", message, side)


def _apart(old: tuple[Vector, ...], new: tuple[Vector, ...]) -> Iterator[Finding]:
    """Direction first: what a search ranks by. Length matters where inner products are taken of what is stored."""
    pairs = [_directed(one, two) for one, two in zip(old, new, strict=True)]
    cosines = [cosine for cosine, _ in pairs]
    at = int(np.argmin(cosines))
    below = sum(cosine < FLOOR for cosine in cosines)
    if below:
        message = f"{below} of {len(old)} vectors point elsewhere: lowest cosine {cosines[at]:.4f} at input {at}, floor {FLOOR}"
        yield _finding("vectors.cosine", message)
        return
    lengths = [ratio for _, ratio in pairs]
    far = int(np.argmax([abs(ratio - 1) for ratio in lengths]))
    if abs(lengths[far] - 1) > _LENGTH:
        message = (
            f"the candidate's vector of input {far} is {lengths[far]:.3g} times as long as the baseline's"
        )
        yield _finding("vectors.length", message, "candidate", Severity.WARN)
    elif old != new:
        message = f"lowest cosine {cosines[at]:.6f} over {len(old)} vectors"
        yield _finding("vectors.close", message, severity=Severity.NOTE)


def _directed(old: Vector, new: Vector) -> tuple[float, float]:
    """Cosine, and the second's length as a multiple of the first's. Two vectors of zeros are equal, one alone is far."""
    (one, a), (two, b) = _unit(old), _unit(new)
    if not a or not b:
        return (1.0, 1.0) if a == b else (0.0, 1.0)
    return float(one @ two), b / a


def _unit(vector: Vector) -> tuple[NDArray[np.float64], float]:
    """Direction and length; scaled first, so that no square overflows."""
    values = np.asarray(vector, dtype=np.float64)
    largest = float(np.abs(values).max())
    if not largest:
        return values, 0.0
    scaled = values / largest
    length = float(np.linalg.norm(scaled))
    return scaled / length, length * largest


def _finding(category: str, message: str, side: str = "pair", severity: Severity = Severity.BLOCK) -> Finding:
    return Finding(comparator="vectors", category=category, severity=severity, message=message, side=side)
