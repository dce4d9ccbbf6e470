"""docs/bench.md is true: its options exist, its commands run as written, its definitions are those of the code."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from migrate.commands.bench import bench
from replay.simulator.server import serving
from replay.simulator.settings import Settings
from reports.benchmark import DEFINITIONS, SCHEMA

PAGE = (Path(__file__).parents[1] / "docs" / "bench.md").read_text(encoding="utf-8")


def test_every_option_named_exists() -> None:
    options = {option for param in bench.params for option in (*param.opts, *param.secondary_opts)}
    assert set(re.findall(r"--[a-z][a-z-]+", PAGE)) <= options


def test_the_definitions_are_those_of_the_output() -> None:
    rows = dict(re.findall(r"^\| `([a-z0-9_.]+)` \| (.*) \|$", PAGE, flags=re.MULTILINE))
    assert rows == DEFINITIONS


@pytest.mark.timeout(90)
async def test_the_commands_run_as_written(tmp_path: Path) -> None:
    (script,) = re.findall(r"```sh\n(.*?)```", PAGE, flags=re.DOTALL)
    async with serving(Settings()) as url:
        command = script.replace("migrate bench", f"{sys.executable} -m migrate bench --lag-limit 1s")
        done = await asyncio.to_thread(
            subprocess.run,
            ["bash", "-ec", command.replace("http://127.0.0.1:8000", url)],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stdout + done.stderr
    document = json.loads((tmp_path / "bench.json").read_text())
    assert document["schema"] == SCHEMA and document["definitions"] == DEFINITIONS
    assert "good:" in done.stdout and (tmp_path / "bench.svg").read_text().startswith("<svg")
