"""docs/cost.md is true: its options exist, its commands run as written, and its figures are those of the price list and a pen."""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from scipy.stats import t

from migrate.commands.bench import bench
from migrate.commands.cost import cost
from migrate.commands.report import report
from migrate.config import Price
from migrate.prices import price_list
from reports.outlook import DEFINITIONS, SCHEMA

PAGE = (Path(__file__).parents[1] / "docs" / "cost.md").read_text(encoding="utf-8")
RELAY, GPU = price_list()["example/relay"], price_list()["example/gpu"]
TOKENS = [(1200, 400, 150), (800, 0, 250), (1000, 600, 200), (1000, 0, 200)]


def block(kind: str) -> str:
    (found,) = re.findall(rf"```{kind}\n(.*?)\n```", PAGE, flags=re.DOTALL)
    return found


def test_every_option_and_key_named_exists() -> None:
    options = {
        option for command in (cost, bench, report) for param in command.params for option in param.opts
    }
    assert set(re.findall(r"--[a-z][a-z-]+", PAGE)) <= options
    keys = re.findall(r"^\| ((?:`[a-z_]+`(?:, )?)+) \|", PAGE, flags=re.MULTILINE)
    assert {key for row in keys for key in re.findall(r"`([a-z_]+)`", row)} == set(Price.model_fields)


def test_the_definitions_are_those_of_the_output() -> None:
    section = PAGE.split("## Definitions")[1]
    rows = dict(re.findall(r"^\| ([a-z0-9 ,-]+) \| (.*) \|$", section, flags=re.MULTILINE)[2:])
    assert rows == DEFINITIONS


def ran(folder: Path) -> tuple[str, dict[str, Any]]:
    """The screen and the JSON of the page's commands."""
    lines = [
        {
            "request": {"model": "harbor-7b", "messages": [{"role": "user", "content": f"Ship {n}?"}]},
            "response": {
                "choices": [
                    {"index": 0, "message": {"role": "assistant", "content": "Yes."}, "finish_reason": "stop"}
                ],
                "usage": {
                    "prompt_tokens": prompt,
                    "completion_tokens": output,
                    "prompt_tokens_details": {"cached_tokens": cached},
                },
            },
        }
        for n, (prompt, cached, output) in enumerate(TOKENS)
    ]
    (folder / "requests.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (folder / "move.yaml").write_text(block("yaml"))
    done = subprocess.run(
        ["bash", "-ec", block("sh").replace("migrate ", f"{sys.executable} -m migrate ")],
        cwd=folder,
        env={"COLUMNS": "80", "PATH": "/usr/bin:/bin", "HOME": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    screen, data = done.stdout.split('{\n  "schema"')
    return screen, json.loads('{"schema"' + data)


def test_the_commands_run_as_written_and_the_figures_are_those_of_a_pen(tmp_path: Path) -> None:
    screen, data = ran(tmp_path)
    assert block("text") in screen and data["schema"] == SCHEMA
    said = {row["name"]: (row["baseline"], row["candidate"]) for row in data["rows"]}
    joint = {one["name"]: one["value"]["expected"] for one in data["joint"]}
    costs = [
        ((prompt - cached) * RELAY["input"] + cached * RELAY["cached_input"] + output * RELAY["output"]) / 1e6
        for prompt, cached, output in TOKENS
    ]
    request, replica, month = sum(costs) / 4, 2 * GPU["gpu_per_hour"] * 24, 365 / 12
    assert request == pytest.approx(787.5e-6) and replica == 96
    error = math.sqrt(sum((one - request) ** 2 for one in costs) / 3 / 4) * t.ppf(0.975, 3)
    assert said["request"][0] == pytest.approx(
        {"low": request - error, "expected": request, "high": request + error}
    )
    assert error == pytest.approx(214.8e-6, rel=1e-3)
    day = 128_000 * request
    assert (said["day"][0]["expected"], said["day"][1]["expected"]) == pytest.approx((day, replica))
    assert said["at full load"][1]["expected"] == pytest.approx(replica / (1.5 * 86_400))
    assert said["month"][0]["expected"] == pytest.approx(day * month)
    assert said["12 months"][1]["expected"] == pytest.approx(1000 + 365 * replica)
    saving = (day - replica) * month
    assert joint["saving"] == pytest.approx(saving) and joint["break-even"] == pytest.approx(
        replica / request
    )
    assert joint["return after 12 months"] == pytest.approx((saving * 12 - 1000) / 1000)
    assert joint["payback"] == pytest.approx(1000 / saving)
    assert joint["rollback"] == pytest.approx(1000 + 7 * (replica - day))
    assert data["cheaper"][-1] == {"above": pytest.approx(16 * replica / request), "to": None}


def test_the_page_works_out_what_it_states() -> None:
    """Each sum in the tables, as far as it is one: left of the equals sign is what stands right of it."""
    sums = re.findall(r"([\d.,()\u00d7+/ -]*\d[\d.,()]*) = `?([\d.,]+)`?(?= |$|;)", PAGE)
    assert len(sums) > 12
    for left, right in sums:
        worked = eval(left.replace(",", "").replace("\u00d7", "*").strip())
        assert worked == pytest.approx(float(right.rstrip(".").replace(",", "")), rel=5e-3), left
