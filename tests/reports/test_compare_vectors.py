"""Answers of the embeddings interface, from their bytes."""

from __future__ import annotations

import base64
import json
import math
import struct
from typing import Any

import httpx
import numpy as np
import pytest

from replay.exchange import Arm, Observation
from replay.simulator.server import serving
from replay.simulator.settings import Settings
from reports.compare import Comparison, compare
from reports.judgement import Severity
from tests.replay.wire import JSON_TYPE, recording
from tests.replay.wire import seen as observed
from tests.reports.said import categories, request, seen

ONE, TWO = [0.6, 0.8, 0.0], [0.0, 0.6, 0.8]
PATH = "/v1/embeddings"


def answer(*vectors: Any, arm: Arm = Arm.BASELINE) -> Observation:
    rows = [{"object": "embedding", "index": at, "embedding": one} for at, one in enumerate(vectors)]
    body = json.dumps({"object": "list", "data": rows[::-1], "model": "e"}).encode()
    return observed(recording([body], headers=JSON_TYPE), path=PATH)


def packed(vector: list[float]) -> str:
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()


def compared(old: Observation, new: Observation) -> Comparison:
    found = compare(request(model="e", input=["a", "b"]), old, new)
    assert found.scored and not found.undecided
    return found


@pytest.mark.parametrize(
    ("old", "new", "severity", "expected"),
    [
        ([ONE, TWO], [ONE, TWO], Severity.EQUAL, []),
        ([[0.5, 0.25]], [packed([0.5, 0.25])], Severity.EQUAL, []),
        ([ONE, TWO], [packed(ONE), packed(TWO)], Severity.NOTE, ["vectors.close"]),
        ([ONE, TWO], [TWO, ONE], Severity.BLOCK, ["vectors.cosine"]),
        ([ONE, TWO], [ONE], Severity.BLOCK, ["vectors.missing"]),
        ([ONE], [[*ONE, 0.0]], Severity.BLOCK, ["vectors.dimension"]),
        ([ONE], [[1.2, 1.6, 0.0]], Severity.WARN, ["vectors.length"]),
        ([ONE], [[0.0, 0.0, 0.0]], Severity.BLOCK, ["vectors.cosine"]),
        ([[0.0, 0.0]], [[0.0, -0.0]], Severity.EQUAL, []),
        ([[1e300, 1e300]], [[1e300, 1.0000001e300]], Severity.NOTE, ["vectors.close"]),
    ],
)
def test_vectors_of_one_input_are_compared(
    old: list[Any], new: list[Any], severity: Severity, expected: list[str]
) -> None:
    found = compared(answer(*old), answer(*new))
    assert (found.severity, categories(found)) == (severity, expected)
    assert compared(answer(*new), answer(*old)).severity is severity


def test_a_value_that_is_no_number_is_the_fault_of_its_side() -> None:
    for broken in ([math.nan, 1.0, 0.0], packed([math.inf, 1.0, 0.0]), ["x", 1, 2], "no base64!"):
        found = compared(answer(ONE, TWO), answer(ONE, broken))
        (finding,) = [one for one in found.findings if one.comparator == "vectors"]
        assert (finding.category, finding.side) == ("vectors.not_numbers", "candidate")
        assert finding.severity is Severity.BLOCK and "input 1" in finding.message
        assert compared(answer(broken), answer(ONE)).severity is Severity.BLOCK
    both = compared(answer([math.nan]), answer([math.nan]))
    assert (both.severity, categories(both)) == (Severity.WARN, ["vectors.not_numbers"])


def test_rounding_to_sixteen_bits_is_none_of_a_users_business() -> None:
    vectors = np.random.default_rng(5).normal(size=(50, 384)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    cut = (vectors.view(np.uint32) & 0xFFFF0000).view(np.float32)  # as bfloat16, rounded towards zero
    found = compared(answer(*vectors.tolist()), answer(*cut.tolist()))
    assert (found.severity, categories(found)) == (Severity.NOTE, ["vectors.close"])


def test_an_answer_without_vectors_beside_one_with_them() -> None:
    assert categories(compared(answer(ONE), seen())) == ["vectors.missing"]


async def test_a_servers_two_spellings_are_one_and_another_model_is_another() -> None:
    async def asked(url: str, **more: str) -> Observation:
        body = {"model": "e", "input": ["a calm sea", "high tide at six"], **more}
        async with httpx.AsyncClient() as client:
            got = await client.post(url + PATH, json=body)
        return observed(recording([got.content], headers=JSON_TYPE), path=PATH)

    async with serving(Settings()) as one, serving(Settings(seed=1)) as two:
        listed, coded, other = await asked(one), await asked(one, encoding_format="base64"), await asked(two)
    assert compared(listed, coded).severity in (Severity.EQUAL, Severity.NOTE)
    assert categories(compared(listed, other)) == ["vectors.cosine"]
