"""``migrate check`` on a real vLLM: what docs/backends.md says of it, and what people get wrong."""

from __future__ import annotations

import asyncio
import urllib.request

import pytest

from migrate.config import Backend
from migrate.preflight import Line, preflight
from replay.backends import BACKENDS
from tests.check.page import cells, shown
from tests.shadowing import MODEL

pytestmark = pytest.mark.timeout(300)
FACTS = BACKENDS["vllm"]


def check(url: str, model: str = MODEL, **fields: object) -> dict[str, Line]:
    backend = Backend.model_validate({"kind": "vllm", "url": url, **fields})
    lines = asyncio.run(preflight(backend, model=model))
    return {line.check: line for line in lines}


def test_every_real_cell_of_the_page_is_so(vllm: list[str]) -> None:
    check(vllm[0])  # the first schema of a server's life takes it seconds to compile
    lines = check(vllm[0])
    assert all(line.passed for line in lines.values()), lines
    told = cells("vllm", "real")
    assert {name: shown(lines[name]) for name in told if name in lines} == {
        name: value for name, value in told.items() if name in lines
    }
    assert lines["context"].value == 1024 and "vLLM 0.32" in lines["health"].detail


def test_its_routes_are_there(vllm: list[str]) -> None:
    for route in (FACTS.health, FACTS.version, *FACTS.metrics):
        assert route is not None
        with urllib.request.urlopen(vllm[0] + route, timeout=10) as answer:
            assert answer.status == 200


@pytest.mark.parametrize(
    ("fields", "name", "said"),
    [
        ({"model": "harbor-7b-instruct"}, "model", "models: {harbor-7b-instruct: harbor-7b}"),
        ({"kind": "tensorrt-llm"}, "models", "kind: vllm"),
        ({"path": "/api/v1"}, "models", "url: http://127.0.0.1"),
        ({"scheme": "https"}, "tls", "url: http://"),
    ],
)
def test_what_people_get_wrong_is_found(
    vllm: list[str], fields: dict[str, str], name: str, said: str
) -> None:
    url = vllm[0].replace("http", fields.get("scheme", "http"), 1) + fields.get("path", "")
    lines = check(url, fields.get("model", MODEL), **({"kind": fields["kind"]} if "kind" in fields else {}))
    assert not lines[name].passed and said in lines[name].change, lines
