"""The way to a backend: its name, a connection, TLS. Each step has a limit, and its own words for what stands in the way."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import os
import socket
import ssl
import threading
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from time import monotonic
from typing import Any
from urllib.parse import urlsplit

from migrate.preflight.lines import Line, clean, failed, ok, unlike
from replay.backends import Facts

_RESOLVE_S = 2.0
_CONNECT_S = 2.0
_TLS_S = 2.0
_ADDRESSES = 3
"""So many of a name's addresses are tried."""
_SOON = timedelta(days=14)
_PROXIES = ("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY")
_SELF_SIGNED = (18, 19)
_EXPIRED = 10
_NOT_YET = 9
_OTHER_NAME = (62, 64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a backend is said to be."""

    url: str
    host: str
    port: int
    secure: bool


def place(url: str) -> Place:
    """The place in a backend's (checked) address."""
    parts = urlsplit(url)
    secure = parts.scheme == "https"
    return Place(
        url=url, host=parts.hostname or "", port=parts.port or (443 if secure else 80), secure=secure
    )


async def reach(at: Place, facts: Facts, *, connect_s: float, limit_s: float) -> tuple[Line, ...]:
    """Lines on name, connection and TLS, up to the first that fails.

    ``connect_s``: what a run would wait for a connection. ``limit_s``: the most that one step may take here.
    """
    found = await _resolved(at, min(_RESOLVE_S, limit_s))
    if isinstance(found, Line):
        return (found,)
    name = ok("name", _few(found) if _literal(at.host) else f"{clean(at.host)} is {_few(found)}")
    connected = await _connected(
        at, found, facts, min(connect_s, _CONNECT_S, limit_s) / len(found[:_ADDRESSES])
    )
    if isinstance(connected, Line):
        return name, connected
    address, took = connected
    lines = name, ok("connect", f"{1000 * took:.1f} ms to {address} port {at.port}")
    return (*lines, await _secured(at, address) if at.secure else _in_clear(address))


def _few(addresses: list[str]) -> str:
    return addresses[0] if len(addresses) == 1 else f"{addresses[0]} and {len(addresses) - 1} more"


async def _resolved(at: Place, limit_s: float) -> list[str] | Line:
    """The addresses of a name, in the order to try them."""
    try:
        async with asyncio.timeout(limit_s):
            found = await _lookup(at.host, at.port)
    except TimeoutError:
        return failed(
            "name",
            f"{clean(at.host)} was not resolved within {limit_s:g} s",
            f"look at the DNS of this machine{_proxied(os.environ)}",
        )
    except (OSError, UnicodeError) as error:
        words = error.strerror if isinstance(error, OSError) and error.strerror else "no valid host name"
        return failed(
            "name",
            f"{clean(at.host)} has no address: {words}",
            f"correct the host in url, or the DNS of this machine{_proxied(os.environ)}",
        )
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


async def _lookup(host: str, port: int) -> list[Any]:
    """``getaddrinfo`` on a thread that nobody waits for: a resolver that hangs holds up nothing."""
    loop = asyncio.get_running_loop()
    found: asyncio.Future[list[Any]] = loop.create_future()

    def settle(result: list[Any] | None, error: Exception | None) -> None:
        if found.done():
            return
        if error is not None:
            found.set_exception(error)
        else:
            found.set_result(result or [])

    def look() -> None:
        result, error = None, None
        try:
            result = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as caught:
            error = caught
        with contextlib.suppress(RuntimeError):  # the loop has gone on without us
            loop.call_soon_threadsafe(settle, result, error)

    threading.Thread(target=look, name="resolver", daemon=True).start()
    return await found


async def _connected(
    at: Place, addresses: list[str], facts: Facts, limit_s: float
) -> tuple[str, float] | Line:
    """The first address that takes a connection, and how long that took in seconds."""
    problems: list[tuple[str, str]] = []
    for address in addresses[:_ADDRESSES]:
        start = monotonic()
        try:
            async with _connection(address, at.port, limit_s):
                return address, monotonic() - start
        except TimeoutError:
            problems.append((address, f"no answer within {limit_s:g} s"))
        except OSError as error:
            refused = isinstance(error, ConnectionRefusedError)
            problems.append((address, "refused" if refused else error.strerror or type(error).__name__))
    tried = "; ".join(f"{address} port {at.port}: {words}" for address, words in problems)
    return failed(
        "connect",
        f"{clean(at.url)} cannot be reached ({tried})",
        await _remedy(at, problems, facts),
        passing=True,
    )


async def _remedy(at: Place, problems: list[tuple[str, str]], facts: Facts) -> str:
    """What stands in the way of a connection, as far as this machine can tell."""
    only_six = all(":" in address for address, _ in problems) and not _literal(at.host)
    refused = any(words == "refused" for _, words in problems)
    proxied = _proxied(os.environ)
    if only_six:
        return f"{clean(at.host)} has IPv6 addresses only: name the server's IPv4 address, or let it listen on IPv6{proxied}"
    if refused and _here(problems[0][0]):
        within = "; in a container, localhost is the container itself: name the server's own host"
        if problems[0][0] != "127.0.0.1" and await _answers("127.0.0.1", at.port):
            return f"the server listens on 127.0.0.1 only: {facts.changes['localhost']}"
        return f"is it running, and on this port? --watch waits for it{within}"
    if refused:
        return (
            f"is it running, and on this port? A server that listens on localhost only refuses everybody else: "
            f"{facts.changes['localhost']}{proxied}"
        )
    return f"look at firewall and route between this machine and {clean(at.host)}{proxied}"


def _literal(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _here(address: str) -> bool:
    return ipaddress.ip_address(address.partition("%")[0]).is_loopback


def _proxied(environment: Mapping[str, str]) -> str:
    """A proxy that other programs use and a run does not; its address may hold a password."""
    names = [name for one in _PROXIES for name in (one, one.lower()) if environment.get(name)]
    if not names:
        return ""
    return f"; {names[0]} is set, but backends are called directly, without a proxy: open a direct route"


async def _answers(host: str, port: int) -> bool:
    try:
        async with _connection(host, port, 0.5):
            return True
    except (TimeoutError, OSError):
        return False


@contextlib.asynccontextmanager
async def _connection(
    host: str, port: int, limit_s: float, **tls: Any
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """A connection that lasts ``limit_s`` at most. Raises TimeoutError and OSError, ssl.SSLError among them."""
    async with asyncio.timeout(limit_s):
        reader, writer = await asyncio.open_connection(host, port, **tls)
        try:
            yield reader, writer
        finally:
            writer.transport.abort()
            with contextlib.suppress(OSError):
                await writer.wait_closed()


def _in_clear(address: str) -> Line:
    if ipaddress.ip_address(address.partition("%")[0]).is_private:
        return ok("tls", "none: plain HTTP within a private network")
    return unlike("tls", "none: keys and texts cross the internet in the clear", "write https:// in url")


async def _secured(at: Place, address: str) -> Line:
    try:
        told = await _handshake(address, at.port, at.host, ssl.create_default_context())
    except ssl.SSLCertVerificationError as error:
        return _untrusted(at, error)
    except (TimeoutError, OSError) as error:
        if await speaks_http(address, at.port):
            plain = at.url.replace("https://", "http://", 1)
            return failed("tls", "the port speaks plain HTTP, and url says https", f"url: {clean(plain)}")
        words = getattr(error, "reason", None) or type(error).__name__
        return failed("tls", f"no TLS on this port: {clean(str(words))}", "is this the server's port?")
    version, until = told
    detail = f"{version}, certificate valid until {until:%Y-%m-%d}"
    if until - datetime.now(UTC) < _SOON:
        return unlike("tls", detail, "the certificate expires within two weeks: renew it before the run")
    return ok("tls", detail)


async def _handshake(address: str, port: int, host: str, context: ssl.SSLContext) -> tuple[str, datetime]:
    async with _connection(address, port, _TLS_S, ssl=context, server_hostname=host) as (_, writer):
        plug: ssl.SSLObject = writer.get_extra_info("ssl_object")
        until = ssl.cert_time_to_seconds(str((plug.getpeercert() or {})["notAfter"]))
        version = plug.version() or "TLS"
    return version, datetime.fromtimestamp(until, UTC)


def _untrusted(at: Place, error: ssl.SSLCertVerificationError) -> Line:
    host, code = clean(at.host), error.verify_code
    if code == _EXPIRED:
        return failed("tls", "the certificate has expired", f"renew it on {host}")
    if code == _NOT_YET:
        return failed("tls", "the certificate is not valid yet", "look at the clocks of both machines")
    if code in _OTHER_NAME:
        return failed("tls", f"the certificate is not for {host}", "write the name that it is for in url")
    signed = "is self-signed" if code in _SELF_SIGNED else "is of an issuer that this machine does not trust"
    return failed(
        "tls",
        f"the certificate {signed}",
        "name the issuer's certificate in SSL_CERT_FILE, for migrate check and the run alike",
    )


async def speaks_http(address: str, port: int) -> bool:
    """Whether a port answers plain HTTP."""
    try:
        async with _connection(address, port, 1.0) as (reader, writer):
            writer.write(b"GET / HTTP/1.0\r\nHost: localhost\r\n\r\n")
            return await reader.read(5) == b"HTTP/"
    except (TimeoutError, OSError):
        return False


async def speaks_tls(host: str, port: int) -> bool:
    """Whether a port answers a TLS handshake, whatever its certificate."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        async with _connection(host, port, 1.0, ssl=context, server_hostname=host):
            return True
    except (TimeoutError, OSError):
        return False
