"""Lines for the person who watches, each with its time, written by a thread: a paused terminal, or a pipe that nobody reads,
stops nobody."""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable

from reports.times import iso

_WAITING = 1_000


class Speaker(logging.Handler):
    """Takes lines without ever waiting, log records among them; what does not fit is dropped and counted."""

    def __init__(self, write: Callable[[str], None]) -> None:
        super().__init__()
        self.dropped = 0
        self._write = write
        self._lines: queue.Queue[str | None] = queue.Queue(_WAITING)
        self._thread = threading.Thread(target=self._run, name="speaker", daemon=True)
        self._thread.start()

    def __call__(self, line: str) -> None:
        """Says a line soon. Its time is this one (ISO 8601 in UTC), however long a terminal takes."""
        try:
            self._lines.put_nowait(f"{iso(time.time())} {line}")
        except queue.Full:
            self.dropped += 1

    def emit(self, record: logging.LogRecord) -> None:
        self(self.format(record))

    def finish(self, within: float) -> None:
        """Writes what waits, for at most ``within`` seconds."""
        try:
            self._lines.put(None, timeout=within)
        except queue.Full:
            return
        self._thread.join(within)

    def _run(self) -> None:
        while (line := self._lines.get()) is not None:
            try:
                self._write(line)
            except (OSError, ValueError):
                return  # nobody is there to read
