"""Own scripts, training sets, OpenPipe exports: a request, a request with its answer, or a conversation with its answer last."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from replay.exchange import JSON
from replay.formats import chat
from replay.formats.fields import Unusable, path_of, status_of, text
from replay.formats.record import Call, Item, Record, Reply, each, made
from replay.formats.sources import Source

_PAIRS = (("request", "response"), ("input", "output"))


def matches(first: JSON) -> bool:
    """Whether a first record looks like one of these; asked last."""
    inner = [first.get(name) for name, _ in _PAIRS]
    return any(isinstance(one, dict) and ("messages" in one or "prompt" in one) for one in (first, *inner))


def read(sources: Sequence[Source]) -> Iterator[Item]:
    """Each line of each source."""
    for source in sources:
        yield from each(source.lines(), _record)


def _record(line: int, row: JSON) -> Record:
    notes = {"path-assumed"}
    body, answer = _halves(row)
    if not isinstance(body, dict):
        raise Unusable("request-missing", "no body")
    if answer is None and _ends_with_answer(body):
        *history, last = body["messages"]
        body = {**body, "messages": history}
        answer = chat.answer([chat.choice(0, last)])
        notes |= {"answer-split", "response-rebuilt"}
    response = None
    status = None if body is row else status_of(row.get("status"))
    if isinstance(answer, dict) or status is not None:
        notes |= {"status-missing"} if status is None else set()
        response = Reply(status=status, body=answer if isinstance(answer, dict) else None)
    return made(
        line,
        request=Call(method="POST", path=path_of(body), body=body),
        response=response,
        notes=notes,
        user=text(body.get("user")),
    )


def _halves(row: JSON) -> tuple[Any, Any]:
    for asked, answered in _PAIRS:
        if isinstance(row.get(asked), dict):
            return row[asked], row.get(answered)
    return row, None


def _ends_with_answer(body: JSON) -> bool:
    messages = body.get("messages")
    last = messages[-1] if isinstance(messages, list) and len(messages) > 1 else None
    return isinstance(last, dict) and last.get("role") == "assistant"
