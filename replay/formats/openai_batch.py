"""OpenAI Batch: the input file, and its output and error files beside it; vLLM's ``run-batch`` writes the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from replay.exchange import JSON
from replay.formats.fields import Unusable, mapping, parsed, path_of, status_of, text
from replay.formats.record import Call, Item, Record, Reply, Skip, each, made
from replay.formats.sources import Source


def matches(first: JSON) -> bool:
    """Whether a first record is a line of an input, output or error file."""
    return "custom_id" in first and (
        ("url" in first and "method" in first) or "response" in first or "error" in first
    )


def read(sources: Sequence[Source]) -> Iterator[Item]:
    """The lines of the input files, each with its answer. Answers are held in memory: their order is not the input's."""
    asked = [source for source in sources if "method" in source.first]
    others = [source for source in sources if source not in asked]
    if not asked:
        detail = "output line without its input file"
        for line, _ in _rows(others):
            yield Skip(line=line, reason="request-missing", detail=detail)
        return
    answers = dict(_answers(others))
    yield from each(_rows(asked), lambda line, row: _record(line, row, answers))


def _rows(sources: Sequence[Source]) -> Iterator[tuple[int, Any]]:
    """The lines of files that belong together, numbered throughout."""
    return enumerate((row for source in sources for _, row in source.lines()), 1)


def _answers(sources: Sequence[Source]) -> Iterator[tuple[str, JSON]]:
    for _, line in _rows(sources):
        try:
            row = parsed(line)
        except Unusable:
            continue
        if isinstance(row.get("response"), dict):
            yield str(row.get("custom_id")), row["response"]


def _record(line: int, row: JSON, answers: dict[str, JSON]) -> Record:
    body = mapping(row.get("body"))
    found = answers.get(str(row.get("custom_id")))
    return made(
        line,
        request=Call(
            method=text(row.get("method")) or "POST", path=text(row.get("url")) or path_of(body), body=body
        ),
        response=None
        if found is None
        else Reply(status=status_of(found.get("status_code")), body=found.get("body")),
        notes=() if text(row.get("url")) else ("path-assumed",),
        user=text(body.get("user")),
        trace=None if found is None else text(found.get("request_id")),
    )
