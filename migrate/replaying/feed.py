"""What is due next, read and made ready by a process of its own.

In a thread it would hold the interpreter at the moment at which a request is due, and the event loop would have to ask for it
back thousands of times a second.
"""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import os
import pickle
import signal
import socket
import struct
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from types import TracebackType
from typing import Self

from migrate.config import Config
from migrate.crew import uninterrupted
from migrate.errors import MigrateError
from migrate.redact import Redactor
from migrate.replaying.plan import Plan
from migrate.replaying.prepare import Prepare, Ready
from migrate.store import Store
from replay.exchange import Request

Captured = Callable[[Store], Iterable[tuple[Request, float | None]]]
"""Requests by time of admission, each with how long its recorded answer took (seconds), where that is known. Can be pickled."""

_LENGTH = struct.Struct("!i")  # as multiprocessing frames what it sends
_AHEAD = 2**20
"""Bytes that are read before they are needed."""
_NICENESS = 5
"""It is ahead; sending comes first."""
_OFTEN = 64
"""Requests between two words about how far the reading is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Feeding:
    """What is read, for whom."""

    store: str
    run: str
    """Whose answers are known already."""
    captured: Captured
    config: Config
    plan: Plan
    salt: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """What was found so far. ``first`` and ``last`` are the moments of admission, epoch seconds; ``None`` before the first."""

    unusable: dict[str, int]
    first: float | None = None
    last: float | None = None
    ended: bool = False
    broken: str = ""
    """Why reading ended before its time."""


class Feed:
    """Yields (seconds from the start, what is to leave then), and knows what was found. One iteration, in one event loop."""

    def __init__(self, feeding: Feeding) -> None:
        self.read = Read(unusable={})
        context = multiprocessing.get_context("spawn")  # safe whatever threads run here
        ours, theirs = context.Pipe()
        self._process: BaseProcess = context.Process(target=_serve, args=(theirs, feeding), daemon=True)
        with uninterrupted():
            self._process.start()
        theirs.close()
        self._socket = socket.socket(fileno=os.dup(ours.fileno()))
        ours.close()

    @property
    def process(self) -> int:
        """Its number."""
        return self._process.pid or 0

    async def __aiter__(self) -> AsyncGenerator[tuple[float, Ready], None]:
        """Raises MigrateError when the captures cannot be read to their end."""
        reader, writer = await asyncio.open_unix_connection(sock=self._socket, limit=_AHEAD)
        try:
            while not self.read.ended:
                (size,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
                found = pickle.loads(await reader.readexactly(size))  # noqa: S301 - from a process of ours
                if isinstance(found, Read):
                    self.read = found
                else:
                    yield found
        except (asyncio.IncompleteReadError, ConnectionError):
            self._process.join(1.0)
            raise MigrateError(
                f"the process that reads what was captured ended with exit code {self._process.exitcode}; "
                "migrate replay --resume goes on"
            ) from None
        finally:
            writer.close()
        if self.read.broken:
            raise MigrateError(self.read.broken)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        self._process.kill()  # it only reads
        self._process.join()
        self._socket.close()


def _serve(pipe: Connection, feeding: Feeding) -> None:
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(
            number, signal.SIG_IGN
        )  # who stops a service tells all of its processes; the sender says when
    with contextlib.suppress(OSError):
        os.nice(_NICENESS)
    with contextlib.suppress(BrokenPipeError, ConnectionError):  # nobody is there any more
        read = Read(unusable={})
        try:
            with Store.open(feeding.store) as store:
                for found in _found(feeding, store):
                    read = found if isinstance(found, Read) else read
                    pipe.send(found)
        except MigrateError as error:
            pipe.send(Read(unusable=read.unusable, ended=True, broken=str(error)))


def _found(feeding: Feeding, store: Store) -> Iterator[tuple[float, Ready] | Read]:
    prepare = Prepare(
        feeding.config,
        feeding.plan,
        Redactor(feeding.config.redact, feeding.salt),
        known=store.answered(feeding.run),
    )
    first = last = None

    def seen() -> Iterator[tuple[Request, float | None]]:
        nonlocal first, last
        for request, took in feeding.captured(store):
            first, last = request.at if first is None else first, request.at
            yield request, took

    def read(*, ended: bool = False) -> Read:
        return Read(unusable=dict(prepare.unusable), first=first, last=last, ended=ended)

    for number, ready in enumerate(prepare.scheduled(seen())):
        if number % _OFTEN == 0:
            yield read()
        yield ready
    yield read(ended=True)
