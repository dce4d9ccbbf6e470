"""``migrate canary`` and ``migrate rollback`` by hand: as a user types them, on real stores."""

from __future__ import annotations

import json
import os
import pwd
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from migrate.canary import shift
from migrate.canary.section import Step
from migrate.canary.shift import Shift
from migrate.cli import main
from migrate.config import Config
from migrate.store import Store, shifts
from tests.migrate.test_schemas import conforms

ROOT = Path(__file__).parents[3]
ME = f"{pwd.getpwuid(os.geteuid()).pw_name}@{socket.gethostname()}"
KEY = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789"


def config(url: str, **canary: object) -> Config:
    return Config.model_validate(
        {
            "baseline": {"kind": "vllm", "url": "http://127.0.0.1:9"},
            "candidate": {"kind": "vllm", "url": "http://127.0.0.1:10"},
            "store": {"url": url},
            "redact": {"patterns": ["INC-[0-9]+"]},
            "canary": canary,
        }
    )


def begun(url: str, **canary: object) -> str:
    """A canary as a gateway begins it. Returns the id of the gateway's run."""
    at, found = time.time(), config(url, **canary)
    with Store.open(url, create=True) as store:
        data = found.model_dump(mode="json", by_alias=True)
        run = store.begin_run(kind="canary", config=data, policy=data["policy"], seed=1, at=at)
        first = shift.started(
            shifts.new_id(at), found.canary.steps, at=at, who="gateway h 127.0.0.1:8080", why="GO", run=run
        )
        shifts.begin(store, first)
    return run


def now(url: str) -> Shift:
    with Store.open(url) as store:
        found = shifts.latest(store)
    assert found is not None
    return found


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MIGRATE_CONFIG", raising=False)
    return f"sqlite:///{tmp_path}/m.db"


def migrate(*words: str) -> int:
    with pytest.raises(SystemExit) as done:
        main([*words])
    assert isinstance(done.value.code, int)
    return done.value.code


