"""One run of the gateway: listeners, the mirror process beside them, signals, and an orderly end.

Order of starting: addresses are taken, the mirror opens the store, then clients are let in. Order of ending: no new
connections, streams finish within the grace time, counters and the store are flushed.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import gc
import os
import secrets
import signal
import socket
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import orjson
from aiohttp import web

from migrate import __version__, admin, leaving, tracing
from migrate.canary import serving
from migrate.canary.gateway import Shifting
from migrate.canary.link import Link
from migrate.changes import Changes
from migrate.channel import Counted
from migrate.config import Config
from migrate.downstream import Server
from migrate.errors import ConfigError
from migrate.files import raise_file_limit
from migrate.gateway import Gateway
from migrate.notifying.periodic import Periodic
from migrate.supervisor import Mirror, Say
from migrate.tap import Tap
from migrate.upstream import Upstream
from migrate.whereabouts import lost, summary, withheld

LAST = 60.0
"""Seconds for the last judgement of a run, and for telling those whom ``notify:`` names. Clients have left by then."""
FLUSH = 30.0
"""Seconds that the mirror gets to write what it holds when a run ends."""

_FEW_FILES = 4_096
_COUNT_EVERY = 2.0
_WATCH_EVERY = 1.0
_PROGRESS_EVERY = 10.0
_REACHABLE_FOR = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What one run is asked to do. ``kind``: ``shadow``, ``capture`` (no candidate), or ``canary``."""

    config: Config
    kind: str
    duration: float | None = None
    """Seconds after which it ends by itself; ``None`` runs until it is told to stop."""
    quiet: bool = False
    """Only say what goes wrong, and what changes."""
    progress: bool = False
    """Also say how far it is, now and then."""
    why: str = ""
    """Why a canary may begin."""
    mirror: Sequence[str] = (sys.executable, "-m", "migrate.mirror", "--fd", "{fd}")
    """The command of the mirror process."""
    salt: str = field(default_factory=lambda: secrets.token_hex(32), repr=False)
    """The secret of this run's placeholders, so that equal stays equal when the mirror starts again. Never stored."""


class Operation:
    """The running parts, and what the admin listener sees of them."""

    link: Link | None = None
    """The canary that goes on here."""

    def __init__(self, run: Run, gateway: Gateway, mirror: Mirror, judging: Periodic | None) -> None:
        self.run = run
        self.gateway = gateway
        self.mirror_process = mirror
        self.judging = judging
        self.started = time.monotonic()
        self._changes = Changes(self.started)
        self._reachable: tuple[float, str | None] = (-_REACHABLE_FOR, None)

    async def ready(self) -> tuple[bool, dict[str, Any]]:
        """Clients may come while the baseline takes connections. A mirror that is down is shown and keeps nobody away:
        production needs no mirror."""
        at, problem = self._reachable
        if time.monotonic() - at >= _REACHABLE_FOR:
            problem = await self.gateway.baseline.reachable()
            self._reachable = (time.monotonic(), problem)
        if self.gateway.closing:
            problem = "the gateway is shutting down"
        return problem is None, {"problem": problem, "mirror": "up" if self.mirror_process.up else "down"}

    def status(self) -> dict[str, Any]:
        """Counters and states as they stand."""
        mirror, config = self.mirror_process, self.run.config
        now = time.monotonic()
        return {
            "version": __version__,
            "run": mirror.run,
            "kind": self.run.kind,
            "uptime_s": round(now - self.started, 3),
            "baseline": config.baseline.url,
            "candidate": config.candidate.url if config.candidate else None,
            "percent": round(config.shadow.percent * 100, 6),
            "mirroring": self.gateway.tap.mirroring,
            "open_requests": self.gateway.open,
            "counters": dict(self.gateway.tap.counters),
            "withheld": withheld(mirror.status),
            "lost": lost(self.gateway.tap.counters, mirror.status),
            "mirror": {
                "up": mirror.up,
                "problem": mirror.problem,
                "restarts": mirror.restarts,
                "age_s": None if mirror.heard_at is None else round(now - mirror.heard_at, 3),
                **mirror.status,
            },
            **({"canary": self.link.status()} if self.link else {}),
            **(self.judging.status() if self.judging else {"verdict": None, "receivers": {}}),
        }

    def alarmed(self) -> bool:
        """Whether the candidate has failed so often that its circuit breaker is not closed."""
        return str(self.mirror_process.status.get("breaker", "closed")) != "closed"

    def unjudged(self) -> str | None:
        """Why the last judgement came to nothing, if it did."""
        problem = self.judging.problem if self.judging else None
        return f"the run could not be judged: {problem}" if problem else None

    def changed(self) -> Iterator[str]:
        """What there is to say since it was asked last."""
        return self._changes.lines(self.status(), time.monotonic())

    def looked(self) -> Path | None:
        """Somebody looks at the live page."""
        return self.judging.looked() if self.judging else None

    def mirror(self, *, on: bool) -> None:
        """The kill switch: from the next request on nothing is mirrored, and copies in flight are cancelled."""
        self.gateway.tap.mirroring = on
        self.mirror_process.control(mirroring=on)


