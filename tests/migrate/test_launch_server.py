"""``migrate launch`` with real processes: small servers that behave, and that die as the real ones do."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from migrate.launching import guard
from migrate.launching.command import Command
from migrate.launching.server import Server, ServerDied

ROOT = Path(__file__).parents[2]
SECRET = "sk-planted0Secret0Of0Launch0123"
FAKE = '''#!{python}
"""Serves as vllm does, after a moment, with two processes of its own: one of them leaves its group, and may be deaf."""
import http.server, json, os, signal, subprocess, sys, time
if sys.argv[1:3] != ["serve", "harbor"]:
    sys.exit(2)
deaf = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN);" if os.environ.get("DEAF") else ""
engine = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
worker = subprocess.Popen([sys.executable, "-c", deaf + "import time; time.sleep(600)"], start_new_session=True)
open("pids", "w").write(f"{{os.getpid()}} {{engine.pid}} {{worker.pid}}")
print("Loading safetensors checkpoint shards:  50% Completed\\rLoading safetensors checkpoint shards: 100% Completed", flush=True)
print("INFO key is", os.environ.get("VLLM_API_KEY"), flush=True)
time.sleep(float(os.environ.get("SLOW", "0")))
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        pages = {{"/health": "", "/version": '{{"version": "0.33.0"}}'}}
        pages["/v1/models"] = json.dumps({{"data": [{{"id": "harbor-7b", "max_model_len": 8192}}]}})
        self.send_response(200 if self.path in pages else 404)
        self.end_headers()
        self.wfile.write(pages.get(self.path, "").encode())
        if os.environ.get("FAULTY"):
            print("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB", flush=True)
            os._exit(1)
    def log_message(self, *_):
        pass
host, port = (sys.argv[sys.argv.index(name) + 1] for name in ("--host", "--port"))
http.server.HTTPServer((host, int(port)), Handler).serve_forever()
'''


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as sock:
        port: int = sock.getsockname()[1]
        return port


def configured(folder: Path, port: int, *, env: str = "", more: str = "") -> None:
    (folder / "vllm").write_text(FAKE.format(python=sys.executable))
    (folder / "vllm").chmod(0o755)
    (folder / "migrate.yaml").write_text(
        f"baseline: {{kind: vllm, url: 'http://127.0.0.1:{port}', api_key_env: BASELINE_KEY, launch: "
        f"{{model: harbor, executable: ./vllm, env: {{{env}}}, {more}}}}}\n"
    )


@contextmanager
def launching(folder: Path, *options: str) -> Iterator[subprocess.Popen[bytes]]:
    with (folder / "said").open("wb") as said:
        process = subprocess.Popen(
            [sys.executable, "-m", "migrate", "launch", "vllm", *options],
            cwd=folder,
            env=os.environ | {"PYTHONPATH": str(ROOT), "BASELINE_KEY": SECRET},
            stdout=said,
            stderr=said,
        )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            process.terminate()
        process.wait(40)


def until(holds: Callable[[], object], folder: Path) -> None:
    deadline = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < deadline, said(folder)
        time.sleep(0.05)


def said(folder: Path) -> str:
    return (folder / "said").read_text()


def alive(folder: Path) -> list[int]:
    """Processes of the server that live, zombies not counted."""
    found = []
    for pid in map(int, (folder / "pids").read_text().split()):
        with suppress(OSError):
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
            found += [pid] if state != "Z" else []
    return found


def started(folder: Path) -> bool:
    file = folder / "pids"
    return file.exists() and len(file.read_text().split()) == 3


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_it_waits_says_what_is_served_and_leaves_nothing(tmp_path: Path, number: int, code: int) -> None:
    configured(tmp_path, port := free_port(), env="DEAF: 1")
    with launching(tmp_path) as process:
        until(lambda: "ready after" in said(tmp_path), tmp_path)
        assert len(alive(tmp_path)) == 3
        process.send_signal(number)
        assert process.wait(30) == code
    assert alive(tmp_path) == []
    assert f"http://127.0.0.1:{port} version 0.33.0, serving harbor-7b" in said(tmp_path)
    kept = json.loads((tmp_path / "launch-baseline.json").read_text())
    assert kept["server"]["version"] == "0.33.0" and kept["server"]["context"] == 8192
    assert kept["server"]["revision"] is kept["server"]["gpu"] is None
    assert 'VLLM_API_KEY="$BASELINE_KEY" ./vllm serve harbor' in kept["command"]
    log = tmp_path / "launch-baseline.log"
    assert SECRET in log.read_text() and log.stat().st_mode & 0o077 == 0
    assert SECRET not in said(tmp_path) + json.dumps(kept)


@pytest.mark.parametrize("slow", [0, 30], ids=["serving", "starting"])
def test_a_launch_that_is_killed_leaves_nothing(tmp_path: Path, slow: int) -> None:
    configured(tmp_path, free_port(), env=f"SLOW: {slow}, DEAF: 1")
    with launching(tmp_path) as process:
        until(lambda: started(tmp_path) and (slow or "ready after" in said(tmp_path)), tmp_path)
        process.kill()
        process.wait()
        until(lambda: not alive(tmp_path), tmp_path)


def test_a_guard_that_is_killed_takes_the_server_with_it(tmp_path: Path) -> None:
    configured(tmp_path, free_port())
    with launching(tmp_path) as process:
        until(lambda: "ready after" in said(tmp_path), tmp_path)
        (guard,) = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        os.kill(int(guard), signal.SIGKILL)
        assert process.wait(30) == 1
        server, engine, worker = map(int, (tmp_path / "pids").read_text().split())
        until(lambda: server not in alive(tmp_path), tmp_path)
        for pid in (engine, worker):  # whoever kills the guard has to end these
            os.kill(pid, signal.SIGKILL)


def test_the_end_of_the_log_is_shown_while_it_starts_and_keys_are_not(tmp_path: Path) -> None:
    configured(tmp_path, free_port(), env="SLOW: 5")
    with launching(tmp_path):
        until(lambda: "INFO key is [hidden]" in said(tmp_path), tmp_path)
    assert SECRET not in said(tmp_path)


def test_a_stop_while_it_starts_is_heard(tmp_path: Path) -> None:
    configured(tmp_path, free_port(), env="SLOW: 60")
    with launching(tmp_path) as process:
        until(lambda: started(tmp_path), tmp_path)
        process.terminate()
        assert process.wait(20) == 0
    assert alive(tmp_path) == []


def test_a_server_that_dies_while_it_serves_is_explained(tmp_path: Path) -> None:
    configured(tmp_path, free_port(), env="FAULTY: 1")
    with launching(tmp_path) as process:
        assert process.wait(30) == 1
    assert "migrate: the server ended with code 1: there was not enough memory" in said(tmp_path)
    assert alive(tmp_path) == []


def test_a_server_that_takes_too_long_is_stopped(tmp_path: Path) -> None:
    configured(tmp_path, free_port(), env="SLOW: 60", more="ready_within: 2s")
    with launching(tmp_path) as process:
        assert process.wait(30) == 1
    assert "did not answer /health within 2 s; launch.ready_within:" in said(tmp_path)
    assert alive(tmp_path) == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("./vllm", "./vllm is not there"),
        ("BASELINE_KEY", "environment variable"),
        ("127.0.0.1", "203.0.113.7 is not an address of this machine"),
    ],
)
def test_what_cannot_start_is_said_before_anything_starts(tmp_path: Path, change: str, words: str) -> None:
    configured(tmp_path, free_port())
    file = tmp_path / "migrate.yaml"
    file.write_text(
        file.read_text().replace(change, {"127.0.0.1": "203.0.113.7"}.get(change, "NOWHERE_AT_ALL"))
    )
    with launching(tmp_path) as process:
        assert process.wait(20) == 2
    assert words.replace("./vllm", "NOWHERE_AT_ALL") in said(tmp_path) and not (tmp_path / "pids").exists()


@pytest.mark.parametrize(
    ("files", "words"),
    [((), "it has no config.json"), (("config.json", "rank0.engine"), "holds a TensorRT engine")],
)
def test_a_directory_that_cannot_be_served_is_said_before_anything_starts(
    tmp_path: Path, files: tuple[str, ...], words: str
) -> None:
    configured(tmp_path, free_port())
    file = tmp_path / "migrate.yaml"
    file.write_text(file.read_text().replace("model: harbor,", "model: ./harbor,"))
    (tmp_path / "harbor").mkdir()
    for name in files:
        (tmp_path / "harbor" / name).touch()
    with launching(tmp_path) as process:
        assert process.wait(20) == 2
    assert words in said(tmp_path) and not (tmp_path / "pids").exists()


def test_a_port_in_use_is_said_before_anything_starts(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as sock:
        configured(tmp_path, sock.getsockname()[1])
        with launching(tmp_path) as process:
            assert process.wait(20) == 2
    assert "is in use; stop what listens there" in said(tmp_path) and not (tmp_path / "pids").exists()


def test_a_container_is_removed_also_when_the_launch_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``docker`` here is a script: what is tested is that the last command is run, and when."""
    docker = tmp_path / "docker"
    docker.write_text('#!/bin/sh\necho "$@" >> calls\n[ "$1" = run ] || exit 0\nexec sleep 600\n')
    docker.chmod(0o755)
    configured(tmp_path, free_port(), more="image: 'vllm/vllm-openai:v0.33.0'")
    calls = tmp_path / "calls"
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with launching(tmp_path, "--docker") as process:
        until(calls.exists, tmp_path)
        process.kill()
        until(lambda: "rm --force migrate-baseline-" in calls.read_text(), tmp_path)