def test_every_command_moves_the_state_and_is_in_the_log(
    url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    begun(url, steps=[1, 25, 100], cool_down="0s")
    deeds = (
        (("pause", "a look at it"), ("paused", 0.01)),
        (("resume",), ("shifting", 0.01)),
        (("approve",), ("shifting", 0.01)),
        (("set", "30", "by  hand\nhere"), ("paused", 0.3)),
        (("rollback", f"INC-4711: {KEY}"), ("rolled_back", 0.0)),
        (("resume", "fixed"), ("shifting", 0.01)),
        (("set", "100 %"), ("paused", 1.0)),
        (("finish",), ("finished", 1.0)),
    )
    for words, (phase, share) in deeds:
        assert migrate("canary", *words, "--store", url) == 0
        assert (now(url).phase, now(url).share, now(url).who) == (phase, share, ME)
        assert phase.replace("_", " ") in capsys.readouterr().out
    assert migrate("canary", "log", "--store", url) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == [str(number) for number in range(1, 10)]
    assert "by hand here" in lines[4] and "[own:" in lines[5] and "[key:" in lines[5]
    stored = b"".join(path.read_bytes() for path in Path.cwd().glob("m.db*"))
    assert KEY.encode() not in stored and b"INC-4711" not in stored


def test_status_says_what_is_and_what_comes_next(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    steps = [{"percent": 5, "minimum_span": "2h", "minimum_pairs": 1000}, 50]
    begun(url, steps=steps, manual=True)

    def said(code: int) -> str:
        assert migrate("canary", "status", "--store", url) == code
        return capsys.readouterr().out

    assert "5 % since" in (shown := said(0)) and "step    1 of 2 (5, 50 %)" in shown
    assert "50 %, on GO on at least 1,000 pairs over 7200 s at this share and migrate canary approve" in shown
    migrate("canary", "approve", "--store", url)
    capsys.readouterr()
    assert "shifting, next step approved" in (shown := said(0)) and "and migrate canary approve" not in shown
    migrate("canary", "set", "50", "--store", url)
    capsys.readouterr()
    assert "on with migrate canary resume" in said(0)
    migrate("canary", "resume", "--store", url)
    capsys.readouterr()
    assert "migrate canary finish" in said(0)
    migrate("rollback", "enough", "--store", url)
    capsys.readouterr()
    assert f"rollback by {ME}" in (shown := said(3)) and ": enough" in shown and "cooled down" in shown


def test_documents_are_as_published(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    begun(url)
    for words, code in ((("canary", "pause"), 0), (("rollback",), 3)):
        assert migrate(*words, "--store", url) == 0
        capsys.readouterr()
        assert migrate("canary", "status", "--store", url, "--format", "json") == code
        conforms("canary", json.loads(capsys.readouterr().out))
    migrate("canary", "log", "--store", url, "--format", "json")
    rows = json.loads(capsys.readouterr().out)
    conforms("canary-log", rows)
    assert [row["action"] for row in rows] == ["start", "pause", "rollback"]


def test_a_rollback_once_more_changes_nothing(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    begun(url)
    assert migrate("rollback", "--store", url) == 0
    before = now(url)
    assert migrate("rollback", "again", "--store", url) == 0
    assert "rolled back already" in capsys.readouterr().out and now(url) == before


def test_a_rollback_needs_no_configuration_and_no_run(url: str) -> None:
    at = time.time()
    with Store.open(url, create=True) as store:
        steps = (Step(percent=50),)
        shifts.begin(store, shift.started("c", steps, at=at, who="gateway", why="GO", run="gone"))
    Path("migrate.yaml").write_text("this: [is no configuration")
    assert migrate("rollback", f"with {KEY}", "--store", url) == 0
    assert now(url).share == 0 and now(url).why.startswith("with [key:")
    assert migrate("rollback") == 2


def test_the_store_of_the_configuration_is_the_default(url: str) -> None:
    begun(url)
    Path("migrate.yaml").write_text(
        f"baseline: {{kind: vllm, url: 'http://127.0.0.1:9'}}\nstore: {{url: '{url}'}}\n"
    )
    assert migrate("canary", "pause") == 0 and now(url).phase == "paused"
    assert migrate("rollback") == 0 and now(url).phase == "rolled_back"


def test_resuming_after_a_rollback_takes_note_of_it(url: str) -> None:
    run = begun(url, cool_down="0s")
    migrate("rollback", "--store", url)
    assert migrate("canary", "resume", "--store", url) == 2
    with Store.open(url) as store:
        assert store.acknowledgements(run) == ()
    assert migrate("canary", "resume", "the disk is replaced", "--store", url) == 0
    with Store.open(url) as store:
        (note,) = store.acknowledgements(run)
    assert (note.who, note.why) == (ME, "the disk is replaced") and note.at == now(url).since


def test_resuming_from_a_pause_takes_note_of_nothing(url: str) -> None:
    run = begun(url)
    migrate("canary", "pause", "--store", url)
    assert migrate("canary", "resume", "--store", url) == 0
    with Store.open(url) as store:
        assert store.acknowledgements(run) == ()


def test_during_a_cool_down_nothing_is_resumed(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    run = begun(url)
    migrate("rollback", "--store", url)
    capsys.readouterr()
    assert migrate("canary", "resume", "fixed", "--store", url) == 2
    assert "cools down for another" in capsys.readouterr().err
    with Store.open(url) as store:
        assert store.acknowledgements(run) == ()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("set", "101"), "is not a percentage"),
        (("set", "-5"), "is not a percentage"),
        (("set", "nan"), "is not a percentage"),
        (("set",), "Missing argument 'PERCENT'"),
        (("pause", " "), "WHY is empty"),
        (("pause", "x" * 1_001), "at most 1,000"),
        (("finish",), "can be finished when the candidate answers 100 %"),
        (("resume",), "nothing to resume"),
        (("rolback",), "No such command"),
    ],
)
def test_wrong_use_is_said_and_changes_nothing(
    url: str, words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    begun(url)
    before = now(url)
    assert migrate("canary", *words, "--store", url) == 2
    out, err = capsys.readouterr()
    assert out == "" and said in err and now(url) == before


def test_options_go_behind_the_command(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    begun(url)
    assert migrate("canary", "--store", url, "pause") == 2
    assert "--store goes behind pause" in capsys.readouterr().err


def test_where_there_is_no_canary_it_is_said(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    for words in (("rollback",), ("canary", "status"), ("canary", "log"), ("canary", "pause")):
        assert migrate(*words, "--store", url) == 2
        assert "does not exist" in capsys.readouterr().err
    with Store.open(url, create=True):
        pass
    assert migrate("rollback", "--store", url) == 2
    assert "has no canary; begin one with migrate canary" in capsys.readouterr().err


def test_what_a_candidate_said_does_not_act_on_a_terminal(
    url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    begun(url)
    with Store.open(url) as store:
        shifts.append(
            store,
            now(url).canary,
            lambda state: shift.noted(state, "join", at=1.0, who="g\x1b[2J", why="said \x1b]0;x\x07\nhere"),
        )
    for words in (("status",), ("log",), ("status", "--format", "json"), ("log", "--format", "json")):
        migrate("canary", *words, "--store", url)
        assert "\x1b" not in capsys.readouterr().out


def test_a_rollback_takes_a_second_with_everything(url: str, tmp_path: Path) -> None:
    """0.6 s here, the start of Python with it; three are for a machine that does other things."""
    begun(url)
    environment = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "migrate", "rollback", "too slow", "--store", url],
        env=environment,
        capture_output=True,
        check=False,
        timeout=30,
        cwd=tmp_path,
    )
    took = time.monotonic() - began
    assert done.returncode == 0, done.stderr
    assert now(url).share == 0 and now(url).why == "too slow"
    assert took < 3
    loaded = subprocess.run(
        [sys.executable, "-c", "import sys, migrate.commands.rollback; print(*sys.modules)"],
        env=environment,
        capture_output=True,
        check=True,
        text=True,
        timeout=30,
    )
    slow = {"aiohttp", "jinja2", "rich", "httpx", "migrate.report", "migrate.gateway", "migrate.shadow"}
    assert not slow & set(loaded.stdout.split())