def execute(run: Run, say: Say) -> int:
    """Runs until told to stop. Returns the exit code: 0, or 130 after Ctrl-C.

    ``say`` takes lines for the person who watches. Raises ConfigError before anything listens, and MirrorFailed when
    the store cannot be opened.
    """
    tracing.ready(run.config.traces)
    run.config.gateway.token()  # a run does not begin where it could not be stopped
    _raise_file_limit(say)
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        return runner.run(_execute(run, say))


def _raise_file_limit(say: Say) -> None:
    """Each request in hand takes two connections; the usual soft limit of 1,024 files would end at 500 streams."""
    most = raise_file_limit()
    if most < _FEW_FILES:
        say(
            f"warning: this process may open {most} files, enough for about {most // 2 - 32} requests at once"
        )


async def _execute(run: Run, say: Say) -> int:
    config = run.config
    stop = _stop_on_signals()
    async with contextlib.AsyncExitStack() as stack:
        client_side = stack.enter_context(_bound(config.gateway.listen, "gateway.listen"))
        admin_side = stack.enter_context(_bound(config.gateway.admin, "gateway.admin"))
        upstream = Upstream(config.baseline)
        stack.push_async_callback(upstream.close)
        mirror = Mirror(
            run.mirror,
            initial=lambda found: mirror_input(run, found),
            queue=config.shadow.queue,
            say=say,
        )

        def halt(why: str) -> None:
            if operation.link is not None:
                operation.link.halted(why, run=mirror.run)

        gateway = await stack.enter_async_context(_gateway(run, upstream, mirror, halt))
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="migrate-"))
        operation = Operation(run, gateway, mirror, _judging(run, mirror, Path(folder) / "report.html", say))

        try:
            await mirror.start()
            async with _canary(operation, say):
                await _serve(operation, client_side, admin_side, stop, say)
        finally:
            await mirror.stop(FLUSH)
        tell = _silent if run.quiet else say
        tell(summary(operation.status()))
        if operation.judging is not None and config.notify is not None:
            tell("the run is judged once more, for those whom notify: names")
            await operation.judging.once(LAST)
            _say_all(operation.changed(), say)
    return stop.result() if stop.done() else 0


@contextlib.asynccontextmanager
async def _gateway(
    run: Run, upstream: Upstream, mirror: Mirror, halted: Callable[[str], None]
) -> AsyncIterator[Gateway]:
    config, tap = run.config, Tap(run.config.shadow, mirror.send)
    if run.kind != "canary" or config.candidate is None:
        yield Gateway(upstream, tap, max_body=config.gateway.max_body)
        return
    candidate = Upstream(config.candidate, "candidate")
    try:
        yield serving.shifting(config, upstream, candidate, tap, halted)
    finally:
        await candidate.close()


