"""The sender's end of what lies between it and the keeper, and what goes through."""

from __future__ import annotations

import asyncio
import pickle
import socket
import struct
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import orjson

from migrate.channel import Frames, MirrorStatus, status
from migrate.errors import MigrateError
from replay.exchange import Arm, Failure, Recording, Request

_LENGTH = struct.Struct("!I")
_ROOM = 256 * 2**20
"""Bytes that may wait for the keeper; beyond them sending waits, which counts as being late."""
_TOGETHER_S, _TOGETHER = 0.02, 2**18
"""Messages go out together, after so many seconds or bytes: to wake another process costs more than what it is told."""
_ATTEMPTS = 3
"""So often the store may refuse in a row before sending waits for it."""
_WORDS = 4096
"""Bytes of what the keeper complains of that are kept."""
_SILENCE_S = 90.0
"""A keeper that has said nothing for so long has hung."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request is about to leave."""

    request: Request


@dataclass(frozen=True, slots=True, kw_only=True)
class Came:
    """What came of a request on one arm."""

    request: str
    path: str
    arm: Arm
    at: float
    """Epoch seconds of the dispatch."""
    lag_s: float | None
    again_s: float
    """From when it first left to when it left for the last time; 0 unless it was sent again."""
    recording: Recording
    earlier: tuple[Failure, ...]
    asked: int
    """Bytes of the request's body."""
    reserved: tuple[int, int]
    """Tokens that were reserved for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """The sender's counters so far."""

    counters: dict[str, int]


@dataclass(frozen=True, slots=True)
class Done:
    """Nothing more will come."""


Message = Asked | Came | Counted | Done


def message(frame: memoryview) -> Message:
    """What the keeper reads."""
    found: Message = pickle.loads(frame)
    return found


class KeeperFailed(MigrateError):
    """The keeper ended before everything was kept: its own line and its own exit code."""

    def __init__(self, line: str, exit_code: int) -> None:
        super().__init__(line)
        self.exit_code = exit_code


class _Protocol(asyncio.Protocol):
    def __init__(self, heard: Callable[[MirrorStatus], None], lost: Callable[[], None]) -> None:
        self._frames = Frames(status)
        self._heard, self._gone = heard, lost
        self.lost = False
        self.full = self.stuck = False
        self.room = asyncio.Event()
        self.look()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        cast("asyncio.Transport", transport).set_write_buffer_limits(high=_ROOM)

    def data_received(self, data: bytes) -> None:
        for one in self._frames.feed(data):
            self._heard(one)

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost = True
        self.look()
        self._gone()

    def pause_writing(self) -> None:
        self.full = True
        self.look()

    def resume_writing(self) -> None:
        self.full = False
        self.look()

    def look(self) -> None:
        (self.room.clear if (self.full or self.stuck) and not self.lost else self.room.set)()


