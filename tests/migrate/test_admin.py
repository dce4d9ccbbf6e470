from __future__ import annotations

from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession
from aiohttp.test_utils import TestServer

from migrate.admin import SCHEMA, application

TOKEN = "9f3c2b7a51de4c08"


class Operation:
    """Stands where the running gateway stands."""

    def __init__(self) -> None:
        self.problem: str | None = None
        self.mirroring = True

    async def ready(self) -> tuple[bool, dict[str, Any]]:
        return self.problem is None, {"problem": self.problem}

    def status(self) -> dict[str, Any]:
        return {"mirroring": self.mirroring, "counters": {"passed": 3}}

    def looked(self) -> Path | None:
        return None

    def mirror(self, *, on: bool) -> None:
        self.mirroring = on


async def call(
    operated: Operation, method: str, path: str, token: str | None = None, **headers: str
) -> tuple[int, Any]:
    async with (
        TestServer(application(operated, token)) as server,
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
        {"Origin": "http://["},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": "http://evil.example", "Authorization": f"Bearer {TOKEN}"},
    ],
)
async def test_a_page_of_others_cannot_press_the_switch(headers: dict[str, str]) -> None:
    operated = Operation()
    status, _ = await call(operated, "POST", "/mirroring/stop", **headers)
    assert status == 403 and operated.mirroring


async def test_its_own_page_can() -> None:
    operated = Operation()
    async with TestServer(application(operated)) as server, ClientSession() as session:
        headers = {"Origin": str(server.make_url("/")).rstrip("/"), "Sec-Fetch-Site": "same-origin"}
        async with session.post(server.make_url("/mirroring/stop"), headers=headers) as answer:
            assert answer.status == 200
    assert operated.mirroring is False


@pytest.mark.parametrize(
    ("authorization", "status"),
    [
        (None, 401),
        ("Bearer wrong", 401),
        ("Bearer", 401),
        ("Basic !!", 401),
        ("Basic \u00e9", 401),
        ("Bearer \udcff\udcfe", 401),
        (f"Digest {TOKEN}", 401),
        ("Basic " + b64encode(b"me:wrong").decode(), 401),
        (f"Bearer {TOKEN}", 200),
        (f"bearer  {TOKEN}", 200),
        ("Basic " + b64encode(f":{TOKEN}".encode()).decode(), 200),
        ("Basic " + b64encode(f"me:{TOKEN}".encode()).decode(), 200),
    ],
)
async def test_a_token_is_asked_of_all_but_probes(authorization: str | None, status: int) -> None:
    operated, headers = Operation(), {"Authorization": authorization} if authorization else {}
    assert (await call(operated, "GET", "/status", TOKEN, **headers))[0] == status
    assert (await call(operated, "POST", "/mirroring/stop", TOKEN, **headers))[0] == status
    assert operated.mirroring is (status == 401)
    assert (await call(operated, "GET", "/readyz", TOKEN))[0] == 200


async def test_who_has_no_token_is_told_how_to_send_it_and_where_it_stands() -> None:
    _, said = await call(Operation(), "GET", "/status", TOKEN)
    assert "Authorization: Bearer TOKEN" in said["error"] and "gateway.admin_token_env" in said["error"]
    assert TOKEN not in said["error"]


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:8081", 200),
        ("localhost:1", 200),
        ("[::1]:8081", 200),
        ("evil.example:8081", 403),
        ("[", 403),
        ("10.0.0.5", 403),
    ],
)
async def test_without_a_token_it_answers_to_names_of_this_machine(host: str, status: int) -> None:
    """A page elsewhere may have its own name point here (DNS rebinding)."""
    assert (await call(Operation(), "GET", "/status", Host=host))[0] == status
    assert (await call(Operation(), "GET", "/healthz", Host=host))[0] == 200
