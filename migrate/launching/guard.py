"""Stands between ``migrate launch`` and a server, so that no process is left whatever happens to either.

It runs the server in a process group of its own, and ends it when standard input ends, which it does when ``migrate launch``
says so, and also when that is killed. A byte there says that the server is ready: from then on it has requests to finish. What
the server's processes leave behind is adopted (Linux) and ended too. Run as a file, with nothing but the standard library:
``guard.py GRACE [REMOVE…] -- COMMAND…``. Its exit code is the server's.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_LOOK_S = 0.1
_STARTING_S = 3.0
"""A server that starts has nothing to finish, and vLLM forgets a SIGTERM that it gets then."""
_BY_ITSELF_S = 1.0
"""What outlives the server usually ends soon after it, and removes shared memory first."""
_TOLD_S = 2.0
_REMOVED_S = 20.0


def main(arguments: list[str]) -> int:
    """Runs the command until it ends or standard input does."""
    cut = arguments.index("--")
    remove, command = arguments[1:cut], arguments[cut + 1 :]
    grace = _STARTING_S
    stopped: list[int] = []
    for number in (
        signal.SIGINT,
        signal.SIGHUP,
        signal.SIGTERM,
    ):  # handlers, for what is ignored the server would inherit
        signal.signal(number, lambda told, _: stopped.append(told) if told == signal.SIGTERM else None)
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    try:
        server = subprocess.Popen(command, stdin=subprocess.DEVNULL, process_group=0, preexec_fn=_die_with_us)  # noqa: PLW1509 - there are no threads
    except OSError as error:
        sys.stderr.write(f"{command[0]}: cannot be started: {error.strerror}\n")
        return 127
    while server.poll() is None and not stopped and (heard := _heard()) != b"":
        grace = float(arguments[0]) if heard else grace
    _stop(server, grace)
    _sweep(server.pid)
    if remove:
        _remove(remove)
    return server.returncode if server.returncode >= 0 else 128 - server.returncode


def _heard() -> bytes | None:
    """What came on standard input within a moment: nothing (``None``), a byte, or its end (empty)."""
    ready, _, _ = select.select([0], [], [], _LOOK_S)
    return os.read(0, 512) if ready else None


def _stop(server: subprocess.Popen[bytes], grace: float) -> None:
    """The server alone is asked first: it knows in which order its own processes end."""
    if server.poll() is None:
        server.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            server.wait(grace)
    if server.poll() is None:
        server.kill()
        server.wait()


def _remove(command: list[str]) -> None:
    """What the server left outside of its processes, such as a container."""
    try:
        subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, timeout=_REMOVED_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        sys.stderr.write(f"it may still be there; remove it with: {shlex.join(command)}\n")


def _sweep(group: int) -> None:
    """Ends what is left of the server's group and of its descendants."""
    for number, within in ((0, _BY_ITSELF_S), (signal.SIGTERM, _TOLD_S), (signal.SIGKILL, _TOLD_S)):
        until = time.monotonic() + within
        told: set[int] = set()
        while (left := _descendants()) and time.monotonic() < until:
            for pid in set(left) - told:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)  # 0 does nothing
            told |= set(left)
            _reap()
            time.sleep(_LOOK_S / 5)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def _descendants() -> list[int]:
    """Processes below this one, by what /proc says; none where there is no /proc."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            fields = (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()
            parents[int(entry.name)] = int(fields[1])
    found = [os.getpid()]
    for pid in found:
        found += [child for child, parent in parents.items() if parent == pid]
    return found[1:]


def _reap() -> None:
    """Takes note of adopted processes that have ended."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _die_with_us() -> None:
    _prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def _prctl(option: int, value: int) -> None:
    """Linux only; elsewhere the process group has to do."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
