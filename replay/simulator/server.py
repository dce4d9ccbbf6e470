"""The simulator's network edge: the aiohttp application, and the process around it."""

from __future__ import annotations

import asyncio
import os
import signal
import ssl
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from replay.simulator.service import Service
from replay.simulator.settings import Settings

_LARGEST_BODY = 256 * 2**20
_GRACE = 0.5
"""Seconds that answers in flight may take after a stop before they are cut."""


def make_app(settings: Settings, *, exit_process: Callable[[int], object] = os._exit) -> web.Application:
    """The simulator as an aiohttp application.

    ``exit_process`` is called with 1 when ``faults.crash_after`` is exceeded. Raises OSError when a file that
    the settings name cannot be opened.
    """
    service = Service(settings, exit_process=exit_process)
    app = web.Application(client_max_size=_LARGEST_BODY)
    app.router.add_route("*", settings.root + "/{path:.*}", service.handle)
    app.on_cleanup.append(service.close)
    return app


@asynccontextmanager
async def serving(
    settings: Settings, host: str = "127.0.0.1", port: int = 0, *, tls: ssl.SSLContext | None = None
) -> AsyncIterator[str]:
    """Serves within this process and yields the URL, without ``root``. Raises OSError when the address cannot be bound."""
    runner = web.AppRunner(
        make_app(settings),
        access_log=None,
        handler_cancellation=True,
        keepalive_timeout=settings.keep_alive,
        shutdown_timeout=_GRACE,
    )
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port, backlog=1024, ssl_context=tls).start()
        yield _url(host, runner.addresses[0][1], secure=tls is not None)
    finally:
        await runner.cleanup()


def run(settings: Settings, host: str, port: int) -> int:
    """Serves until SIGTERM (returns 0) or an interrupt (130). Raises OSError when it cannot listen."""
    return _run(_until_stopped(settings, host, port))


def _run(main: Coroutine[Any, Any, int]) -> int:
    """On uvloop where it is installed: it is an optional speed-up, absent on some platforms."""
    try:
        import uvloop
    except ImportError:
        return asyncio.run(main)
    return uvloop.run(main)


async def _until_stopped(settings: Settings, host: str, port: int) -> int:
    stopped: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def stop(code: int) -> None:
        if not stopped.done():
            stopped.set_result(code)

    for number, code in ((signal.SIGTERM, 0), (signal.SIGINT, 130)):
        asyncio.get_running_loop().add_signal_handler(number, stop, code)
    async with serving(settings, host, port) as url:
        print(
            f"simulator {settings.dialect} listening on {url} (pid {os.getpid()})",
            file=sys.stderr,
            flush=True,
        )
        return await stopped


def _url(host: str, port: int, *, secure: bool) -> str:
    named = f"[{host}]" if ":" in host else host
    return f"http{'s' * secure}://{named}:{port}"
