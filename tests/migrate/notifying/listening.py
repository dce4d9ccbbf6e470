"""Receivers on loopback that write down what they get: by HTTP, and by SMTP."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socketserver
import ssl
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Any

from aiohttp import web
from aiohttp.test_utils import TestServer
from aiosmtpd.controller import Controller

from tests.serving import free_port


@dataclass(kw_only=True)
class Hook:
    """A receiver by HTTP. ``answers``: one after the other, the last one for ever; a status, with headers, or ``hang``."""

    answers: list[int | str | tuple[int, dict[str, str]]] = field(default_factory=lambda: [200])
    got: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)
    url: str = ""

    @property
    def bodies(self) -> list[Any]:
        """What came, as JSON."""
        return [json.loads(body) for _, _, body in self.got]

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Writes down and answers."""
        self.got.append((request.path_qs, dict(request.headers), await request.read()))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if answer == "hang":
            await asyncio.sleep(60)
        status, headers = answer if isinstance(answer, tuple) else (int(answer), {})
        return web.Response(status=status, headers=headers, text="secret-looking words of the receiver")


@asynccontextmanager
async def hook(*answers: Any, tls: ssl.SSLContext | None = None) -> AsyncIterator[Hook]:
    """A receiver that is there meanwhile."""
    one = Hook(answers=list(answers) or [200])
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", one.handle)
    server = TestServer(app, scheme="https" if tls else "http")
    await server.start_server(ssl=tls)
    async with server:
        one.url = str(server.make_url("")).rstrip("/")
        yield one


@dataclass(kw_only=True)
class Mailbox:
    """What a mail server took. ``says``: its answer to a message."""

    says: str = "250 OK"
    got: list[tuple[list[str], EmailMessage]] = field(default_factory=list)

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:  # noqa: N802 - aiosmtpd's name
        """Keeps a letter."""
        letter = message_from_bytes(envelope.content, policy=policy.default)
        self.got.append((envelope.rcpt_tos, letter))
        return self.says


@contextmanager
def mailbox(says: str = "250 OK", **server: Any) -> Iterator[tuple[Mailbox, int]]:
    """A mail server that is there meanwhile, and its port."""
    box = Mailbox(says=says)
    port = free_port()
    controller = Controller(box, hostname="127.0.0.1", port=port, **server)
    controller.start()
    try:
        yield box, port
    finally:
        controller.stop()


@contextmanager
def endless(spoken: bytes) -> Iterator[int]:
    """A server that says the same for ever to whoever connects, and its port."""

    class Talk(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with contextlib.suppress(OSError):
                while not over.wait(0.01):
                    self.request.sendall(spoken)

    over = threading.Event()
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Talk) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            over.set()
            server.shutdown()
            thread.join()
