"""A share, into the file that a proxy reads: whole or not at all."""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from migrate.errors import MigrateError
from migrate.weights.target import Target

_PATIENCE_S = 30.0
_READABLE = 0o644


def content(target: Target, share: float, path: Path) -> str:
    """What ``path`` has to hold. Raises OSError, and ConfigError where that cannot be made of what it holds."""
    before = ""
    with contextlib.suppress(FileNotFoundError):
        before = path.read_text(encoding="utf-8", errors="replace")
    return target.text(share, before)


def put(path: Path, text: str) -> None:
    """Replaces the file: who reads it, and who starts after a crash, finds the one before or the one after. Keeps its mode.

    Raises OSError.
    """
    path = path.resolve()
    mode = path.stat().st_mode & 0o777 if path.exists() else _READABLE
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            os.fchmod(file.fileno(), mode)
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def run(command: Sequence[str]) -> None:
    """Runs what makes the proxy read its file. Raises MigrateError where it fails or does not end in half a minute."""
    if not command:
        return
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_PATIENCE_S, check=False, errors="replace"
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise MigrateError(f"the file is written, but --then {command[0]} did not run: {error}") from None
    if done.returncode:
        last = (done.stderr.strip() or done.stdout.strip() or "it said nothing").splitlines()[-1]
        raise MigrateError(
            f"the file is written, but --then {command[0]} ended with {done.returncode}: {last}"
        )
