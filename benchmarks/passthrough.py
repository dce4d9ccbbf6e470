"""The yardstick: the least that an aiohttp server with an aiohttp client does to pass a request on.

``python -m benchmarks.passthrough UPSTREAM_URL``; prints its port.
"""

from __future__ import annotations

import asyncio
import sys

import aiohttp
import uvloop
from aiohttp import web

_HOP_BY_HOP = {"connection", "keep-alive", "te", "transfer-encoding", "upgrade", "host", "content-length"}


async def main(upstream: str) -> None:
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(
        connector=connector, auto_decompress=False, cookie_jar=aiohttp.DummyCookieJar()
    ) as session:

        async def handle(request: web.BaseRequest) -> web.StreamResponse:
            headers = [(k, v) for k, v in request.headers.items() if k.lower() not in _HOP_BY_HOP]
            body = await request.read()
            url = upstream + request.raw_path
            async with session.request(
                request.method, url, data=body or None, headers=headers, allow_redirects=False
            ) as answer:
                kept = [(k, v) for k, v in answer.headers.items() if k.lower() not in _HOP_BY_HOP]
                response = web.StreamResponse(status=answer.status, reason=answer.reason)
                response.headers.extend(kept)
                response.content_length = answer.content_length
                await response.prepare(request)
                async for piece in answer.content.iter_any():
                    await response.write(piece)
                await response.write_eof()
                return response

        server = web.Server(handle, access_log=None)
        listener = await asyncio.get_running_loop().create_server(server, "127.0.0.1", 0, backlog=512)
        print(listener.sockets[0].getsockname()[1], flush=True)
        await listener.serve_forever()


if __name__ == "__main__":
    uvloop.run(main(sys.argv[1]))