def test_a_container_that_does_not_go_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    docker = tmp_path / "docker"
    docker.write_text('#!/bin/sh\n[ "$1" = run ] && exec sleep 600\nexit 1\n')
    docker.chmod(0o755)
    done = subprocess.run(
        [
            sys.executable,
            "-I",
            guard.__file__,
            "1",
            str(tmp_path / "gone"),
            "rm",
            "a b",
            "--",
            str(docker),
            "stop",
        ],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert f"remove it with: {tmp_path}/gone rm 'a b'" in done.stderr


DEATHS = {
    "wrong flag of vllm": (
        "vllm: error: unrecognized arguments: --num-scheduler-steps 8",
        2,
        "the option --num-scheduler-steps",
    ),
    "wrong flag of trtllm-serve": (
        "Error: No such option: --served_model_name",
        2,
        "the option --served_model_name",
    ),
    "wrong value": (
        "vllm serve: error: argument --port: invalid int value: 'x'",
        2,
        "--port: invalid int value",
    ),
    "parser": ("KeyError: \"Tool parser 'hermess' not found.\"", 1, "no parser hermess"),
    "port in use": ("OSError: [Errno 98] Address already in use", 1, "the port is in use"),
    "port of trtllm-serve": (
        "RuntimeError: Failed to bind socket to localhost:8000: [Errno 98] Address already in use",
        1,
        "the port is in use",
    ),
    "gated": (
        "OSError: You are trying to access a gated repo.\nMake sure to have access to it at https://huggingface.co/m",
        1,
        "the model is gated",
    ),
    "not found": (
        "ValueError: Invalid repository ID or local directory specified: 'Qwen/Qwen33'.",
        1,
        "there is no such model",
    ),
    "no directory": (
        "huggingface_hub.errors.HFValidationError: Repo id must be in the form",
        1,
        "there is no such model",
    ),
    "no network": (
        "OSError: We couldn't connect to 'https://huggingface.co' to load the files",
        1,
        "hub cannot be reached",
    ),
    "context too large for the cache": (
        "ValueError: To serve at least one request with the model's max seq len (131072), (16.00 GiB KV cache is needed",
        1,
        "no room for one request of 131072 tokens",
    ),
    "no cache": (
        "ValueError: No available memory for the cache blocks. Try increasing",
        1,
        "no memory for the KV cache",
    ),
    "memory taken": (
        "ValueError: Free memory on device cuda:0 (1/9 GiB) on startup is less than desired GPU memory utilization (0.92, 8 GiB)",
        1,
        "(utilization 0.92)",
    ),
    "out of memory": (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB.\nRuntimeError: Engine core initialization failed.",
        1,
        "there was not enough memory",
    ),
    "context too long": (
        "User-specified max_model_len (99999) is greater than the derived max_model_len (max_position_embeddings=4096",
        1,
        "not made for 99999 tokens",
    ),
    "CUDA missing": ("RuntimeError: Failed to infer device type, please set", 1, "no usable GPU"),
    "GPU of trtllm-serve": ("ValueError: No GPU devices found on the node", 1, "no usable GPU"),
    "too few GPUs": (
        "ValueError: World size (8) is larger than the number of available GPUs (2) in this node.",
        1,
        "fewer GPUs than the parallel sizes",
    ),
    "architecture": (
        "ValueError: Model architectures ['HarborForCausalLM'] are not supported for now.",
        1,
        "HarborForCausalLM",
    ),
    "remote code": (
        "The repository m contains custom code which must be executed to correctly load the model.",
        1,
        "trust-remote-code: true",
    ),
    "chat template": (
        "The supplied chat template string (./chat.jinja) appears path-like, but doesn't exist! Tried: ./chat.jinja",
        1,
        "no chat template ./chat.jinja",
    ),
    "tokenizer": (
        "OSError: Can't load tokenizer for '/models/harbor'. If you were trying",
        1,
        "no tokenizer",
    ),
    "old GPU": (
        "ValueError: Bfloat16 is only supported on GPUs with compute capability of at least 8.0.",
        1,
        "dtype: half",
    ),
    "disk": ("OSError: [Errno 28] No space left on device", 1, "is full"),
    "docker": (
        "docker: Cannot connect to the Docker daemon at unix:///var/run/docker.sock.",
        125,
        "docker does not answer",
    ),
    "environment": ("ModuleNotFoundError: No module named 'torch'", 1, "No module named 'torch'"),
    "killed": ("INFO Loading weights", 137, "the machine ran out of memory"),
    "no reason": ("\x1b[31mharbour closed\x1b[0m\n\n", 1, "its last words: harbour closed"),
    "silence": ("", 3, "it said nothing"),
}


@pytest.mark.parametrize(("log", "code", "words"), DEATHS.values(), ids=DEATHS)
def test_an_early_death_is_explained_from_the_log(tmp_path: Path, log: str, code: int, words: str) -> None:
    (tmp_path / "log").write_text("INFO 12-02 starting\n" * 3 * bool(log) + log)
    command = Command(words=("sh", "-c", f"cat {tmp_path}/log >&2; exit {code}"))
    with Server(command, os.environ, tmp_path / "server.log") as server:
        deadline = time.monotonic() + 10
        while server.code is None and time.monotonic() < deadline:
            time.sleep(0.02)
        with pytest.raises(ServerDied) as died:
            server.look()
    assert words in str(died.value) and f"code {code}" in str(died.value) and "\n" not in str(died.value)
    assert str(tmp_path / "server.log") in str(died.value)
