"""A run judged again and again while it goes on, by a process that has the processor last; the gateway only reads its lines.

No request waits for any of it: judging, telling people and their servers that hang all happen over there; and no judgement
waits for a receiver that is away. It is judged every so
often where a configuration says so (``notify:``), and soon and often while somebody looks at the live page.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import orjson

from migrate.notifying.standing import standing
from replay.exchange import JSON
from reports.times import iso

COMMAND = (sys.executable, "-m", "migrate.notifying")
_NICENESS = 19
_LONGEST_S = 1_800.0
_TELLING_S = 300.0
"""For all receivers together: each is given up after minutes."""
SILENT = "--silent"
"""Asks for a judgement of which nobody is told: an earlier one is still being told."""
_LOOK_S = 2.0
_OFTEN_S = 10.0
_OVERDUE = 3
"""Times the pace, after which a judgement that does not come is missing."""
_LOOKING_S = 30.0
"""After the page asked last, which it does every five seconds."""
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
"""A judgement has time; the other cores are production's."""


class Periodic:
    """The judgements of one run.

    ``initial`` makes what the process reads (see ``migrate.notifying.__main__``); ``every`` is in seconds, ``None``: only while
    somebody looks; ``page``: where the report is put; ``say`` takes lines for the person who watches.
    """

    def __init__(
        self,
        *,
        initial: Callable[[], bytes],
        every: float | None,
        page: Path,
        say: Callable[[str], None],
        command: Sequence[str] = COMMAND,
    ) -> None:
        self._initial, self._every, self._say, self._command = initial, every, say, command
        self.page = page
        self._looked_at = -math.inf
        self._took = 0.0
        self._began = time.monotonic()
        self._verdict: JSON | None = None
        self._at = 0.0
        self._problem: str | None = None
        self._receivers: dict[str, JSON] = {}
        self._telling: asyncio.Task[None] | None = None
        self._telling_of: tuple[str, str] | None = None
        self._untold: str | None = None

    @property
    def problem(self) -> str | None:
        """Why there is no verdict of late, if there is none."""
        if self._problem is not None or self._every is None:
            return self._problem
        silent = time.monotonic() - max(self._at, self._began)
        if silent > _OVERDUE * (self._every + self._took):
            return f"the last judgement was {silent:.0f} s ago"
        return None

    def looked(self) -> Path | None:
        """Somebody looks: the run is judged more often for a while. Returns the report; ``None`` before the first one."""
        self._looked_at = time.monotonic()
        return self.page if self.page.exists() else None

    def status(self) -> JSON:
        """For ``/status``: the verdict as it stands, and who could not be told. ``problem``: why the last try gave no verdict.

        No verdict (``None``) where nobody is told of any and nobody looked yet.
        """
        if self._every is None and self._verdict is None and self._problem is None:
            return {"verdict": None, "receivers": {}}
        now = time.time()
        age = None if self._verdict is None else time.monotonic() - self._at
        held = standing(self._verdict, age=age, every=self._every or _LOOKING_S, now=iso(now))
        return {"verdict": held | {"problem": self._problem}, "receivers": self._receivers}

    async def run(self, alarmed: Callable[[], bool]) -> None:
        """Judges every so often until it is cancelled, and at once when ``alarmed`` turns true."""
        while True:
            await self._pause(alarmed)
            await self._turn(_LONGEST_S)

    async def once(self, within: float) -> None:
        """One judgement, and everybody told of it. Never raises for what goes wrong; it is ended after ``within`` seconds."""
        start = time.monotonic()
        if self._telling is not None:
            await _ended(self._telling, 0.0)  # whom it has not told is told now
        await self._turn(within)
        telling = self._telling
        if telling is not None and not await _ended(telling, within - (time.monotonic() - start)):
            self._say(f"not everybody could be told: it took longer than {within:g} s and was ended")

    async def _turn(self, within: float) -> None:
        """One judgement. Telling goes on afterwards, for one judgement at a time; meanwhile the others are told to nobody."""
        start, silent = time.monotonic(), self._telling is not None
        judged = asyncio.Event()
        work = asyncio.create_task(self._process((SILENT,) if silent else (), judged))
        if not silent:
            self._telling_of = self._state()
        problem = await self._judged(work, judged, within)
        if problem is not None and problem != self._problem:
            self._say(f"the run could not be judged: {problem}")
        self._problem, self._took = problem, time.monotonic() - start
        if silent:
            await _ended(work, _LOOK_S)
        elif problem is None:
            self._telling_of = self._state()
            self._telling = asyncio.create_task(self._tell(work))

    async def _judged(
        self, work: asyncio.Task[str | None], judged: asyncio.Event, within: float
    ) -> str | None:
        """Waits for the verdict, not for what comes after it. Returns why there is none, or ``None``."""
        until = asyncio.create_task(judged.wait())
        try:
            await asyncio.wait({work, until}, timeout=within, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            await _ended(work, 0.0)
            raise
        finally:
            until.cancel()
        if judged.is_set():
            return None
        await _ended(work, 0.0)
        return _failure(work, within)

    async def _tell(self, work: asyncio.Task[str | None]) -> None:
        """Sees to it that telling ends."""
        try:
            await _ended(work, _TELLING_S)
        finally:
            self._telling = None
        problem = _failure(work, _TELLING_S)
        if problem is not None and problem != self._untold:
            self._say(f"not everybody could be told: {problem}")
        self._untold = problem

    def _state(self) -> tuple[str, str] | None:
        return None if self._verdict is None else (self._verdict["verdict"], self._verdict["code"])

    def _owed(self) -> bool:
        """Whether something was judged that nobody was told of, and may be told now."""
        return self._telling is None and self._telling_of not in (None, self._state())

    async def _pause(self, alarmed: Callable[[], bool]) -> None:
        start, before = time.monotonic(), alarmed()
        while (left := start + self._pace() - time.monotonic()) > 0:
            await asyncio.sleep(min(_LOOK_S, left))
            if self._every is not None and ((alarmed() and not before) or self._owed()):
                return
            before = alarmed()

    def _pace(self) -> float:
        """Seconds from the end of one judgement to the next. For who looks at most a quarter of the time is spent."""
        every = math.inf if self._every is None else self._every
        if time.monotonic() - self._looked_at > _LOOKING_S:
            return every
        return min(every, max(_OFTEN_S, 3 * self._took)) if self._took else 0.0

    async def _process(self, words: Sequence[str], judged: asyncio.Event) -> str | None:
        """One process from its start to its end. Returns why it failed, or ``None``."""
        process = await asyncio.create_subprocess_exec(
            *self._command, *words, stdin=PIPE, stdout=PIPE, stderr=PIPE, env=_ONE_THREAD | os.environ
        )
        try:
            with contextlib.suppress(OSError):
                os.setpriority(os.PRIO_PROCESS, process.pid, _NICENESS)
            _, _, last = await asyncio.gather(
                _feed(process, self._initial()), self._hear(process, judged), _words(process)
            )
            code = await process.wait()
            return None if code == 0 else last or f"its process ended with {code}"
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()

    async def _hear(self, process: Process, judged: asyncio.Event) -> None:
        while process.stdout is not None and (line := await process.stdout.readline()):
            said = orjson.loads(line)
            self._heard(said)
            if "verdict" in said:
                judged.set()

    def _heard(self, said: dict[str, Any]) -> None:
        if "verdict" in said:
            self._verdict, self._at = said["verdict"], time.monotonic()
        for name, problem in said.get("told", {}).items():
            before = self._receivers.get(name, {"problem": None})["problem"]
            self._receivers[name] = {"problem": problem, "at": iso(time.time())}
            if problem and problem != before:
                self._say(f"{name} could not be told: {problem}; it is tried again at the next judgement")


async def _ended(work: asyncio.Task[Any], within: float) -> bool:
    """Waits for a task at most so many seconds, and ends it. Returns whether it ended by itself. Never raises what it raised."""
    try:
        done, _ = await asyncio.wait({work}, timeout=max(0.0, within))
    finally:  # whoever waits may be ended too; the process is not left behind
        work.cancel()
        await asyncio.wait({work})
    return bool(done)


def _failure(work: asyncio.Task[str | None], within: float) -> str | None:
    """Why a process that is over came to nothing, or ``None``."""
    try:
        return work.result()
    except asyncio.CancelledError:
        return f"it took longer than {within:g} s and was ended"
    except OSError as error:
        return f"it could not be started: {error.strerror or error}"
    except ValueError:
        return "its process said what is no line of JSON"


async def _feed(process: Process, data: bytes) -> None:
    if process.stdin is None:
        return
    with contextlib.suppress(ConnectionError):
        process.stdin.write(data)
        await process.stdin.drain()
    process.stdin.close()


async def _words(process: Process) -> str:
    """The last line of standard error, which is read to its end without keeping it."""
    last = b""
    while process.stderr is not None and (data := await process.stderr.read(2**12)):
        last = (last + data)[-(2**12) :]
    lines = last.decode(errors="replace").strip().splitlines()
    return lines[-1].removeprefix("migrate: ") if lines else ""
