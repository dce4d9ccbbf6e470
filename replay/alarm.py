"""Waking up when it is time, to some tens of microseconds.

Event loops keep timers in whole milliseconds. Linux has a clock that a loop can wait for like for a socket (``timerfd``); Python
offers it from 3.13 on, and the C library on every version before. Elsewhere the last millisecond is passed looking at the clock.

Being woken is not yet running: on a busy machine others finish their turn first.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import platform
import struct
import sys
import time
from types import TracebackType
from typing import Self

_GRAIN_S = 0.001
"""Of an event loop's own timers; one may be half of it early."""
_MONOTONIC, _ABSOLUTE = 1, 1
_FLAGS = os.O_NONBLOCK | getattr(os, "O_CLOEXEC", 0)


_SET_SCHEDULER = {"x86_64": 314, "aarch64": 274}
"""The system call that sets the length of a turn, which C libraries do not know yet."""
_TURN_NS = 100_000
_ATTRIBUTES = struct.Struct("=IIQiIQQQII")
"""``struct sched_attr``: size, policy (0: as everybody), flags, niceness, priority, turn in ns; then what others need."""


def take_short_turns() -> bool:
    """Asks the scheduler for turns of 0.1 ms for this thread, which are given sooner, at no one's expense; whether it agreed.

    Needs no privilege. Linux has it since 6.12 (EEVDF with slices of a thread's own, sched(7)); other systems know nothing of it.
    """
    call = _SET_SCHEDULER.get(platform.machine()) if sys.platform == "linux" else None
    if call is None:
        return False
    niceness = os.getpriority(os.PRIO_PROCESS, 0)
    asked = _ATTRIBUTES.pack(_ATTRIBUTES.size, 0, 0, niceness, 0, _TURN_NS, 0, 0, 0, 0)
    return bool(ctypes.CDLL(None).syscall(call, 0, asked, 0) == 0)


class _Spec(ctypes.Structure):
    """``struct itimerspec``: a period, not used, and a moment."""

    _fields_ = (
        ("period_s", ctypes.c_long),
        ("period_ns", ctypes.c_long),
        ("s", ctypes.c_long),
        ("ns", ctypes.c_long),
    )


class Alarm:
    """Waits for moments of ``time.monotonic``, one at a time, in the event loop in which it was entered."""

    def __init__(self) -> None:
        self._fd = -1
        self._rung: asyncio.Future[None] | None = None
        self._spec = _Spec()

    def __enter__(self) -> Self:
        if sys.platform == "linux":
            self._libc = ctypes.CDLL(None)
            self._fd = self._libc.timerfd_create(_MONOTONIC, _FLAGS)
        if self._fd >= 0:
            self._loop = asyncio.get_running_loop()
            self._loop.add_reader(self._fd, self._ring)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        if self._fd >= 0:
            self._loop.remove_reader(self._fd)
            os.close(self._fd)
            self._fd = -1

    async def until(self, moment: float) -> None:
        """Never returns before ``moment``; at once when it has passed."""
        while (left := moment - time.monotonic()) > 0:
            if self._fd < 0:
                await asyncio.sleep(left - _GRAIN_S if left > _GRAIN_S else 0)
                continue
            whole = int(moment)
            self._spec.s, self._spec.ns = whole, min(999_999_999, int((moment - whole) * 1e9) + 1)
            self._rung = self._loop.create_future()
            self._libc.timerfd_settime(self._fd, _ABSOLUTE, ctypes.byref(self._spec), None)
            try:
                await self._rung
            finally:
                self._rung = None

    def _ring(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(self._fd, 8)
            if self._rung is not None and not self._rung.done():
                self._rung.set_result(None)
