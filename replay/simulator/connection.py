"""What can be done to one client connection: wait, hang, flood, reset."""

from __future__ import annotations

import asyncio
import socket
import struct
import time

from aiohttp import web

_FLOOD = b'data: {"choices": [[[[ \xff\xfe garbage without an end \x00' * 1024


async def sleep_until(at: float) -> None:
    """Waits for a reading of the monotonic clock; a time that has passed does not yield."""
    if (wait := at - time.monotonic()) > 0:
        await asyncio.sleep(wait)


async def hang(request: web.Request) -> None:
    """Never answers. Raises ConnectionResetError once the client has left."""
    while request.transport is not None and not request.transport.is_closing():  # noqa: ASYNC110 (no event tells)
        await asyncio.sleep(0.05)
    raise ConnectionResetError("the client left")


async def flood(response: web.StreamResponse) -> None:
    """Writes garbage as fast as it is read. Raises ConnectionError once the client has left."""
    while True:
        await response.write(_FLOOD)


async def reset(request: web.Request) -> None:
    """Resets the connection: with a linger of 0 the kernel sends RST in place of FIN."""
    await asyncio.sleep(0.001)  # what was written last leaves before the reset overtakes it
    if request.transport is None:
        return
    plug = request.transport.get_extra_info("socket")
    if plug is not None:
        plug.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    request.transport.abort()
