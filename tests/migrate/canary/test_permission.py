"""A canary begins on a GO that holds, of the same backends, policy and candidate version: on real stores."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrate.canary.permission import Permission, permitted
from migrate.cli import main
from migrate.commands.beginning import allowed
from migrate.config import Config
from migrate.store import Store, shifts
from replay.exchange import Arm
from replay.told import Told
from tests.migrate.canary.test_commands import KEY, ME, begun, config
from tests.migrate.test_report import CONFIG, record
from tests.reports.builders import alike, wrong
from tests.reports.made import REHEARSAL, START

HERE = CONFIG.model_copy(update={"policy": REHEARSAL})
NOW = START + 7_200
SAYS = Told(version="0.32", models=("m",))


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MIGRATE_CONFIG", raising=False)
    return f"sqlite:///{tmp_path}/m.db"


def recorded(url: str, said: Told | None = SAYS, **more: object) -> str:
    run = record(url, alike(), **more)  # type: ignore[arg-type]
    if said is not None:
        with Store.open(url) as store:
            store.put_told(run, Arm.CANDIDATE, START, said)
    return run


def asked(url: str, config: Config = HERE, now: float = NOW, says: Told | None = SAYS) -> Permission:
    with Store.open(url) as store:
        return permitted(store, config, now, says)


def test_a_go_of_the_same_grants_it_and_is_named(url: str) -> None:
    run = recorded(url)
    found = asked(url)
    assert found.granted and found.run == run and found.why.startswith(f"GO of run {run}, valid until 20")


def test_without_a_run_it_says_how_to_get_one(url: str) -> None:
    recorded(url, kind="capture")
    found = asked(url)
    assert not found.granted and found.run is None and found.why == ""
    assert "record one with migrate shadow or migrate replay" in found.problems[0]


@pytest.mark.parametrize(
    ("arm", "change"),
    [
        ("candidate", {"url": "http://other:8000"}),
        ("candidate", {"models": {"a": "b"}}),
        ("baseline", {"url": "http://other:8000"}),
        ("baseline", {"model": "another"}),
    ],
)
def test_a_run_of_other_backends_is_none(url: str, arm: str, change: dict[str, object]) -> None:
    recorded(url)
    other = HERE.model_copy(update={arm: getattr(HERE, arm).model_copy(update=change)})
    assert asked(url, other).run is None


def test_the_latest_one_counts(url: str) -> None:
    recorded(url)
    later = record(url, wrong(), at=START + 60)
    found = asked(url, says=None)
    assert found.run == later and len(found.problems) == 1
    assert f"run {later} is ROLLBACK (disagreement), and a canary begins on GO" in found.problems[0]


def test_a_go_that_expired_is_none(url: str) -> None:
    brief = REHEARSAL.model_copy(update={"valid_for": 3_600.0})
    recorded(url, policy=brief)
    here = HERE.model_copy(update={"policy": brief})
    assert asked(url, here, now=START + 7_200).granted
    (problem,) = asked(url, here, now=START + 7_201).problems
    assert (
        "expired at 2023-11-15 00:13:20 UTC" in problem and "record a new one with migrate shadow" in problem
    )


def test_another_policy_is_named_key_by_key(url: str) -> None:
    recorded(url)
    other = REHEARSAL.model_copy(update={"minimum_pairs": 5_000, "alpha": 0.01})
    (problem,) = asked(url, HERE.model_copy(update={"policy": other})).problems
    assert "another policy (minimum_pairs, alpha)" in problem


def test_a_replay_has_a_warm_up_of_its_own(url: str) -> None:
    recorded(url, kind="replay")
    assert asked(
        url, HERE.model_copy(update={"policy": REHEARSAL.model_copy(update={"warmup": 60.0})})
    ).granted


@pytest.mark.parametrize(
    ("said", "says", "problem"),
    [
        (SAYS, Told(version="0.33", models=("m",)), "version 0.32 then, 0.33 now"),
        (SAYS, Told(version="0.32", models=("m", "n")), "models m then, m, n now"),
        (SAYS, Told(), "version 0.32 then, unknown now"),
        (None, SAYS, "version unknown then, 0.32 now"),
    ],
)
def test_another_candidate_version_is_named(url: str, said: Told | None, says: Told, problem: str) -> None:
    recorded(url, said)
    (sentence,) = asked(url, says=says).problems
    assert problem in sentence and "record a new run with migrate shadow" in sentence


def test_somebody_elses_server_is_not_asked(url: str) -> None:
    recorded(url, None)
    assert asked(url, says=None).granted


def test_every_condition_is_said_at_once(url: str) -> None:
    record(url, wrong())
    other = HERE.model_copy(update={"policy": REHEARSAL.model_copy(update={"alpha": 0.01})})
    assert len(asked(url, other).problems) == 3


def write(url: str) -> None:
    Path("migrate.yaml").write_text(
        "baseline: {kind: vllm, url: 'http://127.0.0.1:9'}\ncandidate: {kind: vllm, url: 'http://127.0.0.1:10'}\n"
        f"store: {{url: '{url}'}}\n"
    )


def migrate(*words: str) -> int:
    with pytest.raises(SystemExit) as done:
        main([*words])
    assert isinstance(done.value.code, int)
    return done.value.code


def test_without_permission_nothing_is_begun(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    write(url)
    record(url, alike(5))
    assert migrate("canary") == 2
    err = capsys.readouterr().err
    assert err.startswith("migrate: no canary was begun: no shadow or replay run") and err.count("\n") == 1
    assert "--force REASON" in err
    with Store.open(url) as store:
        assert shifts.latest(store) is None and len(store.runs()) == 1


@pytest.mark.parametrize("reason", ["", "  ", "x" * 1_001])
def test_a_reason_that_cannot_be_kept_forces_nothing(
    url: str, reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write(url)
    assert migrate("canary", "--force", reason) == 2
    assert "migrate: --force " in capsys.readouterr().err and not list(Path.cwd().glob("m.db*"))


def test_a_canary_that_goes_on_is_joined_without_a_go_and_without_a_reason(
    url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    here = config(url)
    assert allowed(here, "a rehearsal", quiet=True) == f"forced by {ME}: a rehearsal"
    begun(url)
    assert allowed(here, None, quiet=True) == "" and capsys.readouterr().err == ""
    assert allowed(here, "again", quiet=True) == ""
    assert "goes on and is joined: --force begins nothing" in capsys.readouterr().err


def test_a_secret_in_a_reason_is_not_kept(url: str) -> None:
    why = allowed(config(url), f"INC-4711 {KEY}", quiet=True)
    assert KEY not in why and "INC-4711" not in why and "[own:" in why
