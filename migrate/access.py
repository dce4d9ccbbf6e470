"""Who may use the admin listener: people's tools with the token, this machine without one, and no other web page."""

from __future__ import annotations

import base64
import hmac
import ipaddress
from urllib.parse import urlsplit

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

OPEN = frozenset({"/healthz", "/readyz"})
"""What probes ask, which have no token; they tell nothing of the traffic."""
_READING = frozenset({"GET", "HEAD"})
_UNKNOWN = (
    "the token is missing or wrong: send it as the header 'Authorization: Bearer TOKEN', or as the password that a browser asks "
    "for, with any user; gateway.admin_token_env in the configuration names the environment variable that holds it"
)
"""The key of the configuration, not the variable: whoever asks is not known yet."""


def guarded(token: str | None) -> Middleware:
    """Lets a request through when it may: see ``refusal``."""

    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        found = refusal(request, token)
        if found is None:
            return await handler(request)
        status, why = found
        headers = {"WWW-Authenticate": 'Basic realm="llm-migrate", charset="UTF-8"'} if status == 401 else {}
        return web.json_response({"error": why}, status=status, headers=headers)

    return guard


def refusal(request: web.Request, token: str | None) -> tuple[int, str] | None:
    """Status and reason for a request that may not; ``None`` when it may.

    With a token everything but ``OPEN`` needs it, as ``Authorization: Bearer TOKEN`` or as the password that a browser asks
    for. Without one the listener is on loopback, and the name it is called by has to be this machine's: a page elsewhere may
    have its own name point here. A change has to come from the listener's own page, or from no page at all.
    """
    host = request.headers.get("Host", "")
    if request.method not in _READING and _from_elsewhere(request, host):
        return 403, "changes from web pages of others are refused"
    if request.path in OPEN:
        return None
    if token is not None:
        return None if _given(request.headers.get("Authorization", ""), token) else (401, _UNKNOWN)
    return None if _this_machine(host) else (403, f"{host[:200]!r} is no name of this machine")


def _from_elsewhere(request: web.Request, host: str) -> bool:
    """Browsers say where a page is from that changes something; people's tools say nothing."""
    origin = request.headers.get("Origin")
    if origin is not None and _place(origin) != host.lower():
        return True
    return request.headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin")


def _place(origin: str) -> str | None:
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return None


def _given(authorization: str, token: str) -> bool:
    scheme, _, value = authorization.partition(" ")
    if scheme.lower() == "basic":
        try:
            value = base64.b64decode(value, validate=True).decode("utf-8", "replace").partition(":")[2]
        except ValueError:
            return False
    return scheme.lower() in ("basic", "bearer") and hmac.compare_digest(
        value.strip().encode("utf-8", "surrogateescape"), token.encode()
    )


def _this_machine(host: str) -> bool:
    """Whether a Host header names loopback."""
    try:
        name = urlsplit(f"//{host}").hostname or ""
        return name == "localhost" or ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
