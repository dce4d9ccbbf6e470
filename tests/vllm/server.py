"""Starts the real ``vllm serve`` with the tiny model on loopback, and stops all of it again."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.serving import ROOT, free_port, stop, wait
from tests.shadowing import MODEL

HOME = ROOT / ".venv-vllm"
_LIMIT_S = 400.0
TOOLS = ("--enable-auto-tool-choice", "--tool-call-parser", "hermes")


@contextmanager
def vllm_with(logs: Path, *options: str) -> Iterator[tuple[str, int]]:
    """Address and process group of one more server, which has these options in place of those for tools."""
    port = free_port()
    process = _start(port, logs / f"vllm-{port}.log", options)
    try:
        wait(f"http://127.0.0.1:{port}", process, logs / f"vllm-{port}.log", limit_s=_LIMIT_S)
        yield f"http://127.0.0.1:{port}", process.pid
    finally:
        stop(process)


@contextmanager
def vllm_servers(count: int, logs: Path) -> Iterator[list[str]]:
    """Addresses of ``count`` vLLM servers, started at once because each takes about a minute to come up."""
    ports = [free_port() for _ in range(count)]
    processes = [_start(port, logs / f"vllm-{port}.log") for port in ports]
    try:
        for port, process in zip(ports, processes, strict=True):
            wait(f"http://127.0.0.1:{port}", process, logs / f"vllm-{port}.log", limit_s=_LIMIT_S)
        yield [f"http://127.0.0.1:{port}" for port in ports]
    finally:
        for process in processes:
            stop(process)


def _start(port: int, log: Path, options: Sequence[str] = TOOLS) -> subprocess.Popen[bytes]:
    if not (HOME / ".ready").exists():
        raise RuntimeError("there is no .venv-vllm; make it with: make test-vllm")
    words = [
        "-m",
        "vllm.entrypoints.cli.main",
        "serve",
        "tiny-model",
        "--served-model-name",
        MODEL,
    ]
    limits = [
        "--max-model-len",
        "1024",
        "--max-num-seqs",
        "16",
        "--generation-config",
        "vllm",
        "--enforce-eager",
    ]
    address = ["--host", "127.0.0.1", "--port", str(port)]
    environment = os.environ | {
        "HF_HUB_OFFLINE": "1",
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "VLLM_NO_USAGE_STATS": "1",
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",
        "OMP_NUM_THREADS": "1",
        "PATH": f"{HOME / 'bin'}:{os.environ['PATH']}",
    }
    with log.open("wb") as out:
        return subprocess.Popen(
            [str(HOME / "bin/python"), *words, *limits, *options, *address],
            stdout=out,
            stderr=out,
            env=environment,
            cwd=HOME,
            start_new_session=True,
        )
