"""What replay and bench refuse before anything is sent, each in one line."""

from __future__ import annotations

import contextlib
import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from migrate.cli import cli
from migrate.errors import MigrateError
from migrate.replaying.alone import alone
from migrate.replaying.plan import Plan
from migrate.store import Store, Writer
from replay.exchange import Request

CONFIG = (
    "baseline: {kind: vllm, url: 'http://127.0.0.1:1'}\ncandidate: {kind: vllm, url: 'http://127.0.0.1:2'}\n"
)
SECRET = "sk-abcdefghijklmnopqrstuv123"


def run(folder: Path, *words: str) -> tuple[Result, str]:
    """In this process; what is said on standard error and by the exception."""
    (folder / "migrate.yaml").write_text(CONFIG)
    with Store.open(f"sqlite:///{folder}/migrate.db", create=True) as store:
        if not store.runs():
            writer = Writer(store, store.begin_run(kind="import", config={}, policy={}, seed=0, at=0.0))
            writer.put(
                Request(
                    id="a",
                    at=0.0,
                    method="POST",
                    path="/v1/chat/completions",
                    headers=(),
                    body=b"{}",
                    conversation="",
                )
            )
            assert writer.close(10)
    before = Path.cwd()
    os.chdir(folder)
    try:
        found = CliRunner().invoke(cli, words)
    finally:
        os.chdir(before)
    return found, f"{found.output}{found.exception}"


WRONG = {
    "steps of no time": (["replay", "--sweep", "5:0s"], "is not RATE,RATE"),
    "a ramp of no time": (["replay", "--ramp", "1:5:0s"], "is not FROM:TO:TIME"),
    "bursts beyond reason": (["replay", "--rate", "5", "--burstiness", "1e200"], "less than or equal to 100"),
    "a seed that no store holds": (["replay", "--seed", str(2**70)], "--seed"),
    "a field that is no text": (["replay", "--set", "x=\udcff"], "not UTF-8"),
    "a field without a floor": (["replay", "--set", "x=" + "[" * 300 + "]" * 300], "nested too deeply"),
    "a secret by its looks": (["replay", "--set", f"user={SECRET}"], "looks like a secret"),
    "a secret by its name": (["replay", "--set", "api_key=correct-horse"], "looks like a secret"),
    "a secret within": (["bench", "--set", 'x={"password": "correct-horse"}'], "looks like a secret"),
    "more connections than files": (["replay", "--concurrency", "900000"], "1,800,000 connections at once"),
    "a benchmark of an age": (
        ["bench", "--url", "http://127.0.0.1:1", "--rates", "1e9"],
        "more than 10,000,000",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_use_is_said_and_nothing_is_begun(name: str, tmp_path: Path) -> None:
    words, said = WRONG[name]
    found, text = run(tmp_path, *words)
    assert said in text, text
    assert found.exit_code == 2 or getattr(found.exception, "exit_code", None) == 2
    assert SECRET not in text and "correct-horse" not in text
    with Store.open(f"sqlite:///{tmp_path}/migrate.db") as store:
        assert [one.kind for one in store.runs()] == ["import"]


@pytest.mark.parametrize(
    ("candidate", "to", "refused"),
    [
        ({"kind": "vllm", "url": "http://127.0.0.1:3"}, "both", True),
        ({"kind": "vllm", "url": "http://127.0.0.1:2", "models": {"a": "b"}}, "both", True),
        ({"kind": "vllm", "url": "http://127.0.0.1:3"}, "baseline", False),
    ],
)
def test_a_replay_is_not_resumed_with_another_server(
    tmp_path: Path, candidate: dict[str, Any], to: str, refused: bool
) -> None:
    with Store.open(f"sqlite:///{tmp_path}/migrate.db", create=True) as store:
        baseline = {"kind": "vllm", "url": "http://127.0.0.1:1", "model": None, "models": {}}
        plan = Plan.model_validate({"source": "s", "to": to}).model_dump(mode="json")
        config = {
            "baseline": baseline,
            "candidate": {"model": None, "models": {}} | candidate,
            "replay": plan,
        }
        begun = store.begin_run(kind="replay", config=config, policy={}, seed=0, at=0.0)
    with alone(begun):  # stops at the latest here
        _, text = run(tmp_path, "replay", "--resume") if refused else (None, "")
    assert ("when the replay began" in text and "start another" in text) is refused, text


def test_a_replay_that_ends_while_a_resume_waits_for_it_is_not_begun_again(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/migrate.db"
    servers = {"baseline": {"kind": "vllm", "url": "http://127.0.0.1:1", "model": None, "models": {}}}
    plan = Plan.model_validate({"source": "s", "to": "baseline"}).model_dump(mode="json")
    with Store.open(url, create=True) as store:
        begun = store.begin_run(kind="replay", config=servers | {"replay": plan}, policy={}, seed=0, at=0.0)

    def ended() -> None:
        time.sleep(1.0)
        with Store.open(url) as store:
            store.end_run(begun, at=1.0)

    with contextlib.ExitStack() as held, ThreadPoolExecutor() as beside:
        held.enter_context(alone(begun))
        beside.submit(ended).add_done_callback(lambda _: held.close())
        found, text = run(tmp_path, "replay", "--resume")
    assert getattr(found.exception, "exit_code", None) == 2 and "nothing to resume" in text
    with Store.open(url) as store:
        assert store.run(begun).status == "ended" and not store.counters(begun)


def test_one_replay_of_a_run_at_a_time(tmp_path: Path) -> None:
    with (
        alone("20261202-000000-test", within=0.1),
        pytest.raises(MigrateError, match="replayed or written by another process"),
        alone("20261202-000000-test", within=0.1),
    ):
        pass
    with alone("20261202-000000-test", within=0.1):
        pass
