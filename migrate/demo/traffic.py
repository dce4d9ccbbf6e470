"""Production as the demo has it: real OpenAI SDK clients that know nothing of the gateway but its address."""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from collections.abc import Callable
from importlib.resources import files
from typing import Any

MODEL = "harbor-7b"


def prompts() -> list[dict[str, Any]]:
    """The shipped conversations: free text, tool calls and structured output."""
    text = files("migrate.demo").joinpath("prompts.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def request(row: dict[str, Any], visitor: int, *, stream: bool) -> dict[str, Any]:
    """The keyword arguments of one SDK call."""
    call: dict[str, Any] = {
        "model": MODEL,
        "messages": [
            {"role": "system", "content": "You answer for a harbour town's service desk."},
            {"role": "user", "content": row["prompt"]},
        ],
        "user": f"visitor-{visitor}",
        "temperature": 0,
        "max_tokens": 120,
    }
    if row["kind"] == "tools":
        call |= {"tools": [row["tool"]], "tool_choice": "required"}
    if row["kind"] == "json":
        schema = {"name": "form", "schema": row["schema"]}
        call["response_format"] = {"type": "json_schema", "json_schema": schema}
    if stream:
        call |= {"stream": True, "stream_options": {"include_usage": True}}
    return call


async def send(
    base_url: str, *, requests: int, rate: float, seed: int, tick: Callable[[], None]
) -> Counter[str]:
    """Sends the traffic open loop at ``rate`` a second and counts what the clients got.

    Keys of the result: ``ok`` and the class names of the SDK's exceptions. ``tick`` is called once a finished request.
    """
    from openai import AsyncOpenAI

    rows, chance, outcome = prompts(), random.Random(seed), Counter[str]()
    async with AsyncOpenAI(
        base_url=f"{base_url}/v1", api_key="sk-demo-visitor", max_retries=0, timeout=60
    ) as client:
        loop = asyncio.get_running_loop()
        start, pending = loop.time(), set[asyncio.Task[None]]()
        for number in range(requests):
            await asyncio.sleep(max(0.0, start + number / rate - loop.time()))
            call = request(chance.choice(rows), number, stream=chance.random() < 0.7)
            task = asyncio.create_task(_one(client, call, outcome, tick))
            pending.add(task)
            task.add_done_callback(pending.discard)
        await asyncio.gather(*pending)
    return outcome


async def _one(client: Any, call: dict[str, Any], outcome: Counter[str], tick: Callable[[], None]) -> None:
    try:
        answer = await client.chat.completions.create(**call)
        if call.get("stream"):
            async for _ in answer:
                pass
        outcome["ok"] += 1
    except Exception as error:  # every kind of client error is counted under its own name
        outcome[type(error).__name__] += 1
    tick()
