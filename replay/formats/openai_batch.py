"""OpenAI Batch: the input file, and its output and error files beside it; vLLM's ``run-batch`` writes the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from replay.exchange import JSON
from replay.formats.record import Call, Item, Record, Reply, Skip, Unusable, made, parsed
from replay.formats.sources import Source


def matches(first: JSON) -> bool:
    """Whether a first record is a line of an input, output or error file."""
    return "custom_id" in first and (
        ("url" in first and "method" in first) or "response" in first or "error" in first
    )


def read(sources: Sequence[Source]) -> Iterator[Item]:
    """The lines of the input files, each with its answer. Answers are held in memory: their order is not the input's."""
    asked = [source for source in sources if b'"method"' in source.head.split(b"\n", 1)[0]]
    others = [source for source in sources if source not in asked]
    if not asked:
        for source in others:
            for number, _ in source.lines():
                detail = "output line without its input file"
                yield Skip(line=number, reason="request-missing", detail=detail)
        return
    answers = dict(_answers(others))
    for source in asked:
        for number, line in source.lines():
            try:
                yield _record(number, parsed(line), answers)
            except Unusable as why:
                yield Skip(line=number, reason=why.reason, detail=why.detail)


def _answers(sources: Sequence[Source]) -> Iterator[tuple[str, JSON]]:
    for source in sources:
        for _, line in source.lines():
            try:
                row = parsed(line)
            except Unusable:
                continue
            if isinstance(row.get("response"), dict):
                yield str(row.get("custom_id")), row["response"]


def _record(number: int, row: JSON, answers: dict[str, JSON]) -> Record:
    body: Any = row.get("body")
    if not isinstance(body, dict):
        raise Unusable("request-missing", "no body")
    found = answers.get(str(row.get("custom_id")))
    status = found.get("status_code") if found else None
    response = (
        None
        if found is None
        else Reply(status=status if isinstance(status, int) else None, body=found.get("body"))
    )
    return made(
        number,
        request=Call(method=str(row.get("method") or "POST"), path=str(row.get("url") or ""), body=body),
        response=response,
        notes=(),
        user=body.get("user") if isinstance(body.get("user"), str) else None,
        trace=str(found["request_id"]) if found and found.get("request_id") else None,
    )
