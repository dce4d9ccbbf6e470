"""A canary beside a gateway that runs: who looks after it, and how it ends."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import asdict
from typing import Any

from migrate.canary.gateway import Shifting
from migrate.canary.link import Link
from migrate.config import Config
from migrate.gateway import BROKEN
from migrate.mirror.adapt import model_names
from migrate.supervisor import Mirror
from migrate.tap import Tap
from migrate.upstream import Upstream, UpstreamFailed
from replay.backends import BACKENDS

HEALTH_S = 2.0
"""How long the candidate may take over its health check."""
JUDGED_S = 60.0
"""Between two judgements of a canary, unless ``notify.every`` says less."""
_EVERY_S = 1.0

Say = Callable[[str], None]

log = logging.getLogger(__name__)


def recorded(config: Config) -> Config:
    """What is sampled in a canary: conversations, ``canary.record`` of them, since they are also what stays on its side."""
    by = "conversation" if config.shadow.sample_by == "request" else config.shadow.sample_by
    shadow = config.shadow.model_copy(update={"percent": config.canary.record, "sample_by": by})
    return config.model_copy(update={"shadow": shadow})


def gateway_name(config: Config) -> str:
    """Who a gateway is in the audit log: its host and where it listens."""
    return f"gateway {socket.gethostname()} {config.gateway.listen}"


def shifting(config: Config, baseline: Upstream, candidate: Upstream, tap: Tap, halted: Say) -> Shifting:
    """The gateway of a canary. ``config`` has a candidate. Raises ConfigError when its key is not there."""
    if config.candidate is None:
        raise ValueError("a canary has a candidate")
    return Shifting(
        baseline,
        candidate,
        tap,
        section=config.canary,
        names=model_names(config.baseline, config.candidate),
        key=config.candidate.api_key(),
        max_body=config.gateway.max_body,
        first_byte=config.candidate.timeouts.first_byte,
        halted=halted,
    )


@contextlib.asynccontextmanager
async def linked(
    config: Config, gateway: Shifting, mirror: Mirror, *, why: str, judged: Callable[[], str | None], say: Say
) -> AsyncIterator[Link]:
    """The canary of a gateway whose mirror is up, while the block runs.

    ``judged`` says why the last judgement came to nothing, if it did.
    """
    from migrate.canary.entering import entered  # a database, which no other gateway has a use for

    section = config.canary
    state = await asyncio.to_thread(entered, config, run=mirror.run or "", why=why)
    start = {
        "store": config.store.url,
        "who": gateway_name(config),
        "lost_store": section.lost_store,
        "cool_down": section.cool_down,
    }
    link = Link(start, gateway, state=asdict(state), say=say)
    link.apply()
    chores = (link.run(), link.watch(), _health(config, gateway), _sources(config, gateway, mirror, judged))
    tasks = [asyncio.create_task(_kept_up(chore, gateway)) for chore in chores]
    try:
        yield link
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _kept_up(chore: Coroutine[Any, Any, None], gateway: Shifting) -> None:
    """What looks after the candidate never ends by itself: where it does, nobody looks any more."""
    try:
        await chore
    except Exception:
        log.exception("the watch over the candidate failed")
        gateway.halt("the watch over the candidate failed, a defect of ours", failing=False)


async def _health(config: Config, gateway: Shifting) -> None:
    """Asks the candidate every second whether it is well, as long as clients depend on it."""
    path = BACKENDS[config.candidate.kind].health if config.candidate else None
    while True:
        if gateway.share > 0:
            gateway.health(await ill(gateway.candidate, path))
        await asyncio.sleep(_EVERY_S)


async def ill(upstream: Upstream, path: str | None) -> str | None:
    """What is wrong with a server; ``None`` when it is well. Without a health route (``path``) it has to take connections."""
    if path is None:
        return await upstream.reachable()
    head = b"GET %b HTTP/1.1\r\nHost: %b\r\n\r\n" % (upstream.prefix + path.encode(), upstream.host)
    try:
        async with asyncio.timeout(HEALTH_S):
            call = await upstream.call((head,), bodiless=False, fresh=True)
            try:
                message, _ = await call.head()
            finally:
                call.close()
    except TimeoutError:
        return f"{path} did not answer within {HEALTH_S:g} s"
    except UpstreamFailed as error:
        return error.message
    except BROKEN as error:
        return f"{path}: {upstream.explain(error).message}"
    return f"{path} answered {message.code}" if message.code >= 500 else None


async def _sources(
    config: Config, gateway: Shifting, mirror: Mirror, judged: Callable[[], str | None]
) -> None:
    """Nobody would see harm when what shows it fails: then the candidate answers nobody."""
    limit, since = config.canary.halt.evidence, None
    while True:
        problem = _blind(mirror, limit) or judged()
        if problem is None:
            since = None
        else:
            since = time.monotonic() if since is None else since
            if time.monotonic() - since >= limit:
                gateway.halt(
                    f"for {limit:g} s nobody could see what the candidate does: {problem}", failing=False
                )
        await asyncio.sleep(_EVERY_S)


def _blind(mirror: Mirror, limit: float) -> str | None:
    if not mirror.up:
        return "the mirror is down"
    if mirror.heard_at is not None and time.monotonic() - mirror.heard_at > limit:
        return "the mirror does not answer"
    error = mirror.status.get("store", {}).get("error")
    return f"the store takes nothing: {error}" if error else None
