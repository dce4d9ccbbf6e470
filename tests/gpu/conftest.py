"""The servers of this machine: ``GPU_VLLM`` and ``GPU_TRTLLM`` name their executables, else those on PATH are taken.

``GPU_MODEL`` is a Hugging Face id or the directory of a checkpoint. A server that is not here is skipped by name.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from tests.serving import ROOT, free_port
from tests.shadowing import MODEL

_READY_S = 1200.0
_PROGRAMS = {"vllm": ("GPU_VLLM", "vllm"), "tensorrt-llm": ("GPU_TRTLLM", "trtllm-serve")}
_STATISTICS = {
    "return_perf_metrics": True,
    "enable_iter_perf_stats": True,
    "guided_decoding_backend": "xgrammar",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """A server that ``migrate launch`` started and that answers."""

    kind: str
    url: str
    config: Path


@pytest.fixture(scope="session", params=list(_PROGRAMS))
def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    kind: str = request.param
    variable, name = _PROGRAMS[kind]
    program = os.environ.get(variable) or shutil.which(name)
    if program is None:
        pytest.skip(f"{kind} was not run: {name} is not on PATH, and {variable} does not name it")
    folder = tmp_path_factory.mktemp(kind)
    url = f"http://127.0.0.1:{free_port()}"
    backend = {"kind": kind, "url": url, "model": MODEL, "launch": _launch(kind, program, folder)}
    config = folder / "migrate.yaml"
    config.write_text(yaml.safe_dump({"baseline": backend}), encoding="utf-8")
    said = folder / "said"
    with said.open("wb") as out:
        process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "migrate",
                "launch",
                kind,
                "--config",
                config,
                "--log",
                folder / "server.log",
            ],
            stdout=out,
            stderr=out,
            cwd=ROOT,
        )
    try:
        _wait(process, said)
        yield Served(kind=kind, url=url, config=config)
    finally:
        process.terminate()
        code = process.wait(120)
    assert code == 0, said.read_text()


def _launch(kind: str, program: str, folder: Path) -> dict[str, object]:
    model = os.environ.get("GPU_MODEL", "Qwen/Qwen3-0.6B")
    if kind == "vllm":
        args = {"max-model-len": 1024, "enable-auto-tool-choice": True, "tool-call-parser": "hermes"}
    else:
        (folder / "options.yaml").write_text(yaml.safe_dump(_STATISTICS), encoding="utf-8")
        args = {"max_seq_len": 1024, "tool_parser": "qwen3", "config": str(folder / "options.yaml")}
        args |= {"served_model_name": MODEL}
    return {"model": model, "executable": program, "args": args, "ready_within": f"{_READY_S:.0f}s"}


def _wait(process: subprocess.Popen[bytes], said: Path) -> None:
    deadline = time.monotonic() + _READY_S
    while "ready after" not in said.read_text():
        assert process.poll() is None and time.monotonic() < deadline, said.read_text()
        time.sleep(0.5)
