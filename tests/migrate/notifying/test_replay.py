"""``migrate replay`` with receivers in its configuration: its end is told, and telling that fails changes nothing of it."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import pytest

from tests.migrate.notifying.listening import Hook, hook
from tests.migrate.test_replay import POLICY, Server, captured, migrate, question, started, status, two

NOTIFY = POLICY + "notify: {slack_env: SLACK_WEBHOOK}\n"


def titles(receiver: Hook) -> list[str]:
    return [one["text"].split(":")[0] for one in receiver.bodies]


@pytest.mark.parametrize("quiet", [(), ("--quiet",)])
async def test_the_end_is_told_once(
    quiet: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLACK_WEBHOOK", "http://127.0.0.1:9")
    one = Server()
    async with two(one.act, one.act, tmp_path, NOTIFY), hook() as receiver:
        await captured(tmp_path, (question(f"q{n}") for n in range(6)))
        monkeypatch.setenv("SLACK_WEBHOOK", receiver.url)
        code, err = await migrate(tmp_path, "replay", "--rate", 100, *quiet)
        again, _ = await migrate(tmp_path, "report", "--notify", "--quiet")
    assert (code, again) == (0, 4), err
    assert titles(receiver) == ["Run ended with HOLD"]
    assert ("the run is judged, for those whom notify: names" in err) is (not quiet)


async def test_a_receiver_that_refuses_is_named_and_the_replay_has_succeeded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = Server()
    async with two(one.act, one.act, tmp_path, NOTIFY), hook(403) as receiver:
        monkeypatch.setenv("SLACK_WEBHOOK", f"{receiver.url}/hidden")
        await captured(tmp_path, (question(f"q{n}") for n in range(6)))
        code, err = await migrate(tmp_path, "replay", "--rate", 100, "--quiet")
    assert code == 0 and status(tmp_path) == "ended"
    assert "migrate: slack could not be told: answered 403" in err and "hidden" not in err


async def test_a_secret_that_is_not_set_is_said_before_anything_is_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SLACK_WEBHOOK", raising=False)
    one = Server()
    async with two(one.act, one.act, tmp_path, NOTIFY):
        await captured(tmp_path, [question("q")])
        code, err = await migrate(tmp_path, "replay", "--rate", 100)
    assert code == 2 and "environment variable SLACK_WEBHOOK is empty" in err
    assert not one.asked


async def test_one_that_is_interrupted_has_no_end_to_tell_yet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = Server()
    async with two(one.act, one.act, tmp_path, NOTIFY), hook() as receiver:
        monkeypatch.setenv("SLACK_WEBHOOK", receiver.url)
        await captured(tmp_path, (question(f"q{n}") for n in range(40)))
        process = await started(tmp_path, "replay", "--rate", 10)
        async with asyncio.timeout(20):
            while len(one.asked) < 4:
                await asyncio.sleep(0.02)
        process.send_signal(signal.SIGINT)
        await process.communicate()
        assert process.returncode == 130 and titles(receiver) == []
        code, err = await migrate(tmp_path, "replay", "--resume", "--quiet")
    assert code == 0, err
    assert titles(receiver) == ["Run ended with HOLD"]
