"""Judgements while a run goes on, by real processes: what the gateway makes of what they say, and of those that do not."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from pathlib import Path

from migrate.notifying.periodic import Periodic

GO = {
    "verdict": "GO",
    "code": "go",
    "reason": "r",
    "judged_at": "2026-12-02T09:00:00Z",
    "valid_until": "9999-12-02T09:00:00Z",
}


def periodic(script: str, *, every: float | None = 300.0) -> tuple[Periodic, list[str]]:
    lines: list[str] = []
    command = (sys.executable, "-c", script)
    made = Periodic(
        initial=lambda: b'{"run": "r1"}',
        every=every,
        page=Path("/nowhere/report.html"),
        say=lines.append,
        command=command,
    )
    return made, lines


def saying(*lines: object, then: str = "") -> str:
    return (
        f"import sys; sys.stdin.read(); print({chr(10).join(map(json.dumps, lines))!r}, flush=True); {then}"
    )


async def test_what_it_says_is_the_status() -> None:
    judging, lines = periodic(saying({"verdict": GO}, {"told": {"slack": None, "webhook": "answered 500"}}))
    await judging.once(30)
    status = judging.status()
    assert (status["verdict"]["verdict"], status["verdict"]["problem"]) == ("GO", None)
    assert status["receivers"]["slack"]["problem"] is None
    assert status["receivers"]["webhook"]["problem"] == "answered 500"
    assert lines == ["webhook could not be told: answered 500; it is tried again at the next judgement"]
    await judging.once(30)
    assert len(lines) == 1, "the same is said once"


async def test_before_the_first_judgement_there_is_no_verdict() -> None:
    judging, _ = periodic("")
    assert judging.status()["verdict"]["code"] == "not_judged"


async def test_its_last_line_says_why_there_is_none() -> None:
    judging, lines = periodic(
        "import sys; print('x' * 10**6, file=sys.stderr); sys.exit('migrate: store m.db is locked')"
    )
    await judging.once(30)
    assert judging.status()["verdict"]["problem"] == "store m.db is locked"
    assert lines == ["the run could not be judged: store m.db is locked"]


async def test_one_that_hangs_is_ended_and_what_it_said_before_counts() -> None:
    judging, _ = periodic(
        saying({"verdict": GO | {"code": str(os.getpid())}}, then="import time; time.sleep(60)")
    )
    before = time.monotonic()
    await judging.once(2.0)
    assert time.monotonic() - before < 10
    status = judging.status()["verdict"]
    assert status["verdict"] == "GO" and "was ended" in status["problem"]


async def test_nonsense_is_no_verdict() -> None:
    judging, _ = periodic("print('Loading model…')")
    await judging.once(30)
    assert judging.status()["verdict"]["verdict"] == "HOLD"
    assert judging.status()["verdict"]["problem"] == "its process said what is no line of JSON"


async def test_it_has_the_processor_last_and_one_thread() -> None:
    script = (
        "import os, json, sys; sys.stdin.read(); "
        "print(json.dumps({'told': {str(os.getpriority(os.PRIO_PROCESS, 0)) + os.environ['OMP_NUM_THREADS']: None}}))"
    )
    judging, _ = periodic(script)
    await judging.once(30)
    assert list(judging.status()["receivers"]) == ["191"]


async def test_an_alarm_is_not_waited_for() -> None:
    judging, _ = periodic(saying({"verdict": GO}))
    alarms = iter([False, True])
    running = asyncio.create_task(judging.run(lambda: next(alarms, True)))
    async with asyncio.timeout(20):
        while judging.status()["verdict"]["verdict"] != "GO":
            await asyncio.sleep(0.1)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
