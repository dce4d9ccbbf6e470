"""Two real llama.cpp servers for the whole session, of which only the first has metrics, and a gateway in front of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.servers.server import llama_server
from tests.shadowing import Shadow, shadowing


@pytest.fixture(scope="session")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    logs = tmp_path_factory.mktemp("llama")
    with llama_server(logs, "--metrics") as first, llama_server(logs) as second:
        yield [first, second]


@pytest.fixture
def shadow(llama: list[str], tmp_path: Path) -> Iterator[Shadow]:
    with shadowing(tmp_path, baseline=llama[0], candidate=llama[1], backend="preset: llama-cpp") as running:
        yield running