@contextlib.asynccontextmanager
async def _canary(operation: Operation, say: Say) -> AsyncIterator[None]:
    """Follows the state of a canary while the block runs; does nothing for any other run."""
    run, gateway = operation.run, operation.gateway
    if not isinstance(gateway, Shifting):
        yield
        return
    async with serving.linked(
        run.config, gateway, operation.mirror_process, why=run.why, judged=operation.unjudged, say=say
    ) as operation.link:
        yield


async def _serve(
    operation: Operation,
    client_side: socket.socket,
    admin_side: socket.socket,
    stop: asyncio.Future[int],
    say: Say,
) -> None:
    """Lets clients in until ``stop``, then lets them out."""
    run, gateway = operation.run, operation.gateway
    tell = _silent if run.quiet else say
    for line in leaving.mirrored(run.config):
        tell(line)
    runner = web.AppRunner(admin.application(operation, run.config.gateway.token()), access_log=None)
    await runner.setup()
    server = gateway.server()
    try:
        listener = await _listening(
            asyncio.get_running_loop().create_server(server, sock=client_side, backlog=1024),
            "gateway.listen",
            run.config.gateway.listen,
        )
        await _listening(web.SockSite(runner, admin_side).start(), "gateway.admin", run.config.gateway.admin)
        gc.collect()
        gc.freeze()  # what exists now lives as long as the process; later collections need not look at it
        _announce(operation, client_side, admin_side, tell)
        problem = await gateway.baseline.reachable()
        if problem:
            say(f"warning: {problem}; clients get an error until it answers")
        chores = asyncio.gather(_chores(operation, say), _watch(operation, say), _judge(operation))
        await asyncio.wait((stop,), timeout=run.duration)
        await _drain(gateway, server, listener, run.config.gateway.grace, say)
        chores.cancel()
        await asyncio.gather(chores, return_exceptions=True)
    finally:
        await runner.cleanup()
    operation.mirror_process.send(_counted(operation))


async def _drain(gateway: Gateway, server: Server, listener: asyncio.Server, grace: float, say: Say) -> None:
    """No new connections; open requests get ``grace`` seconds; what is left then is cut."""
    listener.close()
    gateway.closing = True
    server.close_idle()
    if gateway.open:
        say(f"stopping: {gateway.open} open requests get {grace:g} s to finish (Ctrl-C again stops at once)")
    if not await gateway.finish(grace):
        say(f"{gateway.open} requests did not finish in time and are cut")
    server.pre_shutdown()
    await server.shutdown(0.1)
    gateway.settle()


async def _chores(operation: Operation, say: Say) -> None:
    """Counters to the store and a line to the terminal, regularly."""
    tap = operation.gateway.tap
    sent: dict[str, int] = {}
    shown = time.monotonic()
    while True:
        await asyncio.sleep(_COUNT_EVERY)
        if tap.counters != sent and operation.mirror_process.send(_counted(operation)) is None:
            sent = dict(tap.counters)
        if operation.run.progress and time.monotonic() - shown >= _PROGRESS_EVERY:
            shown = time.monotonic()
            say(summary(operation.status()) + ("" if operation.mirror_process.up else " · mirror down"))


async def _watch(operation: Operation, say: Say) -> None:
    while True:
        await asyncio.sleep(_WATCH_EVERY)
        _say_all(operation.changed(), say)


def _say_all(lines: Iterable[str], say: Say) -> None:
    for line in lines:
        say(line)


async def _judge(operation: Operation) -> None:
    if operation.judging is not None:
        await operation.judging.run(operation.alarmed)


def _judging(run: Run, mirror: Mirror, page: Path, say: Say) -> Periodic | None:
    """``None`` where there is nothing to judge."""
    if run.kind == "capture":
        return None

    def initial() -> bytes:
        config = run.config.model_dump(mode="json", by_alias=True)
        said = {"config": config, "run": mirror.run, "page": str(page)}
        canary = {"who": serving.gateway_name(run.config)} if run.kind == "canary" else None
        return orjson.dumps(said | {"canary": canary})

    every = run.config.notify.every if run.config.notify else None
    if run.kind == "canary":
        every = min(every or serving.JUDGED_S, serving.JUDGED_S)
    return Periodic(initial=initial, every=every, page=page, say=say)


