"""Starts llama.cpp's real server with the tiny model on loopback, and stops it again."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.serving import ROOT, free_port, stop, wait
from tests.shadowing import MODEL

HOME = ROOT / ".venv-llama"


@contextmanager
def llama_server(logs: Path, *options: str, model: str = "tiny-model") -> Iterator[str]:
    """Address of a llama.cpp server that has these options of ``tests.servers.llama``. ``model``: ``tiny-model`` of random
    weights, or ``smollm2``, a small one that answers."""
    if not (HOME / ".ready").exists():
        raise RuntimeError("there is no .venv-llama; make it with: make test-servers")
    port = free_port()
    url, log = f"http://127.0.0.1:{port}", logs / f"llama-{port}.log"
    command = [HOME / "bin/python", "-m", "tests.servers.llama", HOME / f"{model}.gguf", str(port), MODEL]
    with log.open("wb") as out:
        process = subprocess.Popen(
            [*command, *options], stdout=out, stderr=out, cwd=ROOT, env=os.environ, start_new_session=True
        )
    try:
        wait(url, process, log, limit_s=60)
        yield url
    finally:
        stop(process)
