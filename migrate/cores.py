"""How many cores this process may use: more threads than that wait for each other."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

_ROOT = Path("/")


def cores(root: Path = _ROOT) -> int:
    """Cores that affinity and the CPU limits of the control groups allow, at least 1; ``root`` holds ``proc`` and ``sys``.

    A limit of 2.5 cores is 2: the third thread would be stopped half of the time and the others would wait for it.
    """
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, int(min([usable, *_limits(root)])))


def _limits(root: Path) -> Iterator[float]:
    """The limits, in cores, of each control group that this process is in, its parents' too."""
    for controllers, group in _groups(root):
        base = root / "sys/fs/cgroup" / (controllers or ".")
        for folder in (base / group, *(base / parent for parent in Path(group).parents)):
            read = _period if controllers else _max
            with contextlib.suppress(OSError, ValueError, ZeroDivisionError):
                limit = read(folder)
                if limit > 0:
                    yield limit


def _groups(root: Path) -> Iterator[tuple[str, str]]:
    """(controllers, group) of version 1, and of version 2 without controllers."""
    with contextlib.suppress(OSError, ValueError):
        for line in (root / "proc/self/cgroup").read_text().splitlines():
            _, controllers, group = line.split(":", 2)
            if not controllers or "cpu" in controllers.split(","):
                yield controllers, group.lstrip("/") or "."


def _max(folder: Path) -> float:
    """Version 2: ``max 100000`` is no limit. Raises ValueError for it."""
    allowed, period = (folder / "cpu.max").read_text().split()
    return int(allowed) / int(period)


def _period(folder: Path) -> float:
    """Version 1: -1 is no limit."""
    allowed = (folder / "cpu.cfs_quota_us").read_text()
    return int(allowed) / int((folder / "cpu.cfs_period_us").read_text())
