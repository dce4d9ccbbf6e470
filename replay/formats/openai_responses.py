"""OpenAI's stored responses, with the pages of their input items in ``input_items/<response id>.json``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from replay.exchange import JSON
from replay.formats.fields import Unusable, listed, loaded, mapping, moment, text
from replay.formats.record import Call, Item, Record, Reply, each, made
from replay.formats.sources import Source

_ECHOED = (
    "instructions",
    "max_output_tokens",
    "max_tool_calls",
    "parallel_tool_calls",
    "reasoning",
    "service_tier",
    "temperature",
    "text",
    "tool_choice",
    "tools",
    "top_logprobs",
    "top_p",
    "truncation",
    "user",
)
_HELD = ("previous_response_id", "conversation", "prompt")
"""What stands for a part of the request that the provider holds."""
_ENDED = ("completed", "incomplete", "failed")
_FAILED = {"rate_limit_exceeded": 429, "server_error": 500}


def matches(first: JSON) -> bool:
    """Whether a first record is a response, or an item of a page of inputs."""
    item = first.get("object") == "list" and {"id", "type"} <= first.keys()
    return first.get("object") == "response" or item


def read(sources: Sequence[Source]) -> Iterator[Item]:
    """Each response; the file of its input is read when its turn comes."""
    answered = [source for source in sources if source.first.get("object") == "response"]
    inputs = {source.stem: source for source in sources if source not in answered}
    rows = (row for source in answered for _, row in source.objects("data"))
    yield from each(enumerate(rows, 1), lambda line, row: _record(line, row, inputs))


def _record(line: int, row: JSON, inputs: Mapping[str, Source]) -> Record:
    for name in _HELD:
        if row.get(name) is not None:
            held = row[name] if isinstance(row[name], str) else ""
            raise Unusable("request-external", f"{name} {held}: the conversation is held by the provider")
    source = inputs.get(str(row.get("id")))
    if source is None:
        raise Unusable("request-missing", f"no input_items/{row.get('id')}.json among the files")
    notes = {"request-rebuilt"}
    body = {"model": row.get("model"), "input": _input(source), **_echoed(row)}
    return made(
        line,
        request=Call(method="POST", path="/v1/responses", body=body),
        response=_response(row, notes),
        notes=notes,
        captured_at=moment(row.get("created_at"), notes),
        user=text(row.get("user")),
        trace=text(row.get("id")),
    )


def _echoed(row: JSON) -> JSON:
    """What a response repeats of its request: no default that says nothing."""
    kept = {name: row[name] for name in _ECHOED if row.get(name) not in (None, [], "")}
    if "reasoning" in kept:
        kept["reasoning"] = {
            key: value for key, value in mapping(kept["reasoning"]).items() if value is not None
        }
    return {name: value for name, value in kept.items() if value != {}}


def _response(row: JSON, notes: set[str]) -> Reply | None:
    """The answer; a response that is queued, runs or was cancelled has none."""
    if row.get("status") not in _ENDED:
        return None
    status = 200 if row["status"] != "failed" else _FAILED.get(str(mapping(row.get("error")).get("code")))
    notes.add("status-missing" if status is None else "status-inferred")
    return Reply(status=status, body=row)


def _input(source: Source) -> list[JSON]:
    """The input in the order in which it was sent. Raises Unusable where a page is missing."""
    pages = [mapping(loaded(row) if isinstance(row, bytes) else row) for _, row in source.objects()]
    items = [mapping(item) for page in pages for item in listed(page.get("data"))]
    if not items or pages[-1].get("has_more") is True or not all("data" in page for page in pages):
        raise Unusable("request-truncated", f"not all pages of {source.stem}'s input are there")
    return [_item(item) for item in (items if _oldest_first(items) else reversed(items))]


def _oldest_first(items: Sequence[JSON]) -> bool:
    """Whether items are in the order of the conversation: the API lists the newest first unless it is asked otherwise, and
    a call before its output, or a system message before others, says that it was."""
    calls: dict[Any, int] = {}
    for place, item in enumerate(items):
        name = item.get("call_id")
        if item.get("type") == "function_call":
            calls[name] = place
        elif item.get("type") == "function_call_output":
            return name in calls
    roles = [item.get("role") for item in items]
    return len(items) == 1 or roles[0] in ("system", "developer")


def _item(item: JSON) -> JSON:
    """An item without what storing it added; the id of reasoning is a part of it."""
    added = ("status",) if item.get("type") == "reasoning" else ("id", "status")
    return {key: value for key, value in item.items() if key not in added}
