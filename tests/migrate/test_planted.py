"""Faults of real migrations, planted between a replay and a simulator: the report names each, with its reason first."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from replay.simulator.server import serving
from replay.simulator.settings import Settings
from tests.planting import Body, Change, changing, reported, same

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "tide",
            "parameters": {"type": "object", "properties": {"harbour": {"type": "string"}}},
        },
    }
]
WHOLE = Settings()
pytestmark = pytest.mark.timeout(120)


def asked(text: str, system: str = "", **more: object) -> Body:
    told = [{"role": "system", "content": system}] if system else []
    return {"model": "m", "messages": [*told, {"role": "user", "content": text}], "temperature": 0, **more}


def questions() -> Iterator[Body]:
    for n in range(80):
        system = f"You answer for harbour number {n}, briefly, and in whole sentences." if n % 2 else ""
        yield asked(f"At what time does boat {n} leave, and from which pier of the old harbour?", system)


async def report(
    folder: Path,
    requests: Iterator[Body],
    request: Change = same,
    answer: Change = same,
    candidate: Settings = WHOLE,
) -> dict[str, Any]:
    async with serving(WHOLE) as one, serving(candidate) as other:

        def run() -> dict[str, Any]:
            with changing(other, request, answer) as changed:
                return reported(folder, one, changed, requests)

        return await asyncio.to_thread(run)


async def test_nothing_planted_has_no_cause(tmp_path: Path) -> None:
    document = await report(tmp_path, questions())
    assert not document["causes"], document["causes"]


async def test_a_system_prompt_that_is_dropped(tmp_path: Path) -> None:
    def dropped(body: Body) -> Body:
        return body | {"messages": [one for one in body["messages"] if one["role"] != "system"]}

    first = (await report(tmp_path, questions(), dropped))["causes"][0]
    assert first["category"] == "prompt.shorter" and "system prompt, and no other" in first["message"]


async def test_half_of_the_context_is_cut(tmp_path: Path) -> None:
    def halved(body: Body) -> Body:
        cut = [one | {"content": one["content"][: len(one["content"]) // 2]} for one in body["messages"]]
        return body | {"messages": cut}

    first = (await report(tmp_path, questions(), halved))["causes"][0]
    assert first["category"] == "prompt.shorter" and "fewer in the median" in first["message"]


async def test_a_tool_parser_that_is_off(tmp_path: Path) -> None:
    def unparsed(body: Body) -> Body:
        for choice in body["choices"]:
            if calls := choice["message"].pop("tool_calls", None):
                one = calls[0]["function"]
                call = {"name": one["name"], "arguments": json.loads(one["arguments"])}
                choice["message"]["content"] = f"<tool_call>\n{json.dumps(call)}\n</tool_call>"
                choice["finish_reason"] = "stop"
        return body

    requests = (asked(f"Tide at pier {n}?", tools=TOOLS, tool_choice="required") for n in range(60))
    document = await report(tmp_path, requests, answer=unparsed)
    assert document["causes"][0]["category"] == "tools.unparsed_markup" and document["verdict"] == "ROLLBACK"


async def test_tools_that_the_candidate_does_not_offer_are_no_errors_and_no_go(tmp_path: Path) -> None:
    def some() -> Iterator[Body]:
        for n in range(80):
            yield asked(f"Tide at pier {n}?", **({} if n % 4 else {"tools": TOOLS, "tool_choice": "auto"}))

    lacking = Settings(lacks=frozenset({"tool-choice"}))
    document = await report(tmp_path, some(), candidate=lacking)
    assert (document["verdict"], document["code"]) == ("HOLD", "unserved")
    assert document["reason"].startswith(
        "20 of 80 requests ask for what the candidate says it does not serve (25.0%)"
    )
    assert (document["ledger"]["unserved"], document["ledger"]["scored"]) == (20, 60)
    cause = document["causes"][0]
    assert (cause["category"], cause["count"]) == ("contract.unsupported", 20)
    rules = {rule["rule"]: rule for rule in document["rules"]}
    assert rules["errors"]["estimate"] == rules["disagreement"]["estimate"] == 0


async def test_one_language_that_is_broken(tmp_path: Path) -> None:
    def mixed() -> Iterator[Body]:
        for n in range(400):
            russian = f"Во сколько отходит лодка номер {n}?"  # noqa: RUF001
            yield asked(f"When does boat number {n} leave?" if n % 5 else russian)

    def broken(body: Body) -> Body:
        russian = any("лодка" in one["content"] for one in body["messages"])
        return body | {"messages": [{"role": "user", "content": "Say something else."}]} if russian else body

    document = await report(tmp_path, mixed(), broken)
    broke = [row for row in document["slices"]["rows"] if row["named"]]
    assert broke and broke[0]["dimension"] == "language" and broke[0]["value"].startswith("cyrillic"), broke
