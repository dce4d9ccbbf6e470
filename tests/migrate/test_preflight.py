"""Preflight against real servers, healthy and not."""

from __future__ import annotations

import socket
from time import monotonic

import pytest

from migrate.config import Backend
from migrate.preflight import Result, preflight
from migrate.preflight.beside import CHECKS
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
async def test_a_healthy_backend_passes_every_check(dialect: DialectName, kind: str) -> None:
    async with serving(Settings(dialect=dialect, models=("harbor-7b",))) as url:
        lines = await preflight(backend(url, kind), model="harbor-7b")
    assert [line.check for line in lines] == list(CHECKS)
    assert all(line.passed for line in lines), lines


async def test_the_first_model_listed_is_asked_where_none_is_named() -> None:
    async with serving(Settings(models=("harbor-7b", "harbor-70b"))) as url:
        lines = await preflight(backend(url), model=None)
    found = {line.check: line for line in lines}
    assert found["model"].result is Result.NOT_CHECKED and "harbor-7b, harbor-70b" in found["model"].detail
    assert found["answer"].passed and found["context"].value == 32_768


async def test_nobody_listening_is_said_once() -> None:
    with socket.create_server(("127.0.0.1", 0)) as sock:
        port = sock.getsockname()[1]
    lines = await preflight(backend(f"http://127.0.0.1:{port}"), model=None)
    assert [line.passed for line in lines] == [True, False]
    assert "cannot be reached" in lines[-1].detail


async def test_a_server_that_never_answers_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as sock:
        url = f"http://127.0.0.1:{sock.getsockname()[1]}"
        start = monotonic()
        lines = await preflight(backend(url), model=None, limit_s=0.3)
    assert "in time" in lines[-1].detail and monotonic() - start < 2
