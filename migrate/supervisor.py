"""The mirror process seen from the gateway: started, kept up, never waited for.

``Mirror.send`` is the tap's sink: it takes a message when the channel has room for it and refuses it otherwise.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Sequence
from typing import Any, cast

from migrate.channel import Control, Frames, Message, MirrorStatus, encode, status
from migrate.errors import MigrateError

NICENESS = 10
"""Production has the processor first. The mirror has to stay in the gateway's session: to Linux's scheduler another session is
another customer (autogroup), who gets as much of a processor whatever its niceness."""

_READY = 60.0
_BACKOFF = (1.0, 60.0)
_STEADY = 60.0

Say = Callable[[str], None]


class MirrorFailed(MigrateError):
    """The mirror process did not come up: its own line and its own exit code."""

    def __init__(self, line: str, exit_code: int) -> None:
        super().__init__(line)
        self.exit_code = exit_code


class _Link(asyncio.Protocol):
    """The gateway's end of the channel."""

    def __init__(self, heard: Callable[[MirrorStatus], None]) -> None:
        self.transport: asyncio.Transport | None = None
        self._frames = Frames(status)
        self._heard = heard

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        try:
            for message in self._frames.feed(data):
                self._heard(message)
        except ValueError:
            if self.transport is not None:
                self.transport.close()  # whoever speaks there is not our mirror

    def connection_lost(self, exc: Exception | None) -> None:
        self.transport = None


class Mirror:
    """The mirror process of one run.

    ``command`` starts it; ``{fd}`` in a word becomes the number of its end of the channel. ``initial`` makes what it
    reads from standard input, given the run to go on with (``None`` at first). ``queue`` bounds the bytes that wait for
    it. ``say`` takes lines for the person who watches.
    """

    def __init__(
        self, command: Sequence[str], *, initial: Callable[[str | None], bytes], queue: int, say: Say
    ) -> None:
        self._command = command
        self._initial = initial
        self._queue = queue
        self._say = say
        self._link: _Link | None = None
        self._process: Process | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._ready: asyncio.Future[str] | None = None
        self._stopping = False
        self._mirroring = True
        self._last_line = ""
        self.run: str | None = None
        self.restarts = 0
        self.problem: str | None = None
        """Why it is down; ``None`` while it is up, and when it was told to end."""
        self.status: dict[str, Any] = {}
        self.heard_at: float | None = None
        """Reading of the monotonic clock at the last status; ``None`` before the first."""

    @property
    def up(self) -> bool:
        """Whether messages can be handed over."""
        return self._link is not None and self._link.transport is not None

    def send(self, message: Message) -> str | None:
        """Hands a message over at once, or says why not: ``mirror_down`` or ``queue_full``."""
        transport = self._link.transport if self._link is not None else None
        if transport is None or transport.is_closing():
            return "mirror_down"
        room = self._queue - transport.get_write_buffer_size()
        if room <= 0:
            return "queue_full"
        frame = encode(message)
        if len(frame) > room:
            return "queue_full"
        transport.write(frame)
        return None

    def control(self, *, mirroring: bool) -> None:
        """The kill switch: the mirror cancels its copies, also when its queue is full. It survives a restart."""
        self._mirroring = mirroring
        self._force(Control(mirroring=mirroring))

    async def start(self) -> str:
        """Starts the process and waits until it is ready. Returns the run's id. Raises MirrorFailed."""
        self.run = await self._spawn()
        self._keep(self._supervise())
        return self.run

    async def stop(self, within: float) -> None:
        """Lets the process write what it has and end; kills it when that takes longer than ``within`` seconds."""
        self._stopping = True
        self._force(Control(mirroring=self._mirroring, stop=True))
        process = self._process
        if process is not None and process.returncode is None:
            try:
                await asyncio.wait_for(process.wait(), within)
            except TimeoutError:
                self._say(
                    f"the mirror did not end within {within:g} s and is killed; what it flushed is kept"
                )
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._drop_link()

    def _force(self, message: Message) -> None:
        if self._link is not None and self._link.transport is not None:
            self._link.transport.write(encode(message))

    def _keep(self, work: Any) -> asyncio.Task[None]:
        task: asyncio.Task[None] = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _spawn(self) -> str:
        """One process, up and ready."""
        loop = asyncio.get_running_loop()
        ready: asyncio.Future[str] = loop.create_future()
        self._ready = ready
        ours, theirs = socket.socketpair()
        with theirs:
            words = [word.format(fd=theirs.fileno()) for word in self._command]
            try:
                process = self._process = await asyncio.create_subprocess_exec(
                    *words, stdin=PIPE, stderr=PIPE, pass_fds=[theirs.fileno()]
                )
            except OSError:
                ours.close()
                raise
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, process.pid, NICENESS)
        _, self._link = await loop.create_unix_connection(lambda: _Link(self._heard), sock=ours)
        relay = self._keep(self._relay_lines(process))
        await _feed(process, self._initial(self.run))
        ended = asyncio.ensure_future(process.wait())
        await asyncio.wait((ready, ended), timeout=_READY, return_when=asyncio.FIRST_COMPLETED)
        if ready.done():
            if not self._mirroring:
                self._force(Control(mirroring=False))
            return ready.result()
        if process.returncode is None:
            process.send_signal(signal.SIGKILL)
        await ended
        await relay
        self._drop_link()
        line = self._last_line.removeprefix("migrate: ") or "the mirror process did not start"
        raise MirrorFailed(line, process.returncode if process.returncode and process.returncode > 0 else 1)

    def _heard(self, message: MirrorStatus) -> None:
        self.status = message.values
        self.heard_at = time.monotonic()
        if message.values.get("ready") and self._ready is not None and not self._ready.done():
            self._ready.set_result(str(message.values.get("run", "")))

    def _drop_link(self) -> None:
        if self._link is not None and self._link.transport is not None:
            self._link.transport.close()
        self._link = None

    async def _relay_lines(self, process: Process) -> None:
        """What the mirror says on standard error: kept until it is ready, passed on afterwards."""
        if process.stderr is None:
            return
        while True:
            try:
                line = await process.stderr.readline()
            except ValueError:  # a line beyond the reader's limit
                continue
            if not line:
                return
            text = line.decode(errors="replace").rstrip()
            if text:
                self._last_line = text
            if text and self._ready is not None and self._ready.done():
                self._say(text)

    async def _supervise(self) -> None:
        """Brings the process back whenever it ends, with growing pauses; production goes on meanwhile."""
        pause, longest = _BACKOFF
        while self._process is not None:
            since = time.monotonic()
            code = await self._process.wait()
            self._drop_link()
            if self._stopping:
                return
            pause = _BACKOFF[0] if time.monotonic() - since > _STEADY else pause
            self.problem = f"it ended ({_how(code)})"
            await asyncio.sleep(pause)
            pause = min(pause * 2, longest)
            self.restarts += 1
            try:
                await self._spawn()
                self.problem = None
            except (MirrorFailed, OSError) as failed:
                self.problem = f"it did not come up ({failed})"


async def _feed(process: Process, data: bytes) -> None:
    """Writes standard input and closes it. A process that ended already is noticed elsewhere."""
    if process.stdin is None:
        return
    with contextlib.suppress(ConnectionError):
        process.stdin.write(data)
        await process.stdin.drain()
    process.stdin.close()


def _how(code: int) -> str:
    return f"exit code {code}" if code >= 0 else f"signal {-code}"
