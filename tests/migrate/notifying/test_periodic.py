"""Judgements while a run goes on, by real processes: what the gateway makes of what they say, and of those that do not."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import Callable
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
    judging, lines = periodic(
        saying({"verdict": GO | {"code": str(os.getpid())}}, then="import time; time.sleep(60)")
    )
    before = time.monotonic()
    await judging.once(2.0)
    assert time.monotonic() - before < 10
    assert judging.status()["verdict"]["verdict"] == "GO"
    assert lines == ["not everybody could be told: it took longer than 2 s and was ended"]


async def test_one_that_comes_to_no_verdict_is_ended() -> None:
    judging, lines = periodic("import time; time.sleep(60)")
    await judging.once(0.5)
    assert judging.status()["verdict"]["problem"] == "it took longer than 0.5 s and was ended"
    assert lines == ["the run could not be judged: it took longer than 0.5 s and was ended"]


RECEIVER_AWAY = """
import json, os, sys, time
sys.stdin.read()
silent = "--silent" in sys.argv
with open({seen!r}, "a") as file:
    print("silent" if silent else "telling", file=file)
word = "ROLLBACK" if os.path.exists({turned!r}) else "HOLD"
print(json.dumps({{"verdict": {go!r} | {{"verdict": word, "code": word}}}}), flush=True)
while not silent and not os.path.exists({back!r}):
    time.sleep(0.05)
if not silent:
    print(json.dumps({{"told": {{"slack": None}}}}), flush=True)
"""


async def test_a_receiver_that_is_away_delays_no_judgement_and_hears_of_what_it_missed(
    tmp_path: Path,
) -> None:
    """One process tells at a time, however long it takes."""
    seen, turned, back = (tmp_path / name for name in ("seen", "turned", "back"))
    script = RECEIVER_AWAY.format(seen=str(seen), turned=str(turned), back=str(back), go=GO)
    judging, lines = periodic(script, every=1.0)
    running = asyncio.create_task(judging.run(lambda: False))

    async def until(condition: Callable[[], object]) -> None:
        async with asyncio.timeout(30):
            while not condition():
                await asyncio.sleep(0.05)

    await until(lambda: seen.exists() and len(seen.read_text().split()) >= 4)
    turned.touch()
    await until(lambda: judging.status()["verdict"]["verdict"] == "ROLLBACK")
    before = seen.read_text().split()
    assert before[0] == "telling" and set(before[1:]) == {"silent"}
    back.touch()
    await until(lambda: "telling" in seen.read_text().split()[1:])
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    await judging.once(30)
    assert judging.status()["receivers"]["slack"]["problem"] is None
    assert lines == []


async def test_what_was_judged_while_somebody_was_told_is_told_as_soon_as_that_ends(tmp_path: Path) -> None:
    seen, turned, back = (tmp_path / name for name in ("seen", "turned", "back"))
    script = RECEIVER_AWAY.format(seen=str(seen), turned=str(turned), back=str(back), go=GO)
    judging, _ = periodic(script, every=3_600.0)
    await judging._turn(30)
    turned.touch()
    await judging._turn(30)
    running = asyncio.create_task(judging.run(lambda: False))
    await asyncio.sleep(1)
    assert seen.read_text().split() == ["telling", "silent"]
    back.touch()
    async with asyncio.timeout(20):
        while len(seen.read_text().split()) < 3:
            await asyncio.sleep(0.05)
    assert seen.read_text().split()[-1] == "telling"
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    await judging.once(30)


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


async def test_a_judgement_that_does_not_come_is_a_problem_before_it_is_given_up() -> None:
    judging, _ = periodic(saying({"verdict": GO}, then="import time; time.sleep(60)"), every=0.1)
    assert judging.problem is None
    await asyncio.sleep(0.4)
    assert "the last judgement was" in str(judging.problem)
    quiet, _ = periodic(saying({"verdict": GO}), every=None)
    await asyncio.sleep(0.4)
    assert quiet.problem is None  # nobody waits for one
