"""A small model that really answers: itself behind two addresses is alike, and other weights under its name are found out."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.planting import Body, reported, rule
from tests.servers.server import llama_server
from tests.shadowing import MODEL
from tests.wire import wire

pytestmark = pytest.mark.timeout(180)
THINGS = """a harbour, a lighthouse, a ferry, an anchor, the tide, a sail, a compass, a storm, a rope, a captain,
an island, a map, a whale, a net, a pier""".replace("\n", " ").split(", ")


@pytest.fixture(scope="module")
def smollm2(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with llama_server(tmp_path_factory.mktemp("smollm2"), "--metrics", model="smollm2") as url:
        yield url


def asked(content: str, tokens: int = 16) -> Body:
    return {
        "model": MODEL,
        "messages": [{"role": "user", "content": content}],
        "temperature": 0,
        "seed": 1,
        "max_tokens": tokens,
    }


def questions() -> Iterator[Body]:
    for thing in THINGS:
        yield asked(f"In one sentence: what is {thing}?")
        yield asked(f"What is {thing} good for? Answer briefly.")


def test_it_is_a_model_that_answers(smollm2: str) -> None:
    answer: dict[str, Any] = httpx.post(
        f"{smollm2}/v1/chat/completions", json=asked("In one sentence: what is a lighthouse?"), timeout=60
    ).json()
    assert "light" in answer["choices"][0]["message"]["content"]


def test_it_agrees_with_itself(smollm2: str, tmp_path: Path) -> None:
    with wire(smollm2) as again:
        document = reported(tmp_path, smollm2, again.url, questions(), "preset: llama-cpp")
    found = rule(document, "disagreement")
    assert document["verdict"] != "ROLLBACK", document["reason"]
    assert document["ledger"]["scored"] == 30 and found["estimate"] <= 0.05, found


def test_other_weights_under_its_name_are_a_rollback(smollm2: str, llama: list[str], tmp_path: Path) -> None:
    document = reported(tmp_path, smollm2, llama[1], questions(), "preset: llama-cpp")
    found = rule(document, "disagreement")
    assert document["verdict"] == "ROLLBACK", (document["reason"], found)
    assert found["verdict"] == "ROLLBACK" and found["estimate"] > 0.9
