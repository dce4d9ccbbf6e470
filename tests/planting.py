"""A fault planted between a replay and a real server, and what the report says of it."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx

Body = dict[str, Any]
Change = Callable[[Body], Body]
_POLICY = "policy: {minimum_span: 0s, minimum_pairs: 20, warmup: 0s, rehearsal: true}\n"


def same(body: Body) -> Body:
    """Nothing is planted."""
    return body


@contextmanager
def changing(url: str, request: Change = same, answer: Change = same) -> Iterator[str]:
    """A server that passes requests on to ``url`` and answers back, each changed; answers that are no JSON pass as they are."""
    client = httpx.Client(timeout=120)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            came = client.post(url + self.path, json=request(body))
            data = came.content
            if came.headers["content-type"].startswith("application/json") and came.status_code == 200:
                data = json.dumps(answer(came.json())).encode()
            self.send_response(came.status_code)
            self.send_header("Content-Type", came.headers["content-type"])
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            """Nobody reads it."""

    with client, ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def reported(
    folder: Path, baseline: str, candidate: str, requests: Iterable[Body], backend: str = "kind: vllm"
) -> dict[str, Any]:
    """The report on a replay of ``requests`` to both, each sent to the baseline twice."""
    (folder / "migrate.yaml").write_text(
        f"baseline: {{{backend}, url: '{baseline}'}}\ncandidate: {{{backend}, url: '{candidate}'}}\n{_POLICY}"
    )
    (folder / "log.jsonl").write_text("".join(json.dumps(one) + "\n" for one in requests))
    for words in (
        ["import", "log.jsonl", "--quiet"],
        ["replay", "--concurrency", "4", "--repeat", "100%", "--quiet"],
        ["report", "--format", "json", "--output", "report.json"],
    ):
        done = subprocess.run(
            [sys.executable, "-m", "migrate", *words], cwd=folder, capture_output=True, text=True, check=False
        )
        assert done.returncode in (0, 3, 4), done.stderr
    document: dict[str, Any] = json.loads((folder / "report.json").read_text())
    return document


def rule(document: dict[str, Any], name: str) -> dict[str, Any]:
    """One rule of a report."""
    return next(one for one in document["rules"] if one["rule"] == name)
