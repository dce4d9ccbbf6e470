"""Real proxies on loopback with two tiny backends behind them, set up as ``--setup`` says."""

from __future__ import annotations

import contextlib
import re
import shutil
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest
import yaml

from migrate.weights.envoy import ENVOY
from migrate.weights.haproxy import HAPROXY
from migrate.weights.nginx import NGINX
from tests.shell import free_port

BESIDE = shutil.which("envoy", path=str(Path(sys.executable).parent))
PROGRAMS = {
    "nginx": shutil.which("nginx"),
    "haproxy": shutil.which("haproxy"),
    "envoy": BESIDE or shutil.which("envoy"),
}


class Named(ThreadingHTTPServer):
    """Answers every request with its name."""

    daemon_threads = True

    def __init__(self, name: str) -> None:
        self.name = name.encode()
        super().__init__(("127.0.0.1", 0), _Handler)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # one segment an answer

    def do_GET(self) -> None:
        assert isinstance(self.server, Named)
        self.send_response(200)
        self.send_header("content-length", str(len(self.server.name)))
        self.end_headers()
        self.wfile.write(self.server.name)

    def handle(self) -> None:
        with contextlib.suppress(ConnectionResetError):  # a proxy that ends
            super().handle()

    def log_message(self, *_: object) -> None:
        pass


@contextlib.contextmanager
def backends() -> Iterator[dict[str, str]]:
    """Addresses of a baseline and a candidate."""
    both = [Named("baseline"), Named("candidate")]
    for one in both:
        threading.Thread(target=one.serve_forever, daemon=True).start()
    try:
        yield {one.name.decode(): f"127.0.0.1:{one.server_address[1]}" for one in both}
    finally:
        for one in both:
            one.shutdown()
            one.server_close()


class Proxy:
    """A running proxy. ``file``: what ``migrate weights`` writes; ``then``: what it is to run."""

    def __init__(self, name: str, file: Path, then: str, port: int) -> None:
        self.name, self.file, self.then, self.port = name, file, then, port

    def asked(self, sessions: list[str | None]) -> list[str]:
        """Who answered each request; ``None`` is one without a session."""
        with httpx.Client(trust_env=False, timeout=10) as client:
            return [
                client.get(
                    f"http://127.0.0.1:{self.port}/", headers={"x-session-id": session} if session else {}
                ).text
                for session in sessions
            ]

    def share(self, requests: int, *, sessions: bool = True) -> float:
        """Of so many requests, each in a session of its own or in none, the part that the candidate answered."""
        answers = self.asked([f"session-{n}" if sessions else None for n in range(requests)])
        assert set(answers) <= {"baseline", "candidate"}, Counter(answers).most_common(3)
        return answers.count("candidate") / requests


@contextlib.contextmanager
def running(name: str, folder: Path, first: str) -> Iterator[Proxy]:
    """The proxy with a file that holds ``first``. Skips where the program is not here."""
    program = PROGRAMS[name]
    if program is None:
        pytest.skip(f"{name} is not installed")
    port = free_port()
    with backends() as addresses:
        file, command, then = _SET_UP[name](folder, port, addresses, program)
        file.write_text(first)
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            _answers(process, int(port), folder / "log")
            yield Proxy(name, file, then, int(port))
        finally:
            process.terminate()
            process.wait(10)


def _answers(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    for _ in range(200):
        assert process.poll() is None, log.read_text()
        with contextlib.suppress(httpx.HTTPError):
            if httpx.get(f"http://127.0.0.1:{port}/", trust_env=False).is_success:
                return
        time.sleep(0.05)
    raise AssertionError(log.read_text())


def _moved(text: str, port: str, addresses: dict[str, str]) -> str:
    """The printed setup, on ports that are free here."""
    text = re.sub(r"\b10\.0\.0\.5:8000", addresses["baseline"], text)
    return re.sub(r"\b10\.0\.0\.9:8000", addresses["candidate"], text)


def _nginx(folder: Path, port: str, addresses: dict[str, str], program: str) -> tuple[Path, list[str], str]:
    file, config = folder / "split.conf", folder / "nginx.conf"
    setup = _moved(NGINX.setup, port, addresses).replace("listen 8080", f"listen 127.0.0.1:{port}")
    setup = setup.replace("/etc/nginx/migrate-split.conf", str(file))
    paths = "".join(
        f"{kind}_temp_path {folder}/{kind};\n"
        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    config.write_text(
        f"daemon off; pid {folder}/pid; error_log stderr; worker_processes 1;\nevents {{}}\n"
        f"http {{\naccess_log off;\nkeepalive_requests 100000;\n{paths}{setup}}}\n"
    )
    command = [program, "-p", str(folder), "-e", "stderr", "-c", str(config)]
    return file, command, f"{program} -e stderr -c {config} -s reload"


def _haproxy(folder: Path, port: str, addresses: dict[str, str], program: str) -> tuple[Path, list[str], str]:
    file, config = folder / "migrate.map", folder / "haproxy.cfg"
    setup = _moved(HAPROXY.setup, port, addresses).replace("bind :8080", f"bind 127.0.0.1:{port}")
    setup = setup.replace("/etc/haproxy/migrate.map", str(file))
    timeouts = "defaults\n  timeout client 10s\n  timeout server 10s\n  timeout connect 5s\n"
    config.write_text(f"global\n  pidfile {folder}/pid\n{timeouts}{setup}")
    command = [program, "-W", "-db", "-p", str(folder / "pid"), "-f", str(config)]
    return file, command, f"sh -c 'kill -USR2 $(cat {folder}/pid)'"


def _envoy(folder: Path, port: str, addresses: dict[str, str], program: str) -> tuple[Path, list[str], str]:
    watched, config = folder / "watched", folder / "envoy.yaml"
    watched.mkdir()
    file = watched / "runtime.json"
    text = ENVOY.setup.replace("/etc/envoy/migrate", str(watched))
    bootstrap = yaml.safe_load(text)
    route = text.partition("http_connection_manager:\n")[2].replace("\n# ", "\n").removeprefix("# ")
    bootstrap["node"] = {"id": "test", "cluster": "test"}
    bootstrap["static_resources"] = {
        "listeners": [_listener(int(port), yaml.safe_load(route))],
        "clusters": [_cluster(name, address) for name, address in addresses.items()],
    }
    config.write_text(yaml.safe_dump(bootstrap))
    return file, [program, "-c", str(config), "--use-dynamic-base-id", "--concurrency", "1", "-l", "warn"], ""


def _listener(port: int, routes: object) -> dict[str, object]:
    at = "type.googleapis.com/envoy.extensions.filters"
    manager = {
        "@type": f"{at}.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": "llm",
        "route_config": {"virtual_hosts": [{"name": "llm", "domains": ["*"], "routes": routes}]},
        "http_filters": [{"name": "router", "typed_config": {"@type": f"{at}.http.router.v3.Router"}}],
    }
    chain = {"filters": [{"name": "http", "typed_config": manager}]}
    return {"name": "llm", "address": _address("127.0.0.1", port), "filter_chains": [chain]}


def _cluster(name: str, address: str) -> dict[str, object]:
    host, _, port = address.partition(":")
    there = {"endpoint": {"address": _address(host, int(port))}}
    return {
        "name": name,
        "type": "STATIC",
        "load_assignment": {"cluster_name": name, "endpoints": [{"lb_endpoints": [there]}]},
    }


def _address(host: str, port: int) -> dict[str, object]:
    return {"socket_address": {"address": host, "port_value": port}}


_SET_UP = {"nginx": _nginx, "haproxy": _haproxy, "envoy": _envoy}
