"""One replay of a run at a time on this machine, its keeper included: two would send everything twice."""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from migrate.errors import MigrateError

_WITHIN_S = 10.0
"""The keeper of a replay that was killed writes what had come, which takes a moment."""


@contextlib.contextmanager
def alone(run: str, *, within: float = _WITHIN_S) -> Iterator[int]:
    """Yields an open file; as long as a process has it open, the run is taken. Raises MigrateError when it is already."""
    path = Path(tempfile.gettempdir()) / f"llm-migrate-{run}.lock"
    file = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        _take(file, run, time.monotonic() + within)
        yield file
        path.unlink(missing_ok=True)
    finally:
        os.close(file)


def _take(file: int, run: str, end: float) -> None:
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > end:
                raise MigrateError(
                    f"run {run} is being replayed or written by another process; wait for it, or stop it first"
                ) from None
            time.sleep(0.05)
        else:
            return
