"""A response as ``curl -si`` saves it, read back into a recording. Pure."""

from __future__ import annotations

import itertools
import re
from bisect import bisect_left

from replay.coding import Chunks, plain
from replay.exchange import Ending, Headers, Recording

_STATUS = re.compile(rb"HTTP/\d(?:\.\d)? (\d{3})[^\r\n]*\r?\n")
_BLANK = re.compile(rb"\r?\n\r?\n")
_SIZE = re.compile(rb"([0-9A-Fa-f]{1,16})[ \t]*(?:;[^\r\n]*)?\r?\n")
_MAGIC = {"gzip": b"\x1f\x8b", "x-gzip": b"\x1f\x8b", "zstd": b"\x28\xb5\x2f\xfd"}


class NotSaved(ValueError):
    """The bytes are no saved response; the message says what was looked for."""


def read_saved(data: bytes, timing: str | None = None) -> Recording:
    """The recording behind a file of ``curl -si`` (status line, header fields, an empty line, the body), sent at 0.0.

    Takes HTTP/1 and HTTP/2 status lines, any number of interim heads before the last one, CRLF or LF, and a body whose
    chunk framing curl took out (as it does) or kept (``--raw``). ``timing``: lines of seconds since the request was sent, a
    tab, and the bytes of one read of the body; without it everything came at 0. Raises NotSaved.
    """
    status, headers, body = _last_head(_as_bytes(data))
    found = {name.lower(): value for name, value in headers}
    chunked = "chunked" in found.get("transfer-encoding", "").lower()
    pieces, whole = _pieces(body, chunked=chunked)
    if chunked and pieces == [body]:
        pieces = [_without_trailers(body, found.get("trailer", ""))]
    payload = b"".join(pieces)
    coding = found.get("content-encoding", "").strip().lower()
    if _decoded_already(payload, coding):  # curl --compressed keeps the field
        headers = tuple(
            pair for pair in headers if pair[0].lower() not in ("content-encoding", "content-length")
        )
    elif found.get("content-length", "").isdecimal() and len(payload) < int(found["content-length"]):
        whole = False
    chunks = _timed(pieces, body, timing) if timing is not None else tuple((0.0, piece) for piece in pieces)
    return Recording(
        sent_at=0.0,
        head_at=0.0,
        status=status,
        headers=headers,
        chunks=chunks,
        ended_at=chunks[-1][0] if chunks else 0.0,
        ending=Ending.COMPLETE if whole else Ending.RESET,
        detail="" if whole else "the body is shorter than its head says",
    )


def _last_head(data: bytes) -> tuple[int, Headers, bytes]:
    """The final status, its header fields and what follows; heads before it are interim ones, or of redirects."""
    rest = data.removeprefix(b"\xef\xbb\xbf").lstrip(b"\r\n")
    while True:
        begun = _STATUS.match(rest)
        if begun is None:
            line = rest.split(b"\n", 1)[0][:60].decode("utf-8", "replace").strip()
            raise NotSaved(
                f"begins with {line!r}, not with a status line such as HTTP/1.1 200 OK; save it with: curl -si"
            )
        if rest[begun.end() : begun.end() + 1] in (b"\n", b"\r"):
            head, body = b"", rest[begun.end() :].removeprefix(b"\r").removeprefix(b"\n")
        else:
            ended = _BLANK.search(rest, begun.end() - 1)
            head = rest[begun.end() : ended.start() if ended else len(rest)]
            body = rest[ended.end() :] if ended else b""
        if not _STATUS.match(body):
            return int(begun[1]), _fields(head), body
        rest = body


def _as_bytes(data: bytes) -> bytes:
    """A file that a shell saved as UTF-16 is text that was bytes before."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", "replace").encode()
    return data


def _without_trailers(body: bytes, names: str) -> bytes:
    """curl writes the fields that a Trailer field announced behind the body."""
    told = [re.escape(name.encode()) for name in (one.strip() for one in names.split(",")) if name]
    if not told:
        return body
    lines = rb"(?:\r?\n)?(?:(?:%b): [^\r\n]*\r?\n)+\Z" % b"|".join(told)
    return re.sub(lines, b"", body, flags=re.IGNORECASE)


def _fields(head: bytes) -> Headers:
    lines = re.split("\r?\n", head.decode("latin-1"))
    pairs = (line.partition(":") for line in lines if line.strip())
    return tuple((name.strip(), value.strip()) for name, colon, value in pairs if colon)


def _pieces(body: bytes, *, chunked: bool) -> tuple[list[bytes], bool]:
    """The body without chunk framing, a piece a chunk, and whether it is whole. One piece when there is no framing."""
    if not chunked or not _SIZE.match(body):
        return [body] if body else [], True
    pieces: list[bytes] = []
    at = 0
    while (size := _SIZE.match(body, at)) is not None:
        length = int(size[1], 16)
        if length == 0:
            return pieces, True
        piece = body[size.end() : size.end() + length]
        if piece:
            pieces.append(piece)
        at = size.end() + length
        if len(piece) < length:
            framed = len(pieces) > 1 or size[0].endswith(b"\r\n")
            return (pieces, False) if framed else ([body], True)
        ending = re.compile(rb"\r?\n").match(body, at)
        if ending is None:
            return ([body], True) if not pieces[1:] else (pieces, False)
        at = ending.end()
    return pieces, False


def _decoded_already(payload: bytes, coding: str) -> bool:
    """Whether a body is plain although its head names a coding."""
    if not payload or coding in ("", "identity"):
        return False
    magic = _MAGIC.get(coding)
    if magic is not None:
        return not payload.startswith(magic)
    found, problem = plain(((0.0, payload),), coding)
    return bool(problem) and not found


def _timed(pieces: list[bytes], body: bytes, timing: str) -> Chunks:
    """The body cut into its reads, each with its time; a read that ends within a chunk's framing carries what it has."""
    reads = [_read(number, line) for number, line in enumerate(timing.splitlines(), 1) if line.strip()]
    payload = b"".join(pieces)
    total = sum(size for _, size in reads)
    if total == len(payload):
        edges = list(itertools.accumulate(size for _, size in reads))
        starts = [0, *edges]
        return tuple(
            (at, payload[starts[n] : edges[n]]) for n, (at, _) in enumerate(reads) if edges[n] > starts[n]
        )
    if total == len(body):
        return _timed_framed(pieces, body, reads)
    raise NotSaved(f"the timing file counts {total} bytes, the body has {len(payload)}")


def _timed_framed(pieces: list[bytes], body: bytes, reads: list[tuple[float, int]]) -> Chunks:
    """With the framing counted, each chunk came with the read that brought its last byte."""
    edges = list(itertools.accumulate(size for _, size in reads))
    chunks: list[tuple[float, bytes]] = []
    at = 0
    for piece in pieces:
        at = body.index(piece, at) + len(piece)
        chunks.append((reads[min(bisect_left(edges, at), len(reads) - 1)][0], piece))
    return tuple(chunks)


def _read(number: int, line: str) -> tuple[float, int]:
    seconds, _, size = line.partition("\t")
    try:
        at, count = float(seconds), int(size)
    except ValueError:
        raise NotSaved(f"line {number} of the timing file is not SECONDS<TAB>BYTES: {line[:60]!r}") from None
    if not (0 <= at < float("inf") and count >= 0):
        raise NotSaved(f"line {number} of the timing file has a time or a count below zero: {line[:60]!r}")
    return at, count
