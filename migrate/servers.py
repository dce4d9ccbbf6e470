"""What the servers say of themselves during a run, into the store: beside the client's numbers, never in their place."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import time
from collections.abc import AsyncIterator, Iterable

from migrate.config import Backend, Config
from migrate.errors import StoreError
from migrate.presets import facts_of
from migrate.store import Store
from migrate.told import told
from replay.exchange import Arm
from replay.prometheus import reading
from replay.scraper import scraping

log = logging.getLogger(__name__)

_LAST_S = 2.0
EVERY_S = 15.0
"""As often as Prometheus asks by default: nobody's request waits for it."""


def backends(config: Config) -> list[tuple[Arm, Backend]]:
    """The backends of a configuration, by arm."""
    both = ((Arm.BASELINE, config.baseline), (Arm.CANDIDATE, config.candidate))
    return [(arm, backend) for arm, backend in both if backend is not None]


@contextlib.asynccontextmanager
async def watched(store: Store, run: str, backends: Iterable[tuple[Arm, Backend]]) -> AsyncIterator[None]:
    """Asks each backend of ours what it is, and looks at its metrics, while it is entered. Nothing waits for it, and what
    cannot be kept is left out. Somebody else's server is not asked."""
    tasks = []
    for arm, backend in backends:
        facts = facts_of(backend.kind, backend.preset)
        if facts.version and not backend.outside:
            tasks.append(asyncio.create_task(_ask(store, run, arm, backend)))
        if pages := facts.metrics + (facts.drained[:1] if backend.drain_metrics else ()):
            tasks.append(asyncio.create_task(_watch(store, run, arm, backend, pages)))
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        if tasks:  # what was observed still waits to be written: a last look may not take long
            await asyncio.wait(tasks, timeout=_LAST_S)
        for task in tasks:
            if task.done() and not task.cancelled() and (error := task.exception()):
                log.warning("the metrics of a server are no longer looked at", exc_info=error)


async def _ask(store: Store, run: str, arm: Arm, backend: Backend) -> None:
    """Keeps what the server says it is, once."""
    key = os.environ.get(backend.api_key_env) if backend.api_key_env else None
    said = await told(backend.url, key)
    with contextlib.suppress(StoreError):
        await asyncio.to_thread(store.put_told, run, arm, time.time(), said)


async def _watch(store: Store, run: str, arm: Arm, backend: Backend, pages: tuple[str, ...]) -> None:
    async def keep(lines: bytes) -> None:
        with contextlib.suppress(StoreError):
            await asyncio.to_thread(store.put_reading, run, arm, reading(time.time(), lines))

    async with scraping(backend.url, keep, pages=pages, every_s=EVERY_S, drains=backend.drain_metrics):
        await asyncio.Event().wait()
