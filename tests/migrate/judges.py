"""A judge model on a real socket: what it replies is a function of what it was sent."""

from __future__ import annotations

import contextlib
import json
import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Shown = dict[str, str]
"""The parts between the marks, by name."""
_PART = re.compile(r"<([0-9a-f]{16}) ([a-z ]+)>\n(.*?)\n</\1 \2>", re.DOTALL)


@dataclass(slots=True)
class Judge:
    """A server, and what it was sent."""

    url: str
    asked: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str | None] = field(default_factory=list)

    @property
    def shown(self) -> list[Shown]:
        """What was between the marks, request by request."""
        return [parts(body) for body in self.asked]


def parts(body: dict[str, Any]) -> Shown:
    """What stands between the marks of one request."""
    return {name: text for _, name, text in _PART.findall(body["messages"][-1]["content"])}


@contextlib.contextmanager
def judging(reply: Callable[[dict[str, Any]], str | int]) -> Iterator[Judge]:
    """A server whose reply is a text, or an error of that status."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with lock:
                judge.asked.append(body)
                judge.keys.append(self.headers.get("Authorization"))
                said = reply(body)
            choice = {"index": 0, "message": {"role": "assistant", "content": said}, "finish_reason": "stop"}
            usage = {"prompt_tokens": 90, "completion_tokens": 10, "total_tokens": 100}
            fine = {"object": "chat.completion", "model": "j", "choices": [choice], "usage": usage}
            data = json.dumps(
                fine if isinstance(said, str) else {"error": {"message": "no", "type": "x"}}
            ).encode()
            self.send_response(200 if isinstance(said, str) else said)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            return

    lock = threading.Lock()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    judge = Judge(f"http://127.0.0.1:{server.server_address[1]}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield judge
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
