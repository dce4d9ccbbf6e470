"""Real clients of the OpenAI SDK, real servers on threads of their own, and what was stored of the calls between them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import Any

import httpx
import openai

import migrate
from migrate.store import Store
from replay.exchange import Exchange
from replay.simulator.server import serving
from replay.simulator.settings import Settings

KEY = "sk-proj-0123456789abcdefghijklmnopqrstuvwxyz"
SDK = int(openai.__version__.partition(".")[0])
ASK = [{"role": "user", "content": "When does the harbour open?"}]

PACKAGES: dict[str, Any] = {"httpx": httpx}
if SDK >= 3:
    import httpx2

    PACKAGES["httpx2"] = httpx2
OWN = PACKAGES.get("httpx2", httpx)
"""The package that this SDK makes its own clients of."""
WAYS = ("record", *PACKAGES)
"""The helper around the SDK's own client; a transport in a client of each package that the SDK takes."""


@contextmanager
def running(server: AbstractAsyncContextManager[str]) -> Iterator[str]:
    """A server on a loop and a thread of its own, so that synchronous clients can be its callers. Yields its address."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()

    def await_(work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, loop).result(10)

    try:
        yield await_(server.__aenter__())
    finally:
        await_(server.__aexit__(None, None, None))
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def simulator(**settings: Any) -> AbstractAsyncContextManager[str]:
    return serving(Settings(**settings))


def sync_client(way: str, url: str, store: str, **more: Any) -> Any:
    words = {"base_url": f"{url}/v1", "api_key": KEY, "max_retries": 0} | more
    if way == "record":
        return migrate.record(openai.OpenAI(**words), store)
    http = PACKAGES[way].Client(transport=migrate.RecordingTransport(store=store))
    return openai.OpenAI(http_client=http, **words)


def async_client(way: str, url: str, store: str, **more: Any) -> Any:
    words = {"base_url": f"{url}/v1", "api_key": KEY, "max_retries": 0} | more
    if way == "record":
        return migrate.record(openai.AsyncOpenAI(**words), store)
    http = PACKAGES[way].AsyncClient(transport=migrate.RecordingTransport(store=store))
    return openai.AsyncOpenAI(http_client=http, **words)


def stored(store: str) -> list[Exchange]:
    """Everything in a store, in the order of asking, once this process has written what it has."""
    assert migrate.stop_recording()
    return reading(store)


def reading(store: str) -> list[Exchange]:
    """Everything in a store as it is."""
    with Store.open(store) as opened:
        found = [exchange for run in opened.runs() for exchange in opened.exchanges(run.id)]
        assert {run.kind for run in opened.runs()} <= {"capture"}
    return sorted(found, key=lambda exchange: exchange.request.at)


def counted(store: str) -> dict[str, int]:
    """The counters of the latest run."""
    with Store.open(store) as opened:
        return opened.counters(opened.run().id)


def eventually(true: Callable[[], bool], *, within: float = 10.0) -> None:
    """Waits until something is true."""
    done = threading.Event()
    for _ in range(int(within / 0.05)):
        if true():
            return
        done.wait(0.05)
    raise AssertionError(f"not true within {within:g} s")