def _counted(operation: Operation) -> Counted:
    """The counters for the store, with the configured share beside them in parts per million."""
    share = round(operation.run.config.shadow.percent * 1e6)
    return Counted(counters={**operation.gateway.tap.counters, "mirror_ppm": share})


def _announce(operation: Operation, client_side: socket.socket, admin_side: socket.socket, say: Say) -> None:
    run, config = operation.run, operation.run.config
    url = f"http://{_address(admin_side)}"
    say(f"gateway on http://{_address(client_side)} passes to the baseline {config.baseline.url}")
    for key, plug in (("gateway.listen", client_side), ("gateway.admin", admin_side)):
        if _everywhere(plug):
            say(f"{key} listens on all interfaces: other machines reach it by a name of this one")
    whom = f"is mirrored to the candidate {config.candidate.url}" if config.candidate else "is captured"
    if operation.link is not None and config.candidate is not None:
        say(f"canary {operation.link.state['canary']} moves clients to the candidate {config.candidate.url}")
        whom = "is recorded on both sides"
    share, paths = f"{config.shadow.percent * 100:g} %", ", ".join(config.shadow.paths)
    say(f"{share} of {paths} {whom}, sampled by {config.shadow.sample_by}")
    say(f"run {operation.mirror_process.run} goes into {config.store.url}")
    token = config.gateway.admin_token_env
    shown = f' -H "Authorization: Bearer ${token}"' if token else ""
    say(f"live page: {url}/ · status: {url}/status")
    say(f"stop mirroring at once: curl -X POST{shown} {url}/mirroring/stop")
    if run.duration is not None:
        say(f"ends by itself after {run.duration:g} s")


def mirror_input(run: Run, found: str | None) -> bytes:
    """What the mirror process reads first: its configuration, and the run to go on with after a restart."""
    config = run.config.model_dump(mode="json", by_alias=True)
    return orjson.dumps({"config": config, "kind": run.kind, "run": found, "salt": run.salt})


def _silent(line: str) -> None:
    """What goes well goes unsaid."""


def _bound(address: str, key: str) -> socket.socket:
    """A socket on that address, not listening yet. Raises ConfigError in one line when it cannot be had."""
    host, _, port = address.rpartition(":")
    try:
        found = socket.getaddrinfo(
            host.strip("[]"), int(port), type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        family, kind, protocol, _, where = found[0]
        plug = socket.socket(family, kind, protocol)
        plug.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        plug.bind(where)
    except OSError as error:
        raise _cannot_listen(error, key, address) from error
    return plug


async def _listening(work: Any, key: str, address: str) -> Any:
    try:
        return await work
    except OSError as error:
        raise _cannot_listen(error, key, address) from error


def _cannot_listen(error: OSError, key: str, address: str) -> ConfigError:
    if error.errno == errno.EADDRINUSE:
        return ConfigError(f"{key}: {address} is in use by another process; stop it, or choose another port")
    return ConfigError(f"{key}: cannot listen on {address} ({error.strerror or error})")


def _address(plug: socket.socket) -> str:
    """Where it can be reached from this machine: all interfaces together are no address to open."""
    host, port = plug.getsockname()[:2]
    if _everywhere(plug):
        host = "::1" if ":" in host else "127.0.0.1"
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _everywhere(plug: socket.socket) -> bool:
    """Whether it listens on all interfaces."""
    return ip_address(plug.getsockname()[0].partition("%")[0]).is_unspecified


def _stop_on_signals() -> asyncio.Future[int]:
    """A future that the first signal completes with the exit code. A second Ctrl-C ends the process at once."""
    loop = asyncio.get_running_loop()
    stop: asyncio.Future[int] = loop.create_future()

    def stopped(code: int) -> None:
        if not stop.done():
            stop.set_result(code)
        elif code:
            os._exit(code)

    loop.add_signal_handler(signal.SIGTERM, stopped, 0)
    loop.add_signal_handler(signal.SIGHUP, stopped, 0)
    loop.add_signal_handler(signal.SIGINT, stopped, 130)
    return stop


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop where it exists."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop
