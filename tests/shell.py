"""Scripts as a reader of the documents would type them, in a folder of their own."""

from __future__ import annotations

import os
import shutil
import socket
import stat
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
CURL = """#!{python}
import sys, urllib.request
words = sys.argv[1:]
body = words[words.index("-d") + 1].encode() if "-d" in words else None
url = next(word for word in words if word.startswith("http"))
headers = {{"content-type": "application/json"}} if body else {{}}
print(urllib.request.urlopen(urllib.request.Request(url, body, headers), timeout=10).read().decode())
"""
"""Stands in where the machine has no curl: the suite needs nothing but Python and make."""


def run(script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Runs a script in ``folder``, with ``migrate`` and ``curl`` on its PATH; what it leaves behind ends with it."""
    tools = folder / "bin"
    tools.mkdir()
    _program(tools / "migrate", f'#!/bin/sh\nexec {sys.executable} -m migrate "$@"\n')
    if shutil.which("curl") is None:
        _program(tools / "curl", CURL.format(python=sys.executable))
    environment = {"PATH": f"{tools}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT), "HOME": str(folder)}
    # Background processes get their own group, which ends with the script, whatever became of it.
    wrapped = f"set -m\ntrap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n{script}"
    return subprocess.run(
        ["bash", "-c", wrapped],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=80,
        check=False,
    )


def _program(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def free_port() -> str:
    """A port of loopback that nobody listens at."""
    with socket.create_server(("127.0.0.1", 0)) as sock:
        return str(sock.getsockname()[1])
