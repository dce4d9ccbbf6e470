"""What the gateway makes of what its keeper says, and the keeper of what the store and the gateway say."""

from __future__ import annotations

import sys
from asyncio import create_subprocess_exec
from asyncio.subprocess import PIPE
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import orjson

from migrate.canary import shift
from migrate.canary.link import Link
from migrate.canary.section import CanarySection
from migrate.store import Store, shifts
from tests.migrate.canary.test_gateway import THEIRS, moving

STEPS = CanarySection().steps


def first(canary: str, at: float = 1_000.0) -> shift.Shift:
    return shift.started(canary, STEPS, at=at, who="one", why="a test", run="r")


def line(state: shift.Shift) -> dict[str, Any]:
    return {"shift": asdict(state)}


async def test_a_safety_stop_holds_until_the_store_has_it_whatever_another_clock_says() -> None:
    async with moving(THEIRS, share=0.0) as now:
        before = replace(first("a"), share=0.25)
        start = {"lost_store": 60.0}
        link = Link(start, now.gateway, state=asdict(before), say=lambda _: None)
        link.apply()
        assert now.gateway.share == 0.25
        now.gateway.halt("it fails")
        link.halted("it fails", run="r")
        ahead = shift.noted(before, "join", at=9e9, who="a clock that is ahead", why="joined")
        link._heard(line(ahead))
        assert now.gateway.share == 0 and link.status()["stopping"] == "it fails"
        back = shift.rolled_back(ahead, at=1_001.0, who="one", why="it fails", cool_down=60.0)
        assert back is not None
        link._heard(line(back))
        assert link.status()["stopping"] is None
        link._heard(line(shift.resumed(back, STEPS, at=2_000.0, who="somebody", why="mended")))
        assert now.gateway.share == STEPS[0].percent


async def test_without_a_store_the_share_stays_for_a_while_and_then_nobody_goes_to_the_candidate() -> None:
    async with moving(THEIRS, share=0.0) as now:
        said: list[str] = []
        state = replace(first("a"), share=0.5)
        link = Link({"lost_store": 60.0}, now.gateway, state=asdict(state), say=said.append)
        link._heard({"problem": "the store cannot be read"})
        link.apply()
        assert now.gateway.share == 0.5 and "kept for 60 s" in said[0]
        link._heard_at -= 61
        link.apply()
        assert now.gateway.share == 0
        link._heard(line(state))
        assert now.gateway.share == 0.5


async def test_of_two_canaries_that_began_at_once_a_keeper_follows_the_later_and_stops_it(
    tmp_path: Path,
) -> None:
    url = f"sqlite:///{tmp_path / 'store.db'}"
    with Store.open(url, create=True) as store:
        for name in ("20260101-000000-aaaa", "20260101-000000-bbbb"):
            shifts.begin(store, first(name))
    start = {"store": url, "who": "one", "lost_store": 60.0, "cool_down": 60.0}
    keeper = await create_subprocess_exec(sys.executable, "-m", "migrate.canary", stdin=PIPE, stdout=PIPE)
    assert keeper.stdin is not None and keeper.stdout is not None
    keeper.stdin.write(orjson.dumps(start) + b"\n")
    heard = orjson.loads(await keeper.stdout.readline())
    assert heard["shift"]["canary"].endswith("bbbb")
    keeper.stdin.write(orjson.dumps({"halt": "it fails", "at": 2_000.0, "run": "r"}) + b"\n")
    keeper.stdin.close()
    await keeper.stdout.read()
    assert await keeper.wait() == 0
    with Store.open(url) as store:
        now = shifts.latest(store)
    assert now is not None and (now.phase, now.share, now.why) == (shift.Phase.ROLLED_BACK, 0.0, "it fails")
