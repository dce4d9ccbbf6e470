"""A server as a child: started behind its guard, waited for, stopped. Nothing of it outlives us."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from threading import Event
from types import TracebackType
from typing import IO, Self

import httpx

from migrate.errors import ConfigError, MigrateError
from migrate.launching import guard
from migrate.launching.causes import explained, last_words
from migrate.launching.command import Command, directory

GRACE_S = 30.0
"""What the server gets to end by itself, before it is killed."""
_ALL_OF_IT_S = GRACE_S + 30.0
_LOOK_S = 0.5
_SAY_EVERY_S = 3.0
_TAIL = 2**16

Say = Callable[[str], None]


class ServerDied(MigrateError):
    """The server ended by itself; the message says why, as far as its log tells."""


class Server:
    """One server, from entering to leaving. ``log`` is written anew, and only its owner may read it."""

    def __init__(self, command: Command, environment: Mapping[str, str], log: Path) -> None:
        self._command, self._environment, self.log = command, environment, log
        self._guard: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        with _written(self.log) as out:
            words = (sys.executable, "-I", guard.__file__, str(GRACE_S), *self._command.remove, "--")
            self._guard = subprocess.Popen(
                (*words, *self._command.words),
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=out,
                env=self._environment,
                start_new_session=True,
            )
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        """Stops it: the guard goes by the end of its input, and ends when nothing is left."""
        if self._guard is None or self._guard.stdin is None:
            return
        with contextlib.suppress(BrokenPipeError):
            self._guard.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._guard.wait(_ALL_OF_IT_S)

    @property
    def code(self) -> int | None:
        """Its exit code; ``None``: it lives."""
        return None if self._guard is None else self._guard.poll()

    def tail(self) -> str:
        """The end of its log."""
        with contextlib.suppress(OSError), self.log.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL))
            return file.read(_TAIL).decode(errors="replace")
        return ""

    def wait_ready(self, url: str, path: str, *, within: float, stop: Event, say: Say) -> bool:
        """Waits until ``path`` answers 200, saying how far the log is. False: ``stop`` came first.

        Raises ServerDied when it ends, and MigrateError when it takes longer than ``within`` seconds.
        """
        start = said_at = time.monotonic()
        said = ""
        while not stop.is_set():
            self.look()
            if _answers(url + path):
                self._is_ready()
                return True
            now = time.monotonic()
            if now - start > within:
                raise MigrateError(
                    f"it did not answer {path} within {within:g} s; launch.ready_within: allows more (log: {self.log})"
                )
            if now - said_at >= _SAY_EVERY_S and (line := last_words(self.tail())) != said:
                say(f"{now - start:4.0f} s  {line}")
                said, said_at = line, now
            stop.wait(_LOOK_S)
        return False

    def _is_ready(self) -> None:
        if self._guard is not None and self._guard.stdin is not None:
            with contextlib.suppress(BrokenPipeError):  # the next look says why
                self._guard.stdin.write(b"r")
                self._guard.stdin.flush()

    def serve(self, stop: Event) -> None:
        """Waits for ``stop``. Raises ServerDied when it ends before."""
        while not stop.wait(_LOOK_S):
            self.look()

    def look(self) -> None:
        """Raises ServerDied when it has ended."""
        if self.code is not None:
            raise ServerDied(
                f"the server ended with code {self.code}: {explained(self.tail(), self.code)} (log: {self.log})"
            )


def checkpoint(model: str) -> None:
    """Raises ConfigError where a model that is a directory cannot be served from it."""
    where = directory(model)
    if where is None:
        return
    if any(where.glob("*.engine")):
        raise ConfigError(
            f"launch.model: {where} holds a TensorRT engine, which is not served any more; name the Hugging Face checkpoint"
        )
    if not any((where / name).is_file() for name in ("config.json", "params.json")):
        raise ConfigError(
            f"launch.model: {where} is not the directory of a checkpoint: it has no config.json"
        )


def free(host: str, port: int) -> None:
    """Raises ConfigError unless a server can listen there."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except OSError as error:
        raise ConfigError(f"url: {host} is not known here ({error.strerror or error})") from None
    with socket.socket(found[0], socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(found[4])
        except OSError as error:
            raise ConfigError(_refused(error, host, port)) from None


def _refused(error: OSError, host: str, port: int) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"{host}:{port} is in use; stop what listens there, or change the port in url:"
    if error.errno == errno.EADDRNOTAVAIL:
        return f"{host} is not an address of this machine; run migrate launch there, or change url:"
    return f"nothing can listen on {host}:{port}: {error.strerror}"


def _answers(url: str) -> bool:
    try:
        with httpx.stream("GET", url, timeout=5.0, trust_env=False) as answer:
            return answer.status_code == 200
    except httpx.HTTPError:
        return False


@contextlib.contextmanager
def _written(log: Path) -> Iterator[IO[bytes]]:
    try:
        descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    except OSError as error:
        raise ConfigError(f"--log {log}: cannot be written: {error.strerror}") from None
    with os.fdopen(descriptor, "wb") as out:
        os.fchmod(descriptor, 0o600)  # it may have been there, for all to read
        yield out
