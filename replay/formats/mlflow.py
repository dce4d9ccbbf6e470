"""MLflow's traces, as JSON: an object each, with spans whose attributes are JSON text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from replay.exchange import JSON
from replay.formats import chat
from replay.formats.fields import (
    Unusable,
    count,
    listed,
    loaded,
    mapping,
    moment,
    number,
    passed,
    path_of,
    status_in,
    text,
    unfolded,
    with_model,
)
from replay.formats.record import Call, Item, Record, Reply, each, failed, made
from replay.formats.sources import Source

_QUESTIONS = ("messages", "prompt", "input")


def matches(first: JSON) -> bool:
    """Whether a first record is a trace."""
    return bool({"trace_id", "request_id"} & mapping(first.get("info")).keys()) and "spans" in mapping(
        first.get("data")
    )


def read(sources: Sequence[Source]) -> Iterator[Item]:
    """Each span of each trace."""
    for source in sources:
        yield from each(enumerate(_spans(source), 1), _record)


def _spans(source: Source) -> Iterator[Any]:
    """The spans of all traces, each with what its trace says of it."""
    for _, row in source.objects():
        trace = loaded(row) if isinstance(row, bytes) else row
        spans = mapping(mapping(trace).get("data")).get("spans")
        if not isinstance(spans, list):
            yield (
                row
                if trace is None or not isinstance(row, bytes | dict)
                else Unusable("malformed", "a trace without spans")
            )
            continue
        for span in spans:
            yield {"info": mapping(trace).get("info"), "span": span}


def _record(line: int, row: JSON) -> Record:
    info, span = mapping(row.get("info")), mapping(row.get("span"))
    fields = {name: unfolded(value) for name, value in mapping(span.get("attributes")).items()}
    kind = fields.get("mlflow.spanType")
    if kind not in ("CHAT_MODEL", "LLM"):
        raise Unusable("not-a-model-call", f"mlflow.spanType {kind}")
    notes = {"path-assumed"}
    body = _body(fields, notes)
    response = _response(span, fields, notes)
    if body.get("stream") is True and response is not None and response.body is not None:
        notes.add("stream-joined")
    start, end = (moment(span.get(f"{name}_time_unix_nano"), notes) for name in ("start", "end"))
    told = mapping(info.get("trace_metadata") or info.get("request_metadata"))
    return made(
        line,
        request=Call(method="POST", path=path_of(body), body=body),
        response=response,
        notes=notes,
        captured_at=start,
        duration_s=passed(start, end),
        user=text(told.get("mlflow.trace.user")),
        session=text(told.get("mlflow.trace.session")),
        trace=text(info.get("trace_id")) or text(info.get("request_id")),
        cost_usd=number(mapping(fields.get("mlflow.llm.cost")).get("total_cost")),
        input_tokens=_tokens(fields)[0],
        output_tokens=_tokens(fields)[1],
    )


def _tokens(fields: JSON) -> tuple[int | None, int | None]:
    usage = mapping(fields.get("mlflow.chat.tokenUsage"))
    return count(usage.get("input_tokens")), count(usage.get("output_tokens"))


def _body(fields: JSON, notes: set[str]) -> JSON:
    asked = fields.get("mlflow.spanInputs")
    if isinstance(asked, str) and asked:
        asked = [{"role": "user", "content": asked}]
    if isinstance(asked, list):
        notes.add("request-rebuilt")
        asked = {"messages": asked}
    body = mapping(asked)
    if not any(name in body for name in _QUESTIONS):
        raise Unusable("request-missing", "mlflow.spanInputs is no request")
    if not all("role" in mapping(one) for one in listed(body.get("messages"))):
        raise Unusable("foreign-dialect", "messages of a framework")
    if "tools" not in body and listed(fields.get("mlflow.chat.tools")):
        notes.add("request-rebuilt")
        body = {**body, "tools": fields["mlflow.chat.tools"]}
    return with_model(body, fields.get("mlflow.llm.model"), notes)


def _response(span: JSON, fields: JSON, notes: set[str]) -> Reply | None:
    status = mapping(span.get("status"))
    if status.get("code") in ("STATUS_CODE_ERROR", "ERROR"):
        return failed(notes, status=status_in(str(status.get("message"))))
    said = fields.get("mlflow.spanOutputs")
    if said in (None, "", {}, []):
        return None
    if mapping(said).keys() & {"choices", "output", "data"}:
        notes.add("status-inferred")
        return Reply(status=200, body=said)
    message = {"role": "assistant", "content": said} if isinstance(said, str) else said
    if "role" not in mapping(message):
        return None
    notes |= {"response-rebuilt", "status-inferred"}
    return Reply(status=200, body=chat.answer([chat.choice(0, message)], _tokens(fields)))
