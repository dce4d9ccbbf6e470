"""A real vLLM against another process of its own, and with faults that only a real sampler shows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.planting import Body, changing, reported, rule
from tests.shadowing import MODEL, simulator

pytestmark = pytest.mark.timeout(300)


def asked(prompts: int, times: int, **more: object) -> Iterator[Body]:
    for n in range(prompts * times):
        ask = [{"role": "user", "content": f"What is the tide at pier {n % prompts}, and when does it turn?"}]
        yield {"model": MODEL, "messages": ask, "max_tokens": 16, **more}


@pytest.mark.parametrize("temperature", [0, 0.8])
def test_two_processes_of_one_model_do_not_disagree_more_than_one_with_itself(
    vllm: list[str], tmp_path: Path, temperature: float
) -> None:
    document = reported(tmp_path, *vllm, asked(60, 2, temperature=temperature))
    disagreement = rule(document, "disagreement")
    assert disagreement["pairs"] >= 100 and disagreement["low"] <= 0 <= disagreement["high"], disagreement
    assert disagreement["verdict"] != "ROLLBACK"
    assert not [one for one in document["causes"] if one["category"].startswith(("prompt.", "sampling."))]


def test_a_temperature_that_is_dropped(vllm: list[str], tmp_path: Path) -> None:
    def dropped(body: Body) -> Body:
        return {name: value for name, value in body.items() if name != "temperature"}

    with changing(vllm[1], dropped) as candidate:
        document = reported(tmp_path, vllm[0], candidate, asked(40, 3, temperature=0))
    assert document["causes"][0]["category"] == "sampling.not_greedy", document["causes"][:2]


def test_another_model(vllm: list[str], tmp_path: Path) -> None:
    with simulator() as candidate:
        document = reported(tmp_path, vllm[0], candidate, asked(60, 1, temperature=0))
    first = document["causes"][0]
    assert first["category"].startswith("prompt.") and document["verdict"] != "GO", first
    assert rule(document, "disagreement")["candidate"] > 0.9
