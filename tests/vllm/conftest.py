"""Two real vLLM servers for the whole session, and a gateway in front of the first."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.shadowing import Shadow, shadowing
from tests.vllm.server import vllm_servers


@pytest.fixture(scope="session")
def vllm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    with vllm_servers(2, tmp_path_factory.mktemp("vllm")) as urls:
        yield urls


@pytest.fixture
def shadow(vllm: list[str], tmp_path: Path) -> Iterator[Shadow]:
    with shadowing(tmp_path, baseline=vllm[0], candidate=vllm[1]) as running:
        yield running
