"""Langfuse observations, exported as CSV, JSON or JSON lines, or read from its API."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from replay.exchange import JSON
from replay.formats import chat
from replay.formats.fields import (
    Unusable,
    count,
    mapping,
    moment,
    number,
    passed,
    status_in,
    text,
    unfolded,
)
from replay.formats.record import Call, Item, Record, Reply, each, made
from replay.formats.sources import Source


def matches(first: JSON) -> bool:
    """Whether a first record is an observation."""
    return {"traceId", "type"} <= first.keys() and isinstance(first.get("startTime"), str)


def columns(names: set[str]) -> bool:
    """Whether a CSV header is that of observations."""
    return {"traceId", "type", "startTime", "modelParameters"} <= names


def read(sources: Sequence[Source]) -> Iterator[Item]:
    """Each observation of each source."""
    for source in sources:
        yield from each(source.objects("data", table=True), _record)


def _record(line: int, row: JSON) -> Record:
    if row.get("type") != "GENERATION":
        raise Unusable("not-a-model-call", f"type {row.get('type')}")
    notes = {"path-assumed", "request-rebuilt"}
    start, end = moment(row.get("startTime"), notes), moment(row.get("endTime"), notes)
    first = moment(row.get("completionStartTime"), notes)
    body = _body(row)
    usage = mapping(unfolded(row.get("usageDetails")))
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
    base: JSON = {"model": row["model"]} if text(row.get("model")) else {}
    if isinstance(asked, dict) and "messages" in asked:
        base |= asked
    elif isinstance(asked, list):
        base["messages"] = asked
    elif isinstance(asked, str) and asked:
        base["messages"] = [{"role": "user", "content": asked}]
    else:
        raise Unusable("request-missing", "no body" if not asked else "input is no conversation")
    return base | mapping(unfolded(row.get("modelParameters")))


def _response(row: JSON, tokens: tuple[int | None, int | None], notes: set[str]) -> Reply | None:
    if row.get("level") == "ERROR":
        notes.add("status-inferred")
        return Reply(status=status_in(str(row.get("statusMessage") or "")))
    said = unfolded(row.get("output"))
    if said in (None, "", {}, []):
        return None
    notes |= {"response-rebuilt", "status-inferred"}
    body = said if isinstance(said, dict) and "choices" in said else {"choices": _choices(said)}
    return Reply(status=200, body=chat.answer([], tokens) | body)


def _choices(said: Any) -> list[JSON]:
    if isinstance(said, list):
        return [
            one if isinstance(one, dict) and "message" in one else _choice(n, one)
            for n, one in enumerate(said)
        ]
    return [_choice(0, said)]


def _choice(index: int, said: Any) -> JSON:
    return chat.choice(index, said if isinstance(said, dict) else {"role": "assistant", "content": str(said)})
