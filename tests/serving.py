"""A real server as a child process that leads a group of its own: waited for, and ended with all that it started."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

ROOT = Path(__file__).parents[1]


def wait(url: str, process: subprocess.Popen[bytes], log: Path, *, limit_s: float) -> None:
    """Until the server at ``url`` says that it is healthy; fails with the log's end when it does not."""
    start = time.monotonic()
    shown = start
    while time.monotonic() - start < limit_s:
        if process.poll() is not None:
            raise RuntimeError(
                f"the server at {url} ended with {process.returncode}:\n{log.read_text(errors='replace')[-3000:]}"
            )
        try:
            with urllib.request.urlopen(f"{url}/health", timeout=2):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
        if time.monotonic() - shown > 20:
            shown = time.monotonic()
            print(f"waiting for the server at {url} ({shown - start:.0f} s)", file=sys.stderr, flush=True)
    raise RuntimeError(
        f"the server at {url} did not come up in {limit_s:.0f} s:\n{log.read_text(errors='replace')[-3000:]}"
    )


def stop(process: subprocess.Popen[bytes]) -> None:
    """Ends the whole process group: a server may have started its engine as a process of its own."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            break
        try:
            process.wait(timeout=15)
        except subprocess.TimeoutExpired:
            continue
    process.wait()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as sock:
        port: int = sock.getsockname()[1]
        return port
