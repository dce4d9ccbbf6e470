"""A verdict over time: an ended run gives the same document for ever, byte for byte, and a GO does not last for ever."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from migrate.store import Store
from replay.exchange import Exchange
from reports.acknowledgement import Acknowledgement
from reports.policy import Policy
from reports.render import RENDERERS
from tests.migrate.test_report import CONFIG, ROOT, record, run
from tests.reports.builders import alike, exchange, wrong
from tests.reports.made import REHEARSAL, START


@pytest.fixture(autouse=True)
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MIGRATE_CONFIG", raising=False)
    return f"sqlite:///{tmp_path}/m.db"


def made(url: str, folder: Path, words: list[str], **environment: str) -> dict[str, bytes]:
    """What a process of its own writes: by file, and to standard output as ``-``."""
    folder.mkdir()
    done = subprocess.run(
        [sys.executable, "-m", "migrate", "report", "--store", url, *words],
        cwd=folder,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "COLUMNS": "100", **environment},
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 3, done.stderr
    return {"-": done.stdout} | {path.name: path.read_bytes() for path in folder.iterdir()}


def mixed() -> list[Exchange]:
    """Answers that differ, fail, are slow and are of several kinds: something for every part of a document."""
    several = [
        replace(one, candidate=exchange(n, slower_s=2.0).candidate) if n % 9 == 0 else one
        for n, one in enumerate(wrong(420))
    ]
    return [*several, *(exchange(420 + n, failed="no such model", repeat=n % 2 == 0) for n in range(12))]


EVERY = ",".join(("terminal", *RENDERERS))


@pytest.mark.parametrize(
    ("words", "files"),
    [
        (["--format", EVERY, "--output", "r"], len(RENDERERS)),
        (["--explain", "disagreement"], 0),
        (["--explain", "errors", "--format", "json"], 0),
    ],
    ids=["every format", "explained", "explained as json"],
)
def test_another_process_at_another_place_makes_the_same_bytes(
    url: str, tmp_path: Path, words: list[str], files: int
) -> None:
    name = record(url, mixed())
    with Store.open(url) as store:
        store.acknowledge(name, Acknowledgement(at=START - 1, who="ana", why="seen", code="errors"))
    here, there = tmp_path / "here", tmp_path / "there"
    first = made(url, here, words, PYTHONHASHSEED="1", TZ="Pacific/Auckland", LC_ALL="C.UTF-8")
    second = made(url, there, words, PYTHONHASHSEED="77", TZ="America/St_Johns", PYTHONUTF8="1")
    assert first == second and len(first) == 1 + files
    assert all(len(one) > 500 for one in first.values())


def test_a_verdict_says_until_when_it_is_valid(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    policy = REHEARSAL.model_copy(update={"valid_for": 7 * 86_400.0})
    record(url, wrong(), policy=policy)
    assert run("--store", url, "--format", "json") == 3
    document = json.loads(capsys.readouterr().out)
    assert (document["judged_at"], document["valid_until"]) == (
        "2023-11-14T23:13:20Z",
        "2023-11-21T23:13:20Z",
    )
    for form in ("terminal", "markdown", "html"):
        run("--store", url, "--format", form)
        assert "2023-11-21 23:13:20 UTC" in " ".join(capsys.readouterr().out.split())


def test_a_go_that_expired_is_none_any_more_and_its_document_stays_the_same(
    url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    policy = REHEARSAL.model_copy(update={"valid_for": 7 * 86_400.0})
    record(url, alike(), policy=policy)
    assert run("--store", url, "--format", "json") == 4
    out, err = capsys.readouterr()
    assert json.loads(out)["verdict"] == "GO"
    assert err == (
        "migrate: this GO expired at 2023-11-21 23:13:20 UTC (policy.valid_for): record a new run with migrate shadow and report "
        "on it\n"
    )


def test_a_replay_is_renewed_by_a_replay(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    policy = REHEARSAL.model_copy(update={"valid_for": 1.0})
    record(url, alike(), policy=policy, kind="replay")
    assert run("--store", url) == 4
    assert "record a new run with migrate replay" in capsys.readouterr().err


def test_a_fresh_go_and_what_is_no_go_do_not_expire(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    policy = REHEARSAL.model_copy(update={"valid_for": 7 * 86_400.0})
    name = record(url, alike(), policy=policy)
    with Store.open(url) as store:
        store.end_run(name, at=time.time() - 6 * 86_400)
    assert run("--store", url) == 0
    record(url, wrong(), policy=policy, at=START + 9_000)
    assert run("--store", url) == 3
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("words", ["0s", "-1s", "3651d", "soon"])
def test_a_verdict_is_valid_for_some_time_and_not_for_ever(words: str) -> None:
    assert Policy().valid_for == 7 * 86_400
    with pytest.raises(ValueError, match="valid_for"):
        Policy.model_validate({"valid_for": words})


def test_a_rule_is_explained_with_the_verdicts_exit_code(
    url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    name = record(url, wrong())
    assert run("--store", url, "--explain", "disagreement") == 3
    out, err = capsys.readouterr()
    assert err == "" and f"run {name}" in out and "EVIDENCE OVER TIME" in out
    assert "It costs 24 euros." in out  # what the pairs that weigh most said
    assert run("--store", url, "--explain", "errors", "--format", "json", "--output", "why.json") == 3
    assert json.loads(Path("why.json").read_text())["run"] == name
    assert capsys.readouterr().err == "wrote why.json\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--explain", "eror"), "--explain 'eror' is no rule; did you mean errors?"),
        (("--explain", "latency"), "did you mean latency_p95"),
        (("--explain", "zzz"), "is no rule; rules are errors, timeouts, disagreement"),
        (
            ("--explain", "errors", "--format", "html"),
            "--explain is shown as one format: --format terminal or --format json",
        ),
        (("--explain", "errors", "--format", "json,terminal"), "--explain is shown as one format"),
    ],
)
def test_a_rule_that_is_none_is_told_the_nearest(
    url: str, words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    record(url, alike(3))
    assert run("--store", url, *words) == 2
    out, err = capsys.readouterr()
    assert out == "" and said in err and err.count("\n") == 1


def test_the_shell_completes_rules() -> None:
    env = {
        "PYTHONPATH": str(ROOT),
        "PATH": "/usr/bin:/bin",
        "_MIGRATE_COMPLETE": "bash_complete",
        "COMP_WORDS": "migrate report --explain ttft",
        "COMP_CWORD": "3",
    }
    script = "import sys; sys.argv = ['migrate']; from migrate.cli import cli; cli.main(prog_name='migrate')"
    done = subprocess.run(
        [sys.executable, "-c", script], env=env, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout.split() == ["plain,ttft_median", "plain,ttft_p95"]


def test_a_safety_stop_is_said_to_be_no_claim_about_rates(
    url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    dead = [exchange(400 + n, failed="connection refused") for n in range(25)]
    record(url, [*alike(400), *dead], config=CONFIG)
    for form in ("terminal", *RENDERERS):
        assert run("--store", url, "--format", form) == 3
        text = " ".join(capsys.readouterr().out.split())
        assert "ROLLBACK" in text and "halt" in text
        assert "Safety stop, not a claim about rates: the candidate failed 20 requests in a row" in text, form


@pytest.mark.parametrize(
    "ending",
    ["| true; exit ${PIPESTATUS[0]}", ">&-", ">&- 2>&-", ""],
    ids=[
        "a reader who stops",
        "no output",
        "neither output nor error",
        "a screen that knows no such characters",
    ],
)
@pytest.mark.parametrize("words", ["", "--format markdown", "--explain errors"])
def test_the_exit_code_is_the_verdicts_whoever_reads_it(url: str, words: str, ending: str) -> None:
    record(url, wrong())
    done = subprocess.run(
        ["bash", "-c", f"{sys.executable} -m migrate report --store {url} {words} {ending}"],
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "PYTHONIOENCODING": "latin-1"},
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (3, b"")
