"""Looks at a server's ``/metrics`` now and then, beside a load and without disturbing it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

from replay.client import Call, Client
from replay.prometheus import wanted

UNKNOWN = ("/prometheus/metrics", "/metrics")
"""For a server of which nobody said what it is, in this order: where there is the first page, the second may be one whose
statistics are gone once they were read."""
Keep = Callable[[bytes], Awaitable[None]]
"""Told what ``wanted`` leaves of a look, just after it."""
_WITHIN_S = 1.0
_LATER = (429, 500, 502, 503, 504)


@contextlib.asynccontextmanager
async def scraping(
    url: str,
    keep: Keep,
    *,
    pages: Sequence[str] = UNKNOWN,
    every_s: float = 1.0,
    drains: bool = False,
) -> AsyncIterator[None]:
    """One look when it is entered, one every ``every_s`` seconds, and one when it is left.

    ``url``: the server's address, without a path; ``pages``: see ``replay.backends.Facts.metrics``; ``drains``: pages in
    JSON, which are gone once they were read, are for us. It has connections of its own. A server that has no such page is
    left alone; one that does not answer, or not now, is asked again; a look that fails is none.
    """
    async with Client() as client:
        page = _Page(client, url, list(pages), keep, drains=drains)
        await page.look()
        task = asyncio.create_task(page.watch(every_s))
        try:
            yield
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
            await page.look()


class _Page:
    """The pages of which one may still be there."""

    def __init__(self, client: Client, url: str, paths: list[str], keep: Keep, *, drains: bool) -> None:
        self._client, self._url, self._paths, self._keep, self._drains = client, url, paths, keep, drains

    async def watch(self, every_s: float) -> None:
        while self._paths:
            await asyncio.sleep(every_s)
            await self.look()

    async def look(self) -> None:
        """At the first page that answers; those before it are not there."""
        while self._paths:
            call = Call(
                url=self._url + self._paths[0],
                method="GET",
                connect=_WITHIN_S,
                first_byte=_WITHIN_S,
                total=_WITHIN_S,
            )
            seen = await self._client.send(call)
            page = b"".join(data for _, data in seen.chunks) if seen.status == 200 else b""
            json = _is_json(page)
            if (not json or self._drains) and (part := wanted(page)):
                await self._keep(part)
            if seen.status is None or seen.status in _LATER:
                return
            if seen.status == 200 and (not json or self._drains):
                return
            del self._paths[0]


def _is_json(page: bytes) -> bool:
    """Another kind of page, perhaps one whose data is gone once it was read. A server that starts may have an empty one."""
    return page.lstrip()[:1] in (b"[", b"{")
