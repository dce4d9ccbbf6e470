"""Starts the real ``vllm serve`` with the tiny model on loopback, and stops all of it again."""

from __future__ import annotations

import os
import signal
import socket
import socketserver
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

ROOT = Path(__file__).parents[2]
HOME = ROOT / ".venv-vllm"
MODEL = "harbor-7b"
"""What the tiny model is served as."""
_LIMIT_S = 400.0


@contextmanager
def vllm_servers(count: int, logs: Path) -> Iterator[list[str]]:
    """Addresses of ``count`` vLLM servers, started at once because each takes about a minute to come up."""
    ports = [_free_port() for _ in range(count)]
    processes = [_start(port, logs / f"vllm-{port}.log") for port in ports]
    try:
        for port, process in zip(ports, processes, strict=True):
            _wait(port, process, logs / f"vllm-{port}.log")
        yield [f"http://127.0.0.1:{port}" for port in ports]
    finally:
        for process in processes:
            _stop(process)


def raw(url: str, path: str, body: bytes, method: str = "POST") -> bytes:
    """The answer exactly as it comes from the socket, framing included."""
    parts = urlsplit(url)
    head = f"{method} {path} HTTP/1.1\r\nHost: tide.test\r\nContent-Type: application/json\r\nConnection: close\r\n"
    with socket.create_connection((parts.hostname, parts.port), timeout=60) as sock:
        sock.sendall(head.encode() + f"Content-Length: {len(body)}\r\n\r\n".encode() + body)
        pieces = []
        while piece := sock.recv(65_536):
            pieces.append(piece)
    return b"".join(pieces)


@dataclass(slots=True, kw_only=True)
class Wire:
    """A listener on loopback that passes everything on to a server, and what has gone over each connection."""

    url: str
    asked: list[bytearray] = field(default_factory=list)
    answered: list[bytearray] = field(default_factory=list)


@contextmanager
def wire(url: str) -> Iterator[Wire]:
    """A wire to the server at ``url``; each byte is noted before it is passed on."""
    parts = urlsplit(url)

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            asked, answered = bytearray(), bytearray()
            listening.asked.append(asked)
            listening.answered.append(answered)
            with socket.create_connection((parts.hostname, parts.port)) as server:
                back = threading.Thread(target=_pass_on, args=(server, self.request, answered))
                back.start()
                _pass_on(self.request, server, asked)
                back.join()

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True

    with Server(("127.0.0.1", 0), Handler) as server:
        listening = Wire(url=f"http://127.0.0.1:{server.server_address[1]}")
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield listening
        server.shutdown()


def _pass_on(source: socket.socket, target: socket.socket, noted: bytearray) -> None:
    """Until one side ends; then the other is told."""
    with suppress(OSError):
        while piece := source.recv(65_536):
            noted += piece
            target.sendall(piece)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)


def _start(port: int, log: Path) -> subprocess.Popen[bytes]:
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
    tools = ["--enable-auto-tool-choice", "--tool-call-parser", "hermes"]
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
            [str(HOME / "bin/python"), *words, *limits, *tools, *address],
            stdout=out,
            stderr=out,
            env=environment,
            cwd=HOME,
            start_new_session=True,
        )


def _wait(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    start = time.monotonic()
    shown = start
    while time.monotonic() - start < _LIMIT_S:
        if process.poll() is not None:
            raise RuntimeError(
                f"vllm serve ended with {process.returncode}:\n{log.read_text(errors='replace')[-3000:]}"
            )
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=2):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(1)
        if time.monotonic() - shown > 20:
            shown = time.monotonic()
            print(f"waiting for vllm serve on {port} ({shown - start:.0f} s)", file=sys.stderr, flush=True)
    raise RuntimeError(
        f"vllm serve did not come up in {_LIMIT_S:.0f} s:\n{log.read_text(errors='replace')[-3000:]}"
    )


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Ends the whole process group: the API server and its engine."""
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


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as sock:
        port: int = sock.getsockname()[1]
        return port
