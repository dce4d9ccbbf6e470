"""Looks at a server's ``/metrics`` now and then, beside a load and without disturbing it."""

from __future__ import annotations

import asyncio
import contextlib
from time import monotonic
from typing import Self

from replay.client import Call, Client
from replay.prometheus import Reading, reading, wanted

PATHS = ("/prometheus/metrics", "/metrics")
"""In this order: TensorRT-LLM has another page at ``/metrics``, whose statistics are gone once they were read."""
_EVERY_S = 1.0
_WITHIN_S = 1.0


class Scraper:
    """An async context manager: one look when it is entered, one a second, and one when it is left.

    It has connections of its own and keeps no more than the lines it needs; they are read after the load. A server without
    such a page is left alone after the first look, and a look that fails is none.
    """

    def __init__(self, url: str) -> None:
        """``url``: the server's address, without a path."""
        self._url = url
        self._path: str | None = None
        self._taken: list[tuple[float, bytes]] = []
        self._client: Client | None = None
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._client = Client()
        for path in PATHS:
            if lines := await self._look(path):
                self._path = path
                self._taken.append((monotonic(), lines))
                self._task = asyncio.create_task(self._watch(path))
                break
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._task is not None and self._path is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
            await self._take(self._path)
        if self._client is not None:
            await self._client.__aexit__()

    def readings(self) -> list[Reading]:
        """What was seen, in order."""
        return [reading(at, lines) for at, lines in self._taken]

    async def _watch(self, path: str) -> None:
        while True:
            await asyncio.sleep(_EVERY_S)
            await self._take(path)

    async def _take(self, path: str) -> None:
        if lines := await self._look(path):
            self._taken.append((monotonic(), lines))

    async def _look(self, path: str) -> bytes:
        assert self._client is not None  # noqa: S101 - it was entered
        call = Call(
            url=self._url + path, method="GET", connect=_WITHIN_S, first_byte=_WITHIN_S, total=_WITHIN_S
        )
        seen = await self._client.send(call)
        return wanted(b"".join(data for _, data in seen.chunks)) if seen.status == 200 else b""