class Link:
    """Starts a keeper and hands messages to it.

    ``initial``: what it reads first. ``heard`` takes what it says of what it has seen; ``lost`` is called when it is gone.
    ``held``: a file that it keeps open.
    """

    def __init__(
        self,
        initial: dict[str, Any],
        heard: Callable[[dict[str, Any]], None],
        lost: Callable[[], None],
        *,
        held: int | None = None,
    ) -> None:
        self._initial, self._heard, self._gone, self._held = initial, heard, lost, held
        self.trouble = ""
        """Why the store takes nothing at the moment; empty when it does."""
        self._first = asyncio.Event()
        self._heard_at = 0.0
        self._process: Process | None = None
        self._transport: asyncio.Transport | None = None
        self._protocol: _Protocol | None = None
        self._waiting = bytearray()
        self._flushing: asyncio.TimerHandle | None = None

    @property
    def lost(self) -> bool:
        """Whether the keeper is gone."""
        return self._protocol is None or self._protocol.lost

    async def start(self) -> None:
        """Starts the process and waits until it has opened the store: what begins meanwhile would begin late."""
        ours, theirs = socket.socketpair()
        with theirs:
            command = (sys.executable, "-m", "migrate.replaying.keeper", "--fd", str(theirs.fileno()))
            files = (theirs.fileno(),) if self._held is None else (theirs.fileno(), self._held)
            self._process = await asyncio.create_subprocess_exec(
                *command, stdin=PIPE, stderr=PIPE, pass_fds=files
            )
        assert self._process.stdin is not None and self._process.stderr is not None  # noqa: S101 - they were asked for
        self._said = asyncio.ensure_future(_last_words(self._process.stderr))
        self._process.stdin.write(orjson.dumps(self._initial))
        self._process.stdin.close()
        loop = asyncio.get_running_loop()
        transport, self._protocol = await loop.create_unix_connection(
            lambda: _Protocol(self._told, self._lost), sock=ours
        )
        self._transport = transport
        await self._first.wait()

    def _told(self, told: MirrorStatus) -> None:
        self._heard_at = time.monotonic()
        self._first.set()
        store = told.values.get("store") or {}
        self.trouble = f"the store takes nothing: {store['error']}" if store.get("error") else ""
        if self._protocol is not None:
            self._protocol.stuck = store.get("failed_attempts", 0) >= _ATTEMPTS
            self._protocol.look()
        self._heard(told.values)

    def _lost(self) -> None:
        self._first.set()
        self._gone()

    def send(self, told: Message) -> None:
        """Hands a message over within a moment."""
        if self._transport is None or self.lost:
            return
        data = pickle.dumps(told, protocol=5)
        self._waiting += _LENGTH.pack(len(data))
        self._waiting += data
        if len(self._waiting) > _TOGETHER:
            self._flush()
        elif self._flushing is None:
            self._flushing = asyncio.get_running_loop().call_later(_TOGETHER_S, self._flush)

    def _flush(self) -> None:
        if self._flushing is not None:
            self._flushing.cancel()
            self._flushing = None
        if self._transport is not None and not self.lost:
            self._transport.write(bytes(self._waiting))
        self._waiting.clear()

    async def room(self, stop: asyncio.Event) -> None:
        """Waits while more waits for the keeper than may, or the store takes nothing; at most until ``stop``."""
        if self._protocol is not None and not self._protocol.room.is_set():
            waits = {asyncio.ensure_future(one.wait()) for one in (self._protocol.room, stop)}
            try:
                await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for one in waits:
                    one.cancel()

    def give_up(self) -> None:
        """Ends the keeper, whatever it has not written yet."""
        if self._process is not None and self._process.returncode is None:
            self._process.kill()

    async def finish(self) -> None:
        """Lets the keeper write what it has. Raises KeeperFailed when it did not."""
        if self._process is None:
            return
        self.send(Done())
        self._flush()
        ended = asyncio.ensure_future(self._process.wait())
        try:
            while not ended.done():
                heard = self._heard_at
                await asyncio.wait({ended}, timeout=_SILENCE_S)
                if not ended.done() and self._heard_at == heard:
                    self._process.kill()
                    raise KeeperFailed("the keeper hung; what it wrote is kept", 1)
        finally:
            ended.cancel()
            if self._transport is not None:
                self._transport.close()
        code, said = ended.result(), await self._said
        if code:
            line = said or f"the process that writes ended with exit code {code}"
            began = self._heard_at > 0
            raise KeeperFailed(
                f"{line}; what it wrote is kept" if began else line, 1 if began else max(1, code)
            )


async def _last_words(stream: asyncio.StreamReader) -> str:
    """The last line; all of it is read, so that who writes never has to wait."""
    kept = b""
    while data := await stream.read(2**16):
        kept = (kept + data)[-_WORDS:]
    lines = kept.decode("utf-8", "replace").strip().splitlines()
    return lines[-1].removeprefix("migrate: ") if lines else ""
