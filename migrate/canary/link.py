"""The gateway's end of its keeper: what the store says of the share, and what the gateway itself has to say to the store.

The share comes from the store, as long as there is one: a gateway that has not heard of it for ``canary.lost_store`` sends
everybody to the baseline until it hears again. A safety stop holds here at once, and until the store has it nothing else counts.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Sequence
from typing import Any

import orjson

from migrate.canary.gateway import Shifting
from replay.exchange import JSON

COMMAND = (sys.executable, "-m", "migrate.canary")
_AGAIN_S = 1.0
_LAST_S = 5.0


class Link:
    """One canary, seen from the gateway.

    ``start`` is the keeper's first line (see ``migrate.canary.__main__``), ``state`` the row that the store gave before
    anybody was let in. ``say`` takes lines for the person who watches.
    """

    def __init__(
        self,
        start: JSON,
        gateway: Shifting,
        *,
        state: JSON,
        say: Callable[[str], None],
        command: Sequence[str] = COMMAND,
    ) -> None:
        self._start, self._say, self._command = start, say, command
        self.gateway = gateway
        self.state: JSON = state
        """The last row that the store gave."""
        self.problem: str | None = None
        self._heard_at = time.monotonic()
        self._rollbacks = 0
        """Of the state when the safety stop came; of more, the store has one."""
        self._halt: JSON | None = None
        """A safety stop that the store does not have yet."""
        self._process: Process | None = None

    @property
    def age(self) -> float:
        """Seconds since the store was last read."""
        return time.monotonic() - self._heard_at

    def status(self) -> JSON:
        """For ``/status``."""
        return {
            **{name: self.state[name] for name in ("canary", "phase", "step", "why", "action", "who")},
            "share": self.gateway.share,
            "stored_share": self.state["share"],
            "store_age_s": round(self.age, 3),
            "problem": self.problem,
            "stopping": self._halt["halt"] if self._halt else None,
            "at_candidate": self.gateway.at_candidate,
        }

    def halted(self, why: str, *, run: str | None) -> None:
        """The gateway has stopped the candidate; the store, and with it every other gateway, has to know."""
        self._halt = {"halt": why, "at": time.time(), "run": run or ""}
        self._rollbacks = self.state["rollbacks"]
        self._say(f"rollback: {why}; the baseline answers everybody")
        self._tell()

    def apply(self) -> None:
        """The share that holds now."""
        if self._halt is not None:
            return
        lost = self.age > self._start["lost_store"]
        share = 0.0 if lost else float(self.state["share"])
        if share != self.gateway.share:
            why = "the store cannot be reached" if lost else self.state["why"]
            self._say(f"the candidate answers {share * 100:.4g} % of the conversations: {why}")
            self.gateway.move(share)

    async def run(self) -> None:
        """Keeps a keeper, and follows it, until it is cancelled."""
        try:
            while True:
                with contextlib.suppress(OSError, ValueError):
                    await self._follow()
                self.problem = "the keeper ended"
                await asyncio.sleep(_AGAIN_S)
        finally:
            await self._end()

    async def watch(self) -> None:
        """Once a second, also when nothing is heard."""
        while True:
            self.apply()
            await asyncio.sleep(_AGAIN_S)

    async def _follow(self) -> None:
        process = self._process = await asyncio.create_subprocess_exec(
            *self._command, stdin=PIPE, stdout=PIPE
        )
        self._write(self._start)
        if self._halt is not None:
            self._tell()
        while process.stdout is not None and (line := await process.stdout.readline()):
            self._heard(orjson.loads(line))
        await process.wait()

    def _heard(self, said: dict[str, Any]) -> None:
        problem = said.get("problem")
        if problem and problem != self.problem:
            self._say(f"canary: {problem}; the share is kept for {self._start['lost_store']:g} s")
        self.problem = problem
        if (state := said.get("shift")) is None:
            return
        self._heard_at = time.monotonic()
        if self._halt is not None and (
            state["phase"] == "rolled_back" or state["rollbacks"] > self._rollbacks
        ):
            self._halt = None
        self.state = state
        self.apply()

    def _tell(self) -> None:
        if self._halt is not None:
            self._write(self._halt)

    def _write(self, value: JSON) -> None:
        if self._process is not None and self._process.stdin is not None:
            with contextlib.suppress(ConnectionError, RuntimeError):
                self._process.stdin.write(orjson.dumps(value) + b"\n")

    async def _end(self) -> None:
        """The pipe is closed; the keeper writes what it owes by itself."""
        process = self._process
        if process is None or process.returncode is not None:
            return
        if process.stdin is not None:
            process.stdin.close()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), _LAST_S)
