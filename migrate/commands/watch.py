"""``migrate report --watch``: a run judged again and again while it goes on."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from migrate.commands.output import height, line, printed, screen
from migrate.commands.recorded import Recorded, recorded
from migrate.report import report
from reports.document import Document
from reports.render.screen import render_screen
from reports.render.text import plain

_PAUSE_S = 5.0
_SHARE = 3
"""The pause is so many times as long as judging took: watching costs at most a quarter of a core."""
_ENTER, _LEAVE = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"
"""The terminal's second screen, without a cursor, and back."""


def watch(path: Path | None, url: str | None, run_id: str | None, encoding: str) -> Document:
    """Shows the run until it has ended. Returns the last document. KeyboardInterrupt ends it sooner."""
    with recorded(path, url, run_id, quiet=True) as found, _second_screen(encoding) as show:
        while True:
            began = time.monotonic()
            document = _judged(found)
            pause = max(_PAUSE_S, _SHARE * (time.monotonic() - began))
            if document.run["ended_at"] is not None:
                show(document, "")
                return document
            show(document, f"  run {found.run.id}, judged every {pause:.0f} s; Ctrl-C ends")
            time.sleep(pause)


def _judged(found: Recorded) -> Document:
    """The run as it is now."""
    now = replace(found, run=found.store.run(found.run.id), now=time.time())
    return report(now.store, now.run, notes=now.notes, **now.asked())


class _Show:
    """The latest document, drawn over the one before, or as a line."""

    def __init__(self, encoding: str) -> None:
        self.last: Document | None = None
        self._encoding = encoding

    def __call__(self, document: Document, foot: str) -> None:
        self.last = document
        if sys.stdout.isatty():
            width, colour = screen()
            text = render_screen(document, width=width, height=height(), colour=colour, foot=foot)
            printed("\x1b[H" + text.replace("\n", "\x1b[K\n") + "\x1b[J", self._encoding)
        else:
            line(f"{document.judged_at} {document.verdict} {document.code}: {plain(document.reason)}")


@contextlib.contextmanager
def _second_screen(encoding: str) -> Iterator[_Show]:
    """At a terminal, a screen of its own; what it showed last stays when it is left."""
    show = _Show(encoding)
    if not sys.stdout.isatty():
        yield show
        return
    printed(_ENTER, encoding)
    try:
        yield show
    finally:
        printed(_LEAVE, encoding)
        if show.last is not None:
            width, colour = screen()
            printed(render_screen(show.last, width=width, height=height(), colour=colour), encoding)
