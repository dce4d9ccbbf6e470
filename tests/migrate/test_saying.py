"""Lines of a run on a terminal."""

from __future__ import annotations

import logging
import re
import time

from migrate.saying import Speaker


def test_each_line_has_the_time_at_which_it_was_said_and_is_whole() -> None:
    written: list[str] = []

    def slow(line: str) -> None:
        time.sleep(1.1)
        written.append(line)

    speaker = Speaker(slow)
    command = f"stop mirroring at once: curl -X POST http://127.0.0.1:8081/{'x' * 300}"
    speaker(command)
    speaker.emit(logging.LogRecord("migrate", logging.WARNING, "", 1, "odd", None, None))
    speaker.finish(10.0)
    first, second = written
    stamp = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ "
    assert re.fullmatch(stamp + re.escape(command), first)
    assert re.fullmatch(stamp + "odd", second)
    assert (_time(second) - _time(first)) <= 1, "the time of saying, not of writing"


def _time(line: str) -> float:
    return time.mktime(time.strptime(line.partition(" ")[0], "%Y-%m-%dT%H:%M:%SZ"))
