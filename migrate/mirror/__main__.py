"""``python -m migrate.mirror --fd N``: the mirror process, started by the gateway.

Standard input holds one JSON object, ``{"config": {…}, "kind": "shadow", "run": null, "salt": "…"}``: the configuration as
``Config.model_dump(mode="json", by_alias=True)`` gives it, the kind of run, the run to go on with after a restart (``null``
begins a new one), and the redaction's secret in hexadecimal, the same for the whole run. ``N`` is this process's end of a
socket pair that carries ``migrate.channel`` frames.

Once the store is open it sends ``MirrorStatus`` with ``ready`` true, ``run`` and ``held`` (requests that the run held when this
process began), then one about every second, and a last one when all copies have ended. When it cannot start it writes one line
to standard error and exits with the error's code. It ends, with everything written, after ``Control(stop=True)`` or when the
channel closes because the gateway is gone; with code 1 and a line when the store did not take everything.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import secrets
import signal
import socket
import sys
import time
from typing import Any

import orjson
import uvloop

from migrate import tracing
from migrate.channel import Control, Frames, MirrorStatus, encode, message
from migrate.config import Config
from migrate.errors import MigrateError
from migrate.mirror.mirror import Mirror
from migrate.redact import Redactor
from migrate.servers import backends, watched
from migrate.store import Store, Writer
from replay.client import Client
from replay.exchange import Arm

_STATUS_S = 1.0
_DRAIN_S = 8.0
_FLUSH_S = 10.0
_SWITCH_S = 0.0005
"""How long a decoding thread may keep the interpreter while a candidate's chunk waits to be timed."""


def main() -> int:
    """Reads what to do, runs until it is told to stop. Returns the exit code."""
    parser = argparse.ArgumentParser(prog="migrate.mirror")
    parser.add_argument("--fd", type=int, required=True)
    fd = parser.parse_args().fd
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(
            number, signal.SIG_IGN
        )  # the gateway says when to stop, and a closed channel says it too
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.setswitchinterval(_SWITCH_S)
    start = orjson.loads(sys.stdin.buffer.read())
    try:
        return 0 if uvloop.run(_run(socket.socket(fileno=fd), start)) else 1
    except MigrateError as error:
        print(f"migrate: {error}", file=sys.stderr)
        return error.exit_code


async def _run(sock: socket.socket, start: dict[str, Any]) -> bool:
    """Returns whether everything is in the store."""
    config = Config.model_validate(start["config"])
    with Store.open(config.store.url, create=True) as store:
        run = start["run"] or _begin(store, config, start["kind"])
        await asyncio.to_thread(store.forget_bodies, before=time.time() - config.store.keep_bodies)
        writer = Writer(store, run)
        async with Client() as client:
            redactor = Redactor(config.redact, bytes.fromhex(start["salt"]))
            spans = tracing.spans(config.traces, run=run, urls=_urls(config))
            mirror = Mirror(
                config,
                client=client,
                redactor=redactor,
                writer=writer,
                counted=store.counters(run),
                spans=spans,
                shifting=start["kind"] == "canary",
            )
            gc.collect()
            gc.freeze()
            async with watched(store, run, backends(config)):
                told = await _serve(sock, mirror, run, held=store.count(run))
        flushed = await asyncio.to_thread(writer.close, _FLUSH_S)
        await asyncio.to_thread(spans.close)
        if flushed:
            store.end_run(run, at=time.time(), status="ended" if told else "cut")
        else:
            print(f"migrate: the store took no more: {writer.status()['error']}", file=sys.stderr)
        return flushed


def _urls(config: Config) -> dict[Arm, str]:
    urls = {arm: backend.url for arm, backend in backends(config)}
    return urls | {Arm.BASELINE_REPEAT: config.baseline.url}


def _begin(store: Store, config: Config, kind: str) -> str:
    data = config.model_dump(mode="json", by_alias=True)
    return store.begin_run(
        kind=kind, config=data, policy=data["policy"], seed=secrets.randbits(32), at=time.time()
    )


async def _serve(sock: socket.socket, mirror: Mirror, run: str, *, held: int) -> bool:
    """Takes messages until the gateway says stop (true) or is gone."""
    reader, writer = await asyncio.open_unix_connection(sock=sock)
    frames = Frames(message)

    async def report() -> None:
        values = {"ready": True, "run": run, "held": held} | mirror.status()
        writer.write(encode(MirrorStatus(values=values)))
        with contextlib.suppress(ConnectionError):
            await writer.drain()

    async def keep_reporting() -> None:
        while True:
            await report()
            await asyncio.sleep(_STATUS_S)

    reporting = asyncio.create_task(keep_reporting())
    stop = False
    try:
        while not stop and (data := await reader.read(2**20)):
            for heard in frames.feed(data):
                mirror.take(heard)
                stop = stop or (isinstance(heard, Control) and heard.stop)
    except ConnectionError:
        pass
    finally:
        await mirror.drain(_DRAIN_S)
        reporting.cancel()
        if stop:
            await report()  # what became of the last copies
        writer.close()
    return stop


if __name__ == "__main__":
    sys.exit(main())
