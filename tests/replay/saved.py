"""Reads answers saved with ``curl -si --raw``: status line, headers, body with its chunk framing."""

from __future__ import annotations

from pathlib import Path

from replay.exchange import Ending, Headers, Recording

FIXTURES = Path(__file__).parents[1] / "fixtures"


def saved(path: Path) -> Recording:
    """The recording of a saved answer; each HTTP chunk is one read, a hundredth of a second apart."""
    head, _, body = path.read_bytes().partition(b"\r\n\r\n")
    status, *lines = head.decode("latin-1").split("\r\n")
    headers: Headers = tuple(
        (name, value.strip()) for name, _, value in (line.partition(":") for line in lines)
    )
    chunked = any(name.lower() == "transfer-encoding" for name, _ in headers)
    pieces = _chunks(body) if chunked else [body] if body else []
    times = tuple((100.0 + 0.01 * (n + 2), piece) for n, piece in enumerate(pieces))
    return Recording(
        sent_at=100.0,
        head_at=100.01,
        status=int(status.split()[1]),
        headers=headers,
        chunks=times,
        ended_at=times[-1][0] if times else 100.01,
        ending=Ending.COMPLETE,
    )


def _chunks(body: bytes) -> list[bytes]:
    pieces = []
    while body:
        size, _, body = body.partition(b"\r\n")
        length = int(size, 16)
        if length == 0:
            break
        pieces.append(body[:length])
        body = body[length + 2 :]
    return pieces
