"""``migrate check`` on a real vLLM that was started wrong, and then stalls and dies: its own words are understood."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from replay.decoding import parse_object
from replay.failures import envelope_of
from tests.check.page import cells
from tests.vllm.server import vllm_with
from tests.vllm.test_check import check
from tests.wire import raw

pytestmark = pytest.mark.timeout(300)
KEY = "k-5hW2mQ8vTz"


@pytest.fixture(scope="module")
def keyed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, int]]:
    """A server with a key and without a parser of tools."""
    with vllm_with(tmp_path_factory.mktemp("vllm"), "--api-key", KEY) as server:
        yield server


def test_its_faults_are_found(keyed: tuple[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    url, group = keyed
    assert "the server wants one" in check(url)["key"].detail
    envelope = parse_object(raw(url, "/v1/models", b"", "GET").partition(b"\r\n\r\n")[2])
    assert envelope_of(envelope, b"") == cells("vllm", "real")["wrong key"]
    monkeypatch.setenv("THE_KEY", KEY[::-1])
    assert "refuses it (401" in check(url, api_key_env="THE_KEY")["key"].detail
    monkeypatch.setenv("THE_KEY", KEY)
    tools = check(url, api_key_env="THE_KEY")["tools"]
    assert (
        tools.value == cells("vllm", "real")["tools without parser"]
        and "--enable-auto-tool-choice" in tools.change
    ), tools
    engine = engine_of(group)
    os.kill(engine, signal.SIGSTOP)
    stalled = check(url, api_key_env="THE_KEY")["answer"]
    assert not stalled.passed and "health is green, but no token came" in stalled.detail
    os.kill(engine, signal.SIGKILL)
    time.sleep(1)
    dead = check(url, api_key_env="THE_KEY")
    said = [line.detail for line in dead.values() if not line.passed]
    assert "503" in said[0] or "cannot be reached" in said[0], (
        said
    )  # the server says so for a moment, and then ends itself


def engine_of(group: int) -> int:
    """The process of the engine, which calls itself so."""
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                named = b"EngineCore" in (folder / "cmdline").read_bytes()
                if named and os.getpgid(int(folder.name)) == group:
                    return int(folder.name)
            except OSError:
                continue
    raise AssertionError("there is no engine")
