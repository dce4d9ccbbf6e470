"""Langfuse observations, exported as CSV, JSON or JSON lines, or read from its API."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import ijson

from replay.exchange import JSON
from replay.formats.record import (
    Call,
    Item,
    Record,
    Reply,
    Skip,
    Unusable,
    count,
    made,
    moment,
    number,
    parsed,
    passed,
    text,
    unfolded,
)
from replay.formats.sources import Source
from replay.values import too_deep

_STATUS = re.compile(r"\b(4\d\d|5\d\d)\b")


def matches(first: JSON) -> bool:
    """Whether a first record is an observation."""
    return {"traceId", "type"} <= first.keys() and isinstance(first.get("startTime"), str)


def columns(names: Sequence[str]) -> bool:
    """Whether a CSV header is that of observations."""
    return {"traceId", "type", "startTime", "modelParameters"} <= set(names)


def read(sources: Sequence[Source]) -> Iterator[Item]:
    """Each observation of each source."""
    for source in sources:
        for line, row in _rows(source):
            try:
                yield _record(line, parsed(row) if isinstance(row, bytes) else row)
            except Unusable as why:
                yield Skip(line=line, reason=why.reason, detail=why.detail)


def _rows(source: Source) -> Iterator[tuple[int, Any]]:
    start = source.head.lstrip()
    if start.startswith((b"[", b'{"data"')):
        try:
            yield from enumerate(source.items("item" if start.startswith(b"[") else "data.item"), 1)
        except ijson.JSONError as error:
            yield 0, str(error).encode()
    elif start.startswith(b"{"):
        yield from source.lines()
    else:
        yield from source.rows()


def _record(line: int, row: JSON) -> Record:
    if too_deep(row):
        raise Unusable("malformed", "nested too deeply")
    if row.get("type") != "GENERATION":
        raise Unusable("not-a-model-call", f"type {row.get('type')}")
    notes = {"path-assumed", "request-rebuilt"}
    start, end = moment(row.get("startTime"), notes), moment(row.get("endTime"), notes)
    first = moment(row.get("completionStartTime"), notes)
    body = _body(row)
    usage = unfolded(row.get("usageDetails"))
    usage = usage if isinstance(usage, dict) else {}
    tokens = count(usage.get("input")), count(usage.get("output"))
    response = _response(row, tokens, notes)
    if first is not None and response is not None and response.body is not None:
        notes.add("stream-joined")
    return made(
        line,
        request=Call(method="POST", path="/v1/chat/completions", body=body),
        response=response,
        notes=notes,
        captured_at=start,
        ttft_s=passed(start, first),
        duration_s=passed(start, end),
        model=text(row.get("model")),
        user=text(row.get("userId")),
        session=text(row.get("sessionId")),
        trace=text(row.get("traceId")),
        cost_usd=number(row.get("totalCost")),
        input_tokens=tokens[0],
        output_tokens=tokens[1],
    )


def _body(row: JSON) -> JSON:
    asked = unfolded(row.get("input"))
    parameters = unfolded(row.get("modelParameters"))
    base: JSON = {"model": text(row.get("model"))} if row.get("model") else {}
    if isinstance(asked, dict) and "messages" in asked:
        base |= asked
    elif isinstance(asked, list):
        base["messages"] = asked
    elif isinstance(asked, str) and asked:
        base["messages"] = [{"role": "user", "content": asked}]
    else:
        raise Unusable("request-missing", "no body" if not asked else "input is no conversation")
    return base | (parameters if isinstance(parameters, dict) else {})


def _response(row: JSON, tokens: tuple[int | None, int | None], notes: set[str]) -> Reply | None:
    if row.get("level") == "ERROR":
        found = _STATUS.search(str(row.get("statusMessage") or ""))
        notes.add("status-inferred")
        return Reply(status=int(found[1]) if found else None)
    said = unfolded(row.get("output"))
    if said in (None, "", {}, []):
        return None
    notes |= {"response-rebuilt", "status-inferred"}
    body: JSON = said if isinstance(said, dict) and "choices" in said else {"choices": _choices(said)}
    if None not in tokens:
        usage = {
            "prompt_tokens": tokens[0],
            "completion_tokens": tokens[1],
            "total_tokens": (tokens[0] or 0) + (tokens[1] or 0),
        }
        body = body | {"usage": usage}
    return Reply(status=200, body=body)


def _choices(said: Any) -> list[JSON]:
    if isinstance(said, list):
        return [
            one if isinstance(one, dict) and "message" in one else _choice(n, one)
            for n, one in enumerate(said)
        ]
    return [_choice(0, said)]


def _choice(index: int, said: Any) -> JSON:
    message = said if isinstance(said, dict) else {"role": "assistant", "content": str(said)}
    return {"index": index, "message": message, "finish_reason": None}
