"""Preflight: is each backend there, healthy, does it know the model and answer one token, before a run depends on it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import httpx

from migrate.config import Backend
from migrate.errors import ConfigError
from replay.failures import error_message

_HEALTH = {"vllm": "/health", "tensorrt-llm": "/health", "relay": "/v1/models"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One check of one backend."""

    check: str
    passed: bool
    detail: str


Probe = Callable[[httpx.AsyncClient, Backend, str | None], Awaitable[str]]


async def preflight(backend: Backend, *, model: str | None, limit_s: float = 10.0) -> tuple[Line, ...]:
    """Runs the probes in order and stops at the first that fails: what follows would fail for the same reason.

    ``model``: the name to ask this backend for; ``None`` takes the first that it lists.
    """
    try:
        key = backend.api_key()
    except ConfigError as error:
        return (Line(check="key", passed=False, detail=str(error)),)
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    lines: list[Line] = []
    timeout = httpx.Timeout(limit_s, connect=backend.timeouts.connect)
    async with httpx.AsyncClient(
        base_url=backend.url, headers=headers, timeout=timeout, trust_env=False
    ) as client:
        for name, probe in PROBES:
            line = await _probed(name, probe, client, backend, model)
            lines.append(line)
            if not line.passed:
                break
    return tuple(lines)


async def _probed(
    name: str, probe: Probe, client: httpx.AsyncClient, backend: Backend, model: str | None
) -> Line:
    try:
        return Line(check=name, passed=True, detail=await probe(client, backend, model))
    except _Failed as failed:
        return Line(check=name, passed=False, detail=str(failed))
    except httpx.ConnectError as error:
        return Line(
            check=name, passed=False, detail=f"{backend.url} cannot be reached: {error}; is it running?"
        )
    except httpx.TimeoutException:
        return Line(check=name, passed=False, detail=f"{backend.url} did not answer in time")
    except httpx.HTTPError as error:
        return Line(check=name, passed=False, detail=f"{type(error).__name__}: {error}")


class _Failed(Exception):
    """A probe's answer was not the one hoped for."""


async def _health(client: httpx.AsyncClient, backend: Backend, model: str | None) -> str:
    route = _HEALTH[backend.kind]
    answer = await client.get(route)
    _expect(answer, route)
    return f"{route} {answer.status_code}"


async def _model(client: httpx.AsyncClient, backend: Backend, model: str | None) -> str:
    answer = await client.get("/v1/models")
    _expect(answer, "/v1/models")
    listed = await _listed(client)
    if model is None:
        return f"no model named in the configuration; the server lists {', '.join(listed) or 'none'}"
    if model not in listed:
        raise _Failed(
            f"no model {model!r}; the server lists {', '.join(listed) or 'none'}: set model: or models:"
        )
    return model


async def _answer(client: httpx.AsyncClient, backend: Backend, model: str | None) -> str:
    asked = model or next(iter(await _listed(client)), None)
    body = {"model": asked, "messages": [{"role": "user", "content": "Say yes."}], "max_tokens": 1}
    for stream in (False, True):
        answer = await client.post("/v1/chat/completions", json=body | {"stream": stream})
        _expect(answer, "/v1/chat/completions")
    return "one token, streamed and not"


async def _listed(client: httpx.AsyncClient) -> list[str]:
    data: Any = (await client.get("/v1/models")).json().get("data", [])
    return [entry["id"] for entry in data if isinstance(entry, dict) and isinstance(entry.get("id"), str)]


def _expect(answer: httpx.Response, route: str) -> None:
    if answer.status_code == 200:
        return
    try:
        message = error_message(answer.json())
    except (ValueError, AttributeError):
        message = None
    hint = "; name its key with api_key_env" if answer.status_code in (401, 403) else ""
    raise _Failed(f"{route} answered {answer.status_code}{f': {message}' if message else ''}{hint}")


PROBES: tuple[tuple[str, Probe], ...] = (("health", _health), ("model", _model), ("answer", _answer))
"""In the order in which a person would look."""
