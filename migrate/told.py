"""Asks a server what it is."""

from __future__ import annotations

import asyncio
from typing import Any

from replay.client import Call, Client
from replay.coding import joined, plain
from replay.decoding import header, parse_object
from replay.exchange import Ending, Headers
from replay.told import PAGES, Told, read

_LIMIT_S = 3.0
_LARGEST = 2**20
"""Bytes of a page, unpacked too."""


async def told(url: str, key: str | None) -> Told:
    """Asks the server at ``url``, within three seconds. Never raises for what it answers."""
    headers = (("authorization", f"Bearer {key}"),) if key else ()
    async with Client() as client:
        return read(*await asyncio.gather(*(_page(client, url + path, headers) for path in PAGES)))


async def _page(client: Client, url: str, headers: Headers) -> Any:
    call = Call(
        url=url,
        method="GET",
        headers=headers,
        connect=_LIMIT_S,
        first_byte=_LIMIT_S,
        total=_LIMIT_S,
        max_answer=_LARGEST,
    )
    seen = await client.send(call)
    if seen.ending is not Ending.COMPLETE or seen.status != 200:
        return None
    chunks, problem = plain(seen.chunks, header(seen, "content-encoding"), _LARGEST)
    return None if problem else parse_object(joined(chunks))
