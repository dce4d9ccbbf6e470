"""GoReplay's request files: raw HTTP/1.1 messages, requests and answers joined by their id."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterator, Sequence

from replay.coding import plain
from replay.exchange import Ending, Headers
from replay.formats.fields import Unusable, headers, loaded, target, text
from replay.formats.record import Call, Item, Record, Reply, Skip, made, replied, uncut
from replay.formats.sources import Source
from replay.saved import NotSaved, read_saved

MARK = "\n\U0001f435\U0001f648\U0001f649\n".encode()
FIRST = re.compile(rb"[123] [0-9a-f]{8,64} \d{10,20}(?: \d+)?\n")
_WAITING = 10_000
"""Requests that may wait for their answer; beyond it the oldest goes without one."""


class _Message:
    """One message of a file."""

    __slots__ = ("at_ns", "data", "id", "kind", "lasted_ns", "line")

    def __init__(self, line: int, block: bytes | Unusable) -> None:
        if isinstance(block, Unusable):
            raise block
        first, _, self.data = block.lstrip(b"\n").partition(b"\n")
        words = first.split()
        if not FIRST.match(first + b"\n"):
            raise Unusable("malformed", "no line of type, id and time")
        self.line, self.kind, self.id = line, words[0], words[1].decode()
        self.at_ns = int(words[2])
        self.lasted_ns = int(words[3]) if len(words) > 3 else 0


def read(sources: Sequence[Source]) -> Iterator[Item]:
    """Requests in order, each with its answer; a pair may span two files."""
    waiting: OrderedDict[str, _Waiting] = OrderedDict()
    line = 0
    for source in sources:
        for block in source.blocks(MARK):
            line += 1
            try:
                message = _Message(line, block)
            except Unusable as why:
                waiting[f"skip {line}"] = Skip(line=line, reason=why.reason, detail=why.detail)
            else:
                _join(waiting, message)
            yield from _ready(waiting, late=len(waiting) > _WAITING)
    while waiting:
        yield from _ready(waiting, late=True)


_Waiting = Skip | tuple[_Message, _Message | None]


def _join(waiting: OrderedDict[str, _Waiting], message: _Message) -> None:
    if message.kind == b"3":
        detail = "replayed response (type 3)"
        waiting[f"skip {message.line}"] = Skip(line=message.line, reason="not-a-model-call", detail=detail)
    elif message.kind == b"1":
        waiting[message.id] = message, None
    else:
        known = waiting.get(message.id)
        if isinstance(known, tuple):
            waiting[message.id] = known[0], message


def _ready(waiting: OrderedDict[str, _Waiting], *, late: bool) -> Iterator[Item]:
    """The oldest ones that are complete, or have waited long enough."""
    while waiting:
        name, entry = next(iter(waiting.items()))
        if isinstance(entry, Skip):
            del waiting[name]
            yield entry
            continue
        asked, answered = entry
        if answered is None and not late:
            return
        del waiting[name]
        late = False
        try:
            yield uncut(_record(asked, answered))
        except Unusable as why:
            yield Skip(line=asked.line, reason=why.reason, detail=why.detail)


def _record(asked: _Message, answered: _Message | None) -> Record:
    notes: set[str] = set()
    head, _, body = asked.data.partition(b"\r\n\r\n")
    first, *fields = head.decode("latin-1").split("\r\n")
    method, path, *_ = [*first.split(" "), "", ""]
    if method != "POST":
        raise Unusable("not-a-model-call", f"{method} {path.partition('?')[0]}")
    value = loaded(body)
    if value is None:
        raise Unusable(
            "request-truncated" if body.strip() else "request-missing",
            "the body is not JSON" if body else "no body",
        )
    if not isinstance(value, dict):
        raise Unusable("not-a-model-call", f"POST {path.partition('?')[0]}")
    pairs: Headers = tuple(
        (name.strip(), value.strip()) for name, _, value in (field.partition(":") for field in fields)
    )
    response = None if answered is None else _response(answered, notes)
    # From --input-raw the answer's time is that of its first packet, and its duration runs from there.
    lasted = None if answered is None else (answered.at_ns + answered.lasted_ns - asked.at_ns) / 1e9
    return made(
        asked.line,
        request=Call(method=method, path=target(path, notes), headers=headers(pairs, notes), body=value),
        response=response,
        notes=notes,
        captured_at=asked.at_ns / 1e9,
        duration_s=round(lasted, 6) if lasted is not None and lasted >= 0 else None,
        trace=asked.id,
        user=text(value.get("user")),
    )


def _response(answered: _Message, notes: set[str]) -> Reply | None:
    """The answer without its framing. A cut one costs the comparison, not the request."""
    try:
        found = read_saved(answered.data)
    except NotSaved:
        return None
    coding = next((value for name, value in found.headers if name.lower() == "content-encoding"), None)
    chunks, problem = plain(found.chunks, coding)
    kept = headers(found.headers, notes)
    if found.ending is not Ending.COMPLETE or problem:
        notes.add("response-truncated")
        return Reply(status=found.status, headers=kept)
    said = b"".join(data for _, data in chunks).decode("utf-8", "replace")
    kind = next((value for name, value in kept if name.lower() == "content-type"), "")
    return replied(said, notes, status=found.status, headers=kept, kind=kind)
