"""Heads of messages as bytes: which header fields a gateway passes on, and how a head is written. Pure.

Fields keep their order, duplicates and spelling. Hop-by-hop fields are those of RFC 9110, section 7.6.1, and whatever
``Connection`` names; ``Transfer-Encoding`` stays where the body on the next hop is framed the same way.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import Enum

from replay.exchange import Headers

RawHeaders = Iterable[tuple[bytes, bytes]]
"""Pairs as they were on the wire."""

_HOP_BY_HOP = frozenset(
    {b"connection", b"keep-alive", b"proxy-connection", b"te", b"transfer-encoding", b"upgrade"}
)
_TRAILERS = re.compile(
    rb"\r\n0+[ \t]*(?:;[^\r\n]*)?\r\n((?:[!#$%&'*+.^_`|~0-9A-Za-z-]+:[^\r\n]*\r\n)*)\r\n\Z"
)
"""The last chunk, with any extension, and the field lines after it (RFC 9112, section 7.1.2)."""
_NEVER_NAMED = frozenset({b"host", b"content-length", b"authorization"})
"""A ``Connection`` field that names these is an attack or a mistake: dropping them would change the message."""

_KEPT_EXACT = frozenset(
    {"accept", "content-type", "content-encoding", "user-agent", "x-request-id", "traceparent", "tracestate"}
)
_KEPT_PREFIXES = ("openai-", "x-session", "x-conversation")
_KEPT_PARAMETERS = frozenset({"api-version", "api_version", "beta", "model", "version"})
_SECRET_WORDS = ("token", "key", "secret", "auth", "password", "cookie", "credential")


class Framing(Enum):
    """How the end of a body is told on one hop."""

    NONE = "none"
    LENGTH = "length"
    CHUNKED = "chunked"
    UNTIL_CLOSE = "until_close"


def dropped(raw: RawHeaders) -> frozenset[bytes]:
    """Lower-case names of the fields that end at this hop."""
    named = [value for name, value in raw if name.lower() == b"connection"]
    if not named:
        return _HOP_BY_HOP
    tokens = {token.strip().lower() for value in named for token in value.split(b",")}
    return _HOP_BY_HOP | (tokens - _NEVER_NAMED)


def wants_trailers(raw: RawHeaders) -> bool:
    """Whether the client said that it reads trailers."""
    return any(name.lower() == b"te" and b"trailers" in value.lower() for name, value in raw)


def request_head(
    method: bytes, target: bytes, raw: RawHeaders, *, host: bytes, length: int | None, chunked: bool = False
) -> bytes:
    """The head that goes to the baseline: the client's own, with the baseline's Host and the body's framing.

    ``length`` is the body's size in bytes; ``None`` means that the body is absent, or chunked when ``chunked`` is set.
    ``Expect`` ends here, because the gateway has answered it.
    """
    drop = dropped(raw) | {b"expect", b"content-length"}
    lines = [b"%b %b HTTP/1.1" % (method, target)]
    placed = False
    for name, value in raw:
        lower = name.lower()
        if lower == b"host":
            lines.append(b"%b: %b" % (name, host))
            placed = True
        elif lower == b"content-length" and length is not None:
            lines.append(b"%b: %d" % (name, length))
            length = None
        elif lower not in drop:
            lines.append(b"%b: %b" % (name, value))
    if not placed:
        lines.insert(1, b"Host: " + host)
    if chunked:
        lines.append(b"Transfer-Encoding: chunked")
    elif length is not None:
        lines.append(b"Content-Length: %d" % length)
    if wants_trailers(raw):
        lines.append(b"TE: trailers\r\nConnection: TE")
    return b"\r\n".join(lines) + b"\r\n\r\n"


def response_head(
    status: int, reason: bytes, raw: RawHeaders, *, framing: Framing, connection: bytes = b""
) -> bytes:
    """The head that goes to the client. ``connection`` is our own hop's word: ``close``, ``keep-alive`` or nothing."""
    drop = dropped(raw)
    if framing is Framing.CHUNKED:
        drop = (drop - {b"transfer-encoding"}) | {b"content-length"}
    lines = [b"HTTP/1.1 %d %b" % (status, reason)]
    lines += [b"%b: %b" % pair for pair in raw if pair[0].lower() not in drop]
    if connection:
        lines.append(b"Connection: " + connection)
    return b"\r\n".join(lines) + b"\r\n\r\n"


def origin_form(target: bytes, method: bytes = b"") -> bytes:
    """The path and query of a request target: ``http://host/a?b`` becomes ``/a?b``; all else stays as it was sent.

    ``OPTIONS`` of a host without a path is ``*`` (RFC 9112, section 3.2.4).
    """
    if target[:1] == b"/" or b"://" not in target:
        return target
    rest = target.partition(b"://")[2]
    cut = min((at for at in (rest.find(b"/"), rest.find(b"?")) if at >= 0), default=-1)
    if cut < 0:
        return b"*" if method == b"OPTIONS" else b"/"
    return rest[cut:] if rest[cut : cut + 1] == b"/" else b"/" + rest[cut:]


def trailers(tail: bytes) -> bytes:
    """The trailer section that ends a chunked message, without its final empty line; empty when there is none.

    ``tail`` is the end of the message as received. Data that looks like a last chunk is followed by the end of its chunk,
    which is no field line, so only the real one is followed by nothing but fields.
    """
    found = _TRAILERS.search(b"\r\n" + tail)
    return found[1] if found else b""


def decoded(raw: RawHeaders) -> Headers:
    """Pairs as text, one character a byte."""
    return tuple((name.decode("latin-1"), value.decode("latin-1")) for name, value in raw)


def for_mirror(raw: RawHeaders, *, also: str = "") -> Headers:
    """The request fields that validation may see: an allow-list, so that no credential leaves by a name unknown here.

    ``also`` names one more, the header that requests are sampled by.
    """
    return allowed(decoded(raw), also=also)


def for_another(raw: RawHeaders) -> list[tuple[bytes, bytes]]:
    """A client's fields for a backend that has a key of its own: an allow-list, as for a copy."""
    return [pair for pair in raw if _goes_on(pair[0].decode("latin-1").lower())]


def _goes_on(name: str) -> bool:
    return _kept(name, "") or name in ("accept-encoding", "accept-language")


def allowed(headers: Headers, *, also: str = "") -> Headers:
    """``for_mirror`` of fields that are text already."""
    return tuple(pair for pair in headers if _kept(pair[0].lower(), also))


def without_credentials(target: str) -> str:
    """A path and query for the mirror: an allow-list, because a key may have any name."""
    path, mark, query = target.partition("?")
    if not mark:
        return target
    kept = [part for part in query.split("&") if part.partition("=")[0].lower() in _KEPT_PARAMETERS]
    return f"{path}?{'&'.join(kept)}" if kept else path


def _kept(name: str, also: str) -> bool:
    if name in _KEPT_EXACT:
        return True
    if any(word in name for word in _SECRET_WORDS):
        return False
    return name.startswith(_KEPT_PREFIXES) or name == also
