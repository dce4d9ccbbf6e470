"""The mirror process seen from a thread of an application, which may wait for it; the application never does.

It is the gateway's mirror process, without a candidate: it decodes, redacts and stores with an interpreter of its own, so that
none of that holds up the application's. Nothing here installs a signal handler, needs an event loop or writes to the terminal.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import socket
import subprocess
import sys
from collections.abc import Callable
from multiprocessing import spawn
from typing import Any

import orjson

from migrate.channel import Control, Frames, Message, MirrorStatus, encode, status
from migrate.config import Config

_NICENESS = 19
"""What the application leaves of the processor. Niceness counts within a session only (Linux's autogroup), so the process stays
in ours; its own group keeps Ctrl-C from it."""
_BOOT = (
    "import json, sys; sys.path[:] = json.loads(sys.argv.pop(1)); "
    "from migrate.mirror.__main__ import main; sys.exit(main())"
)
"""The modules of the application, whatever it did to its path, and none from the folder it happens to stand in."""
_SILENT = getattr(socket, "MSG_NOSIGNAL", 0)
"""A process that is gone is an error here, also where the application lets SIGPIPE kill."""
_LOOK_S = 0.1
_ENDING_S = 10.0
"""How long a process may take to end that takes no more messages."""


class Companion:
    """One mirror process for one run of kind ``capture``. After it ended, ``start`` begins another one for the same run.

    ``salt``: the redaction's secret in hexadecimal. ``folder``: where a relative store stands; ``None`` is where the application
    stands.
    """

    def __init__(self, config: Config, *, salt: str, folder: str | None) -> None:
        self._config, self._salt, self._folder = config, salt, folder
        self._process: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None
        self._frames = Frames(status)
        self._said = b""
        self.run: str | None = None
        """The run's id; ``None`` until the store has been opened."""
        self.ready = False
        self.held = 0
        """Requests that the run held when the process began."""
        self.status: dict[str, Any] = {}

    @property
    def started(self) -> bool:
        """Whether there is a process, be it ready or not, or one that has ended and was not heard of yet."""
        return self._process is not None

    def start(self) -> None:
        """Starts the process; ``listen`` tells when it is ready. Raises OSError."""
        ours, theirs = socket.socketpair()
        inlet, outlet = socket.socketpair()
        python, path = (
            os.fsdecode(spawn.get_executable() or sys.executable),
            json.dumps([*map(str, sys.path)]),
        )
        with theirs, outlet, inlet:
            try:
                self._process = subprocess.Popen(
                    (python, "-P", "-c", _BOOT, path, "--fd", str(theirs.fileno())),
                    stdin=outlet.fileno(),
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.PIPE,
                    pass_fds=(theirs.fileno(),),
                    process_group=0,
                    cwd=self._folder,
                )
            except BaseException:
                ours.close()
                raise
            with contextlib.suppress(ConnectionError):  # it is gone already; listening says why
                inlet.sendall(self._initial(), _SILENT)
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, self._process.pid, _NICENESS)
        ours.setblocking(False)
        if self._process.stderr is not None:
            os.set_blocking(self._process.stderr.fileno(), False)
        self._socket, self._frames, self._said = ours, Frames(status), b""

    def _initial(self) -> bytes:
        config = self._config.model_dump(mode="json", by_alias=True)
        return orjson.dumps({"config": config, "kind": "capture", "run": self.run, "salt": self._salt})

    def listen(self) -> str | None:
        """Takes what the process has said since. Returns its last words when it is gone, else ``None``."""
        if self._process is None:
            return None
        if self._socket is None:  # a message did not arrive
            return self._gone(self._process)
        self._hear(self._process)
        try:
            while data := self._socket.recv(2**16):
                for told in self._frames.feed(data):
                    self._told(told)
        except (BlockingIOError, InterruptedError):
            if self._process.poll() is None:
                return None
        except (ConnectionError, ValueError):
            pass
        return self._gone(self._process)

    def _told(self, told: MirrorStatus) -> None:
        self.status = told.values
        if told.values.get("ready"):
            self.ready, self.run = True, str(told.values.get("run"))
            self.held = int(told.values.get("held") or 0)

    def _hear(self, process: subprocess.Popen[bytes]) -> None:
        with contextlib.suppress(BlockingIOError):
            while process.stderr is not None and (data := os.read(process.stderr.fileno(), 2**12)):
                self._said = (self._said + data)[-(2**12) :]

    def _gone(self, process: subprocess.Popen[bytes]) -> str:
        self._close()
        self._process = None
        try:
            process.wait(_ENDING_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        self._hear(process)
        if process.stderr is not None:
            process.stderr.close()
        lines = self._said.decode(errors="replace").strip().splitlines()
        return lines[-1].removeprefix("migrate: ") if lines else f"it ended with code {process.returncode}"

    def _close(self) -> None:
        self.ready = False
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def send(self, message: Message, *, patient: Callable[[], bool]) -> bool:
        """Hands a message over, waiting as long as ``patient`` says so. False when it did not arrive whole; no other will."""
        frame = memoryview(encode(message))
        while frame and self._socket is not None:
            try:
                frame = frame[self._socket.send(frame, _SILENT) :]
            except (BlockingIOError, InterruptedError):
                self._wait(self._socket)
                if not patient():
                    self._close()
            except OSError:
                self._close()
        return self._socket is not None

    def _wait(self, plug: socket.socket) -> None:
        """Until there may be room again. What the process says meanwhile is heard, or it would wait for us."""
        if self._process is not None:
            self._hear(self._process)
        ready = select.poll()  # select() knows no more than 1,024 files
        ready.register(plug, select.POLLOUT)
        ready.poll(_LOOK_S * 1e3)

    def finish(self, *, patient: Callable[[], bool]) -> str | None:
        """Lets the process write what it has, and waits for its end. Returns ``None`` when all is in the store, else why not.

        It takes as long as it takes: when the application ends before, the process goes on.
        """
        process = self._process
        if process is None:
            return None
        self.send(Control(stop=True), patient=patient)
        while process.poll() is None:
            self._hear(process)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_LOOK_S)
        words = self._gone(process)
        return words if process.returncode else None
