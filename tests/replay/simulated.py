"""A client of the simulator, and what tests ask it for."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp

from replay.simulator.server import serving
from replay.simulator.settings import Settings

CHAT = "/v1/chat/completions"
WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "parameters": {
            "type": "object",
            "properties": {
                "city": {"type": "string", "minLength": 1},
                "days": {"type": "integer", "maximum": 7},
            },
            "required": ["city", "days"],
        },
    },
}
RING = {"type": "function", "function": {"name": "ring", "parameters": {"type": "object", "properties": {}}}}


def ask(text: str = "When does the harbour open?", **more: Any) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": text}], **more}


class Client:
    def __init__(self, http: aiohttp.ClientSession, url: str) -> None:
        self.http, self.url = http, url

    async def post(self, body: Any, path: str = CHAT, **headers: str) -> tuple[int, Any]:
        async with self.http.post(self.url + path, json=body, headers=headers) as response:
            return response.status, json.loads(await response.read())

    async def get(self, path: str) -> tuple[int, str]:
        async with self.http.get(self.url + path) as response:
            return response.status, await response.text()

    async def said(self, text: str = "When does the harbour open?", **more: Any) -> dict[str, Any]:
        status, body = await self.post(ask(text, **more))
        assert status == 200, body
        choice: dict[str, Any] = body["choices"][0]
        return choice

    async def events(self, body: dict[str, Any], path: str = CHAT) -> list[tuple[float, dict[str, Any]]]:
        """Seconds since the request and data of each event; the stream must end in [DONE]."""
        started = time.monotonic()
        async with self.http.post(self.url + path, json={**body, "stream": True}) as response:
            assert response.headers["Content-Type"].startswith("text/event-stream")
            lines = [(time.monotonic() - started, line) async for line in response.content]
        seen = [(at, line[6:].strip()) for at, line in lines if line.startswith(b"data: ")]
        assert seen[-1][1] == b"[DONE]"
        return [(at, json.loads(data)) for at, data in seen[:-1]]


@asynccontextmanager
async def simulator(**settings: Any) -> AsyncIterator[Client]:
    async with serving(Settings(**settings)) as url, aiohttp.ClientSession() as http:
        yield Client(http, url)


def assembled(events: list[tuple[float, dict[str, Any]]], index: int = 0) -> dict[str, Any]:
    """What a strict client makes of a chat stream: text, finish reason, tool calls by index."""
    text, finish = "", None
    calls: dict[int, dict[str, str]] = {}
    for _, chunk in events:
        for choice in chunk["choices"]:
            if choice["index"] != index:
                continue
            delta = choice["delta"]
            text += delta.get("content") or ""
            finish = choice.get("finish_reason") or finish
            for part in delta.get("tool_calls") or ():
                call = calls.setdefault(part["index"], {"name": "", "arguments": "", "id": ""})
                call["id"] += part.get("id") or ""
                call["name"] += part["function"].get("name") or ""
                call["arguments"] += part["function"].get("arguments") or ""
    return {"text": text, "finish": finish, "calls": [calls[number] for number in sorted(calls)]}
