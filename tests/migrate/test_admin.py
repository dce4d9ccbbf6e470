from __future__ import annotations

from typing import Any

import pytest
from aiohttp import ClientSession
from aiohttp.test_utils import TestServer

from migrate.admin import SCHEMA, application


class Operation:
    """Stands where the running gateway stands."""

    def __init__(self) -> None:
        self.problem: str | None = None
        self.mirroring = True

    async def ready(self) -> tuple[bool, dict[str, Any]]:
        return self.problem is None, {"problem": self.problem}

    def status(self) -> dict[str, Any]:
        return {"mirroring": self.mirroring, "counters": {"passed": 3}}

    def mirror(self, *, on: bool) -> None:
        self.mirroring = on


async def call(operated: Operation, method: str, path: str, **headers: str) -> tuple[int, Any]:
    async with (
        TestServer(application(operated)) as server,
        ClientSession() as session,
        session.request(method, server.make_url(path), headers=headers) as answer,
    ):
        return answer.status, await answer.json() if answer.content_type == "application/json" else None


async def test_alive_is_not_the_same_as_ready() -> None:
    operated = Operation()
    assert await call(operated, "GET", "/healthz") == (200, {"status": "ok"})
    assert await call(operated, "GET", "/readyz") == (200, {"ready": True, "problem": None})
    operated.problem = "baseline http://b refused the connection"
    assert await call(operated, "GET", "/healthz") == (200, {"status": "ok"})
    assert await call(operated, "GET", "/readyz") == (503, {"ready": False, "problem": operated.problem})


async def test_status_is_a_named_document() -> None:
    status, document = await call(Operation(), "GET", "/status")
    assert status == 200
    assert document == {"schema": SCHEMA, "mirroring": True, "counters": {"passed": 3}}


async def test_the_switch_may_be_pressed_twice() -> None:
    operated = Operation()
    for _ in range(2):
        assert await call(operated, "POST", "/mirroring/stop") == (200, {"mirroring": False})
        assert operated.mirroring is False
    assert await call(operated, "POST", "/mirroring/start") == (200, {"mirroring": True})
    assert operated.mirroring is True


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT"])
async def test_nothing_but_post_changes_anything(method: str) -> None:
    operated = Operation()
    status, _ = await call(operated, method, "/mirroring/stop")
    assert status == 405 and operated.mirroring


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-origin"},
    ],
)
async def test_a_web_page_cannot_press_the_switch(headers: dict[str, str]) -> None:
    operated = Operation()
    status, _ = await call(operated, "POST", "/mirroring/stop", **headers)
    assert status == 403 and operated.mirroring
