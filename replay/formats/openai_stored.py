"""OpenAI's stored chat completions, as its API lists them, with the pages of their messages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

from replay.exchange import JSON
from replay.formats.fields import Unusable, loaded, mapping, moment, text
from replay.formats.record import Call, Item, Record, Reply, each, made
from replay.formats.sources import Source

_ECHOED = (
    "temperature",
    "top_p",
    "seed",
    "presence_penalty",
    "frequency_penalty",
    "service_tier",
    "tools",
    "tool_choice",
    "response_format",
)
_ANSWERED = ("id", "object", "created", "model", "choices", "usage", "system_fingerprint", "service_tier")


def matches(first: JSON) -> bool:
    """Whether a first record is a stored completion or a message of one."""
    message = (
        first.get("object") == "list" and {"id", "role", "content"} <= first.keys() and "type" not in first
    )
    return first.get("object") == "chat.completion" or message


def read(sources: Sequence[Source]) -> Iterator[Item]:
    """Each completion with its messages, which are held in memory: they are in files of their own, in any order."""
    asked: _Asked = {}
    answered = [source for source in sources if source.first.get("object") == "chat.completion"]
    broken = [row for source in sources if source not in answered for row in _keep(source, asked)]
    rows = (row for source in answered for _, row in source.objects("data"))
    yield from each(
        enumerate(chain(rows, _left(asked), broken), 1), lambda line, row: _record(line, row, asked)
    )


class _Messages:
    """What is known of one completion's messages: by their number, and whether there are more."""

    __slots__ = ("by_number", "more")

    def __init__(self) -> None:
        self.by_number: dict[int, JSON] = {}
        self.more = False

    def whole(self) -> list[JSON]:
        """All of them in order. Raises Unusable where one is missing."""
        if self.more or sorted(self.by_number) != list(range(len(self.by_number))):
            raise Unusable("request-truncated", "not all messages of the completion are there")
        return [_message(self.by_number[number]) for number in range(len(self.by_number))]


_Asked = dict[str, _Messages]


def _keep(source: Source, asked: _Asked) -> Iterator[Any]:
    """Keeps the messages of a file of pages; yields what is none. A message's id is its completion's, and its number."""
    for _, row in source.objects():
        page = loaded(row) if isinstance(row, bytes) else row
        messages = mapping(page).get("data")
        if not isinstance(messages, list):
            yield row if isinstance(row, Unusable) else Unusable("malformed", "no page of messages")
            continue
        for message in map(mapping, messages):
            name, _, number = str(message.get("id")).rpartition("-")
            if number.isascii() and number.isdecimal() and len(number) < 10:
                known = asked.setdefault(name, _Messages())
                known.by_number[int(number)] = message
                known.more = mapping(page).get("has_more") is True
            else:
                yield Unusable("malformed", f"a message with the id {message.get('id')}")


def _left(asked: _Asked) -> Iterator[JSON]:
    """Messages that no completion has asked for, once all were read."""
    for name in asked:
        yield {"left": name}


def _record(line: int, row: JSON, asked: _Asked) -> Record:
    if "left" in row:
        raise Unusable("request-missing", f"messages of {row['left']} without their completion")
    messages = asked.pop(str(row.get("id")), None)
    if messages is None:
        raise Unusable("request-missing", f"no messages for {row.get('id')}")
    notes = {"captured-at-end", "path-assumed", "request-rebuilt", "status-inferred"}
    user = text(row.get("input_user"))
    body = {
        "model": row.get("model"),
        "messages": messages.whole(),
        **{name: row[name] for name in _ECHOED if row.get(name) is not None},
        **({"user": user} if user else {}),
    }
    return made(
        line,
        request=Call(method="POST", path="/v1/chat/completions", body=body),
        response=Reply(status=200, body={name: row[name] for name in _ANSWERED if name in row}),
        notes=notes,
        captured_at=moment(row.get("created"), notes),
        user=user,
        trace=text(row.get("request_id")),
    )


def _message(stored: JSON) -> JSON:
    """A message as it was sent; its parts are kept beside its text."""
    kept = {
        key: value
        for key, value in stored.items()
        if key not in ("id", "content_parts") and value is not None
    }
    return {**kept, "content": stored.get("content_parts") or stored.get("content")}
