"""Preflight against real servers, healthy and not."""

from __future__ import annotations

import socket

import pytest

from migrate.config import Backend
from migrate.preflight import preflight
from replay.simulator.server import serving
from replay.simulator.settings import DialectName, Settings

KINDS: list[tuple[DialectName, str]] = [
    ("vllm", "vllm"),
    ("tensorrt-llm", "tensorrt-llm"),
    ("openai", "relay"),
]


def backend(url: str, kind: str = "vllm", **more: object) -> Backend:
    return Backend.model_validate({"kind": kind, "url": url, **more})


@pytest.mark.parametrize(("dialect", "kind"), KINDS)
async def test_a_healthy_backend_passes_every_probe(dialect: DialectName, kind: str) -> None:
    async with serving(Settings(dialect=dialect, models=("harbor-7b",))) as url:
        lines = await preflight(backend(url, kind), model="harbor-7b")
    assert [(line.check, line.passed) for line in lines] == [
        ("health", True),
        ("model", True),
        ("answer", True),
    ]


async def test_an_unknown_model_names_those_that_exist() -> None:
    async with serving(Settings(models=("harbor-7b",))) as url:
        lines = await preflight(backend(url), model="harbor-70b")
    assert not lines[-1].passed
    assert "harbor-70b" in lines[-1].detail and "harbor-7b" in lines[-1].detail


async def test_nobody_listening_is_said_once() -> None:
    with socket.create_server(("127.0.0.1", 0)) as sock:
        port = sock.getsockname()[1]
    lines = await preflight(backend(f"http://127.0.0.1:{port}"), model=None)
    assert [line.passed for line in lines] == [False]
    assert "cannot be reached" in lines[0].detail


async def test_a_missing_key_points_to_the_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(Settings(models=("m",), api_key="k-1")) as url:
        without = await preflight(backend(url), model="m")
        monkeypatch.setenv("THE_KEY", "k-1")
        with_key = await preflight(backend(url, api_key_env="THE_KEY"), model="m")
        monkeypatch.setenv("THE_KEY", "")
        empty = await preflight(backend(url, api_key_env="THE_KEY"), model="m")
    assert "api_key_env" in without[-1].detail and "401" in without[-1].detail
    assert all(line.passed for line in with_key)
    assert "THE_KEY" in empty[-1].detail


async def test_a_server_that_never_answers_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as sock:
        url = f"http://127.0.0.1:{sock.getsockname()[1]}"
        lines = await preflight(backend(url), model=None, limit_s=0.3)
    assert "in time" in lines[0].detail
