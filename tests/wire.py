"""What really goes over the wire between two ends, and answers compared byte for byte."""

from __future__ import annotations

import re
import socket
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from io import BytesIO
from urllib.parse import urlsplit


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


def without_identity(answer: bytes) -> bytes:
    """The answer without what differs between any two answers of one server: ids, times, and the date header."""
    answer = re.sub(rb'"(id|created)":("[^"]*"|\d+)', rb'"\1":0', answer)
    return re.sub(rb"(?i)^date: [^\r]*\r\n", b"date: -\r\n", answer, flags=re.MULTILINE)


def payload(answer: bytes) -> bytes:
    """Head without what is said to the next hop only, and the payload without its chunk framing: a hop may frame as it likes."""
    head, _, body = answer.partition(b"\r\n\r\n")
    lines = [
        line for line in head.split(b"\r\n") if not line.lower().startswith((b"connection:", b"keep-alive:"))
    ]
    if b"transfer-encoding: chunked" in head.lower():
        body = unchunked(body)
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


def unchunked(body: bytes) -> bytes:
    """The payload of a chunked body; fails unless the body is framed exactly and ended."""
    stream, parts = BytesIO(body), []
    while size := int(stream.readline(), 16):
        parts.append(stream.read(size))
        assert len(parts[-1]) == size and stream.read(2) == b"\r\n"
    assert stream.read() == b"\r\n"
    return b"".join(parts)


def one_by_one(answers: bytearray) -> list[bytes]:
    """The answers that went over one connection."""
    return re.split(rb"(?=HTTP/1\.1 \d{3} )", bytes(answers))[1:]


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
