"""Servers to check: the simulator, on TLS too, and ones that say their bytes whatever they are asked. All on loopback."""

from __future__ import annotations

import asyncio
import datetime as dt
import ipaddress
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import orjson
import trustme
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from replay.simulator.server import serving
from replay.simulator.settings import Faults, Settings
from tests.replay.servers import CHAT_ANSWER, Act, acting, reply

MODEL = "harbor-7b"
Server = Callable[[Path], AbstractAsyncContextManager[str]]
"""Given an empty folder, a running server; entering it gives the address."""


def simulated(*, faults: Faults | None = None, **settings: object) -> Server:
    """The simulator; it serves one model unless told otherwise."""
    told = {"models": (MODEL,), "faults": faults or Faults()} | settings
    return lambda _: serving(Settings(**told))  # type: ignore[arg-type]


def saying(act: Act) -> Server:
    """A server that does what ``act`` says with every request."""
    return lambda _: acting(act)


def api(*chunks: bytes, status: str = "200 OK", headers: bytes = b"", kind: str = "vllm") -> Server:
    """A server that is healthy and lists its model, and answers ``chunks`` to whatever is generated."""

    async def act(request: bytes, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        path = request.split(b" ", 2)[1]
        if path == b"/v1/models":
            card = {"id": MODEL, "object": "model", "owned_by": kind}
            writer.write(reply(orjson.dumps({"object": "list", "data": [card]})))
        elif path == b"/v1/chat/completions":
            writer.write(reply(b"".join(chunks), status=status, headers=headers))
        else:
            writer.write(reply(b""))

    return saying(act)


def dying(answers: int) -> Server:
    """A server that gives its first ``answers`` and then none: health stays green, and every request is a 500."""
    given = 0

    async def act(request: bytes, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal given
        path = request.split(b" ", 2)[1]
        given += path == b"/v1/chat/completions"
        if path == b"/v1/models":
            writer.write(reply(orjson.dumps({"data": [{"id": MODEL, "owned_by": "vllm"}]})))
        elif path != b"/v1/chat/completions":
            writer.write(reply(b""))
        elif given > answers:
            dead = {"error": {"message": "EngineCore encountered an issue.", "type": "InternalServerError"}}
            writer.write(reply(orjson.dumps(dead), status="500 Internal Server Error"))
        elif b'"stream":true' in request:
            writer.write(reply(_STREAM, headers=b"Content-Type: text/event-stream\r\n"))
        else:
            writer.write(reply(CHAT_ANSWER))

    return saying(act)


_STREAM = (
    b'data: {"choices":[{"index":0,"delta":{"content":"yes"}}]}\n\n'
    b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
)


def everywhere(answer: bytes) -> Server:
    """A server that gives the same answer to everything."""

    async def act(_: bytes, __: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(answer)

    return saying(act)


@asynccontextmanager
async def _nobody(_: Path) -> AsyncIterator[str]:
    server = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    server.close()
    await server.wait_closed()
    yield f"http://127.0.0.1:{port}"


NOBODY: Server = _nobody
SSH = everywhere(b"SSH-2.0-OpenSSH_9.2p1\r\n")


def on_tls(certified: Callable[[Path], ssl.SSLContext]) -> Server:
    """The simulator on TLS, with a certificate that is made for it."""
    return lambda folder: serving(Settings(models=(MODEL,)), tls=certified(folder))


def self_signed(folder: Path) -> ssl.SSLContext:
    """A certificate that nobody but itself vouches for."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = dt.datetime.now(dt.UTC)
    here = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=90))
        .add_extension(here, critical=False)
        .sign(key, hashes.SHA256())
    )
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (folder / "server.pem").write_bytes(secret + certificate.public_bytes(serialization.Encoding.PEM))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "server.pem")
    return context


def issued(*names: str, days: int = 90) -> Callable[[Path], ssl.SSLContext]:
    """A certificate for ``names`` that expires in ``days``, of an issuer whose own is in ``issuer.pem`` of the folder."""

    def certified(folder: Path) -> ssl.SSLContext:
        issuer = trustme.CA()
        issuer.cert_pem.write_to_path(str(folder / "issuer.pem"))
        until = dt.datetime.now(dt.UTC) + dt.timedelta(days=days)
        since = until - dt.timedelta(days=400)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        issuer.issue_cert(*names, not_before=since, not_after=until).configure_cert(context)
        return context

    return certified
