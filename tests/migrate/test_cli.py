"""The command line as its user types it: real processes, exit codes, and errors of one line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from migrate.config import load


def migrate(*words: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    root = str(Path(__file__).parents[2])
    return subprocess.run(
        [sys.executable, "-m", "migrate", *words],
        cwd=cwd,
        env={"PYTHONPATH": root, "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


def test_help_lists_every_command_with_examples_and_exit_codes() -> None:
    done = migrate("--help")
    assert done.returncode == 0
    for word in ("init", "shadow", "report", "simulate", "doctor", "Exit codes"):
        assert word in done.stdout


@pytest.mark.parametrize(
    "command", ["init", "shadow", "capture", "report", "acknowledge", "runs", "simulate", "doctor"]
)
def test_every_command_has_help(command: str) -> None:
    done = migrate(command, "--help")
    assert done.returncode == 0 and "Usage: migrate " + command in done.stdout


@pytest.mark.parametrize("words", [["shadw"], ["report", "--frmat", "json"], ["init", "a", "b"]])
def test_wrong_use_exits_2(words: list[str]) -> None:
    done = migrate(*words)
    assert done.returncode == 2 and "Traceback" not in done.stderr


def test_a_misspelled_command_is_told_the_nearest() -> None:
    assert "Did you mean 'shadow'?" in migrate("shadw").stderr
    assert "Did you mean" not in migrate("zzz").stderr


def test_init_writes_a_configuration_that_loads_and_never_overwrites(tmp_path: Path) -> None:
    done = migrate(
        "init", "--baseline", "http://127.0.0.1:1", "--candidate", "http://127.0.0.1:2", cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert load(tmp_path / "migrate.yaml").baseline.url == "http://127.0.0.1:1"
    assert "next: migrate check --config migrate.yaml" in done.stderr
    again = migrate("init", cwd=tmp_path)
    assert again.returncode == 2 and "--force" in again.stderr and again.stderr.count("\n") == 1


def test_init_refuses_an_address_that_is_none(tmp_path: Path) -> None:
    done = migrate("init", "--baseline", "ftp://x", cwd=tmp_path)
    assert done.returncode == 2 and "baseline.url" in done.stderr
    assert not (tmp_path / "migrate.yaml").exists()


def test_doctor_says_what_is_there() -> None:
    done = migrate("doctor", "--format", "json")
    assert done.returncode == 0, done.stdout
    assert '"reports"' in done.stdout


@pytest.mark.parametrize(
    "words",
    [
        "plan --pairs-per-minute 30 --turns nan",
        "plan --pairs-per-minute 30 --latency-spread NaN",
        "compare pairs.jsonl --similarity nan",
        "diff a b --similarity nan",
        "simulate --ttft-spread nan",
    ],
)
def test_nan_is_no_number_within_bounds(words: str) -> None:
    done = migrate(*words.split())
    assert (done.returncode, done.stdout) == (2, "")
    assert "is no number" in done.stderr
