"""``migrate plan``: where its traffic comes from, what it prints, and one line for each wrong use."""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from migrate.cli import main
from migrate.commands.plan import plan as command
from reports.plan import EFFECTS
from reports.policy import Policy
from reports.rules import RULES
from tests.migrate.test_report import CONFIG, record
from tests.reports.builders import exchange

OTHERS = {rule.name: {"required": False} for rule in RULES if rule.name != "errors"}
CONFIGURED = {
    "baseline": {"kind": "vllm", "url": "http://10.0.0.5:8000"},
    "candidate": {
        "kind": "vllm",
        "url": "http://10.0.0.9:8000",
        "timeouts": {"total": "900s"},
        "limits": {"requests_per_minute": 60},
    },
    "shadow": {"percent": 20, "repeat_baseline": "50 %"},
    "policy": {"minimum_span": "1h", "errors": {"margin": "2 %"}, **OTHERS},
}
"""One rule is required: a plan of it takes a moment."""


def configured() -> None:
    Path("migrate.yaml").write_text(json.dumps(CONFIGURED))


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")


def plan(*words: str) -> int:
    with pytest.raises(SystemExit) as done:
        main(["plan", *words])
    assert isinstance(done.value.code, int)
    return done.value.code


@pytest.fixture
def planned(capsys: pytest.CaptureFixture[str]) -> Any:
    def made(*words: str) -> Any:
        assert plan(*words, "--format", "json") == 0
        return json.loads(capsys.readouterr().out)

    return made


def test_a_screen_says_hours_by_rule_and_what_was_assumed(capsys):
    assert plan("--requests-per-minute", "300") == 0
    said = capsys.readouterr().out
    assert all(f"{rule.name:<15}" in said for rule in RULES if rule.promise(Policy()).required)
    assert "VERDICT" in said and "30 pairs a minute (10 % mirrored)" in said and "assumed: errors" in said


def test_programs_read_the_same(planned):
    data = planned("--requests-per-minute", "300")
    assert data["schema"] == {"name": "llm-migrate.plan", "version": 1}
    assert data["verdict"]["go"]["half_hours"] == pytest.approx(24.4, rel=0.05)
    assert [one["margins"] for one in data["verdict"]["rollback"]] == list(EFFECTS)
    assert data["traffic"]["pairs_per_hour"] == 1800 and data["traffic"]["mirrored"] == 0.1


def test_what_is_given_is_used_and_said(planned):
    data = planned(
        *(
            "--pairs-per-minute",
            "30",
            "--error-rate",
            "1 %",
            "--latency-median",
            "2s",
            "--latency-spread",
            "0.3",
        ),
        *("--noise", "10%", "--turns", "2"),
    )
    given = {"error_rate": 0.01, "latency_s": 2, "spread": 0.3, "noise": 0.1, "turns": 2}
    assert {name: data["traffic"][name] for name in given} == given
    assert all(data["traffic"]["from"][name] == "given" for name in given)
    assert data["traffic"]["ttft_s"] == 0.5 and data["traffic"]["mirrored"] is None


def test_the_configuration_gives_policy_share_repeats_and_timeout(planned):
    configured()
    data = planned("--requests-per-minute", "100")
    traffic = data["traffic"]
    assert (traffic["pairs_per_hour"], traffic["repeats"], traffic["timeout_s"]) == (1200, 0.5, 900)
    assert data["policy"]["minimum_span"] == 3600
    assert next(rule for rule in data["rules"] if rule["rule"] == "errors")["margin"] == 0.02


def test_more_copies_than_the_candidate_takes_are_said(planned):
    configured()
    assert planned("--requests-per-minute", "200")["notes"] == []
    (note,) = planned("--requests-per-minute", "1000")["notes"]
    assert "limits.requests_per_minute is 60, and 200 copies a minute" in note


