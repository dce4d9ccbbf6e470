"""docs/backends.md is true of the dialects; tests/vllm/test_check.py says so of a real vLLM."""

from __future__ import annotations

import re
from typing import cast

import aiohttp
import pytest

from migrate.config import Backend, parse
from migrate.preflight import preflight
from migrate.presets import presets
from replay.backends import BACKENDS
from replay.decoding import parse_object
from replay.failures import envelope_of
from replay.simulator.server import serving
from replay.simulator.settings import DialectName, Settings
from tests.check.page import COLUMNS, PAGE, cells, shown

DIALECTS = {"vllm": "vllm", "tensorrt-llm": "tensorrt-llm", "relay": "openai"}
ROUTES = ("health", "ready", "version", "metrics", "drained")


def settings(kind: str, **more: object) -> Settings:
    return Settings(dialect=cast("DialectName", DIALECTS[kind]), models=("harbor-7b",), **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", COLUMNS)
async def test_every_cell_of_a_dialect_is_so(kind: str) -> None:
    async with serving(settings(kind)) as url:
        backend = Backend.model_validate({"kind": kind, "url": url})
        lines = {line.check: line for line in await preflight(backend, model="harbor-7b")}
    told = {name: value for name, value in cells(kind, "dialect").items() if name in lines}
    assert told and {name: shown(lines[name]) for name in told} == told


async def test_a_call_of_a_tool_without_a_parser_is_left_in_the_text() -> None:
    async with serving(settings("tensorrt-llm", lacks=frozenset(("tool-parser",)))) as url:
        backend = Backend.model_validate({"kind": "tensorrt-llm", "url": url})
        lines = {line.check: line for line in await preflight(backend, model="harbor-7b")}
    assert lines["tools"].value == cells("tensorrt-llm", "dialect")["tools without parser"]


@pytest.mark.parametrize("kind", COLUMNS)
async def test_the_routes_are_those_of_the_facts_and_are_there(kind: str) -> None:
    facts = BACKENDS[kind]
    told = cells(kind, "real") | cells(kind, "dialect")
    async with serving(settings(kind)) as url, aiohttp.ClientSession() as http:
        for name in ROUTES:
            known = getattr(facts, name) or ()
            routes = (known,) if isinstance(known, str) else known
            written = told[f"{name} route"]
            assert (f"`{routes[0]}`" if routes else "none") == written
            for route in routes[:1]:
                async with http.get(url + route) as answer:
                    assert answer.status == 200, route


@pytest.mark.parametrize("kind", ["vllm", "relay"])
async def test_a_key_is_refused_in_the_shape_of_the_page(kind: str) -> None:
    headers = {"Authorization": "Bearer k-2"}
    async with (
        serving(settings(kind, api_key="k-1")) as url,
        aiohttp.ClientSession(headers=headers) as http,
        http.get(f"{url}/v1/models") as answer,
    ):
        envelope = parse_object(await answer.read())
    assert envelope_of(envelope, b"") == (cells(kind, "real") | cells(kind, "dialect"))["wrong key"]


@pytest.mark.parametrize("kind", COLUMNS)
def test_the_facts_say_what_the_page_says(kind: str) -> None:
    facts, told = BACKENDS[kind], cells(kind, "real") | cells(kind, "dialect") | cells(kind, "not run")
    assert told["errors"] in facts.envelopes
    by_upstream = {None: "by the upstream"}
    assert told["other fields"] == (by_upstream | {True: "refused", False: "ignored"})[facts.refuses_unknown]
    if facts.checks_model is not None:
        assert told["other models"] == ("refused" if facts.checks_model else "answered")
    assert not set(facts.metrics) & set(facts.drained)


def test_every_preset_is_named_and_the_example_is_one() -> None:
    section = PAGE.partition("## Presets")[2].partition("## ")[0]
    assert all(f"`{name}`" in section for name in presets())
    (example,) = re.findall(r"```yaml\n(.*?)```", section, flags=re.DOTALL)
    config = parse("baseline: {kind: vllm, url: 'http://10.0.0.5:8000'}\n" + example)
    assert config.candidate is not None and config.candidate.preset == "openrouter"


def test_what_was_never_run_is_not_called_real() -> None:
    assert cells("tensorrt-llm", "real") == {} and cells("relay", "real") == {}
    assert "TensorRT-LLM was never run" in PAGE
