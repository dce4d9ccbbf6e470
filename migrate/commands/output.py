"""Where a command's data goes: a file, or standard output whose reader may stop early."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import click

from migrate.errors import ConfigError

_COMMAND = re.compile(r"^\s*:(?=:)|##(?=\[)", re.MULTILINE)
"""What begins a command of a runner's: ``::error::`` first in a line, ``##[error]`` anywhere."""


@contextlib.contextmanager
def opened(output: Path | None) -> Iterator[IO[bytes]]:
    """A file, or standard output. When its reader goes (``head``) the block ends, and what comes after it goes on."""
    if output is None:
        try:
            yield sys.stdout.buffer
            sys.stdout.buffer.flush()
        except BrokenPipeError:
            _nobody_reads()
        return
    try:
        file = output.open("wb")
    except OSError as error:
        raise ConfigError(f"--output {output}: cannot be written: {error.strerror}") from None
    with file:
        yield file


def github() -> bool:
    """Whether this is a step of GitHub Actions."""
    return os.environ.get("GITHUB_ACTIONS") == "true"


def for_a_log(text: str) -> str:
    """A text for people; where a runner reads it, too, no part of it is a command: it quotes what models said."""
    return _COMMAND.sub(lambda found: f"{found[0]} ", text) if github() else text


def line(text: str) -> None:
    """A line on standard output at once. Raises KeyboardInterrupt when nobody reads it any more."""
    try:
        click.echo(for_a_log(text))
    except BrokenPipeError:
        _nobody_reads()
        raise KeyboardInterrupt from None


def _nobody_reads() -> None:
    """What is still written goes nowhere, also at the end of the process."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def printed(text: str, encoding: str = "utf-8") -> None:
    """A text on standard output; what the encoding does not know becomes ``?``."""
    with opened(None) as out:
        out.write(text.encode(encoding, "replace"))


def screen() -> tuple[int, bool]:
    """Columns for a text on standard output (60 to 120), and whether it takes colours."""
    width = max(60, min(120, shutil.get_terminal_size((100, 24)).columns))
    return width, sys.stdout.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"


def height() -> int:
    """Lines of the screen, without the one that a prompt takes."""
    return max(10, shutil.get_terminal_size((100, 24)).lines - 1)