@pytest.mark.parametrize("kind", ["shadow", "capture", "import"])
def test_a_run_gives_traffic_latencies_and_errors(planned, kind):
    configured()
    failing = (exchange(n, failed="overloaded" if n % 10 == 0 else None) for n in range(400))
    run = record("sqlite:///m.db", failing, kind=kind)
    data = planned("--run", run, "--store", "sqlite:///m.db")
    traffic = data["traffic"]
    recorded = 1.0 if kind == "import" else CONFIG.shadow.percent  # ten a second of a share
    assert traffic["pairs_per_hour"] == pytest.approx(36_000 / recorded * 0.2, rel=0.01)
    assert traffic["latency_s"] == pytest.approx(0.23) and traffic["error_rate"] == 0
    assert traffic["from"]["latency_s"] == "recorded" and traffic["from"]["noise"] == "assumed"


def test_what_is_given_goes_before_what_was_recorded(planned):
    configured()
    run = record("sqlite:///m.db", (exchange(n) for n in range(200)))
    words = ("--run", run, "--store", "sqlite:///m.db", "--latency-median", "3s", "--pairs-per-minute", "6")
    traffic = planned(*words)["traffic"]
    assert (traffic["latency_s"], traffic["pairs_per_hour"]) == (3, 360)


def test_equal_arguments_give_an_equal_plan(planned):
    configured()
    words = ("--pairs-per-minute", "30", "--seed", "5")
    assert planned(*words) == planned(*words)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "nothing says how much traffic there is"),
        (("--pairs-per-minute", "3", "--requests-per-minute", "3"), "give one of them"),
        (("--pairs-per-minute", "0"), "no number above 0"),
        (("--pairs-per-minute", "nan"), "no number above 0"),
        (("--pairs-per-minute", "1e300"), "more than 10,000,000 a minute"),
        (("--pairs-per-minute", "3", "--error-rate", "90 %"), "at most 50 %"),
        (("--pairs-per-minute", "3", "--latency-median", "0"), "above 0"),
        (("--pairs-per-minute", "3", "--noise", "loud"), "is not a share"),
        (("--run", "none", "--store", "sqlite:///none.db"), "none.db"),
    ],
)
def test_wrong_use_is_one_line(capsys, words, said):
    assert plan(*words) == 2
    assert said in capsys.readouterr().err.splitlines()[-1]


def test_a_run_of_one_request_tells_no_traffic(capsys):
    run = record("sqlite:///m.db", [exchange(1)])
    assert plan("--run", run, "--store", "sqlite:///m.db") == 2
    assert "too few to tell how many come in an hour" in capsys.readouterr().err


def test_constant_latencies_are_no_trouble():
    assert plan("--pairs-per-minute", "30", "--latency-spread", "0", "--error-rate", "0", "--noise", "0") == 0


PAGE = (Path(__file__).parents[2] / "docs" / "verdicts.md").read_text(encoding="utf-8")
SECTION = PAGE.split("## Before anything runs: migrate plan")[1].split("\n## ")[0]


def hours(table: str) -> list[float]:
    """Every time in it; over 336 as infinite."""
    cells = [
        cell
        for line in table.splitlines()[3:]
        for cell in re.split(r"[ /]+", line)
        if cell[:1] in "0123456789>"
    ]
    return [math.inf if cell == ">336" else float(cell.replace(",", "")) for cell in cells]


def test_the_page_shows_what_the_command_says(capsys):
    (words,) = re.findall(r"```sh\nmigrate plan (.*)\n```", SECTION)
    (shown,) = re.findall(r"```text\n(.*?)\n```", SECTION, flags=re.DOTALL)
    assert plan(*words.split()) == 0
    said = capsys.readouterr().out.split("\n\n")[0]
    assert [line.split()[:2] for line in said.splitlines()] == [
        line.split()[:2] for line in shown.splitlines()
    ]
    assert hours(shown) == pytest.approx(hours(said), rel=0.3)


def test_the_page_names_options_that_exist():
    options = {option for param in command.params for option in param.opts}
    assert set(re.findall(r"--[a-z][a-z-]+", SECTION)) <= options


def test_a_reader_who_stops_is_no_failure() -> None:
    words = f"{sys.executable} -m migrate plan --pairs-per-minute 30"
    done = subprocess.run(
        ["bash", "-c", f"{words} | true; exit ${{PIPESTATUS[0]}}"],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
