"""What is written for each proxy, and that it is whole or not there."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from migrate.commands.weights import _TARGETS
from migrate.errors import ConfigError
from migrate.weights import gateway_api, litellm, nginx
from migrate.weights.target import PARTS, parts
from tests.shell import run
from tests.test_docs import commands

ROOT = Path(__file__).parents[3]


def migrate(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "migrate", *words], capture_output=True, text=True, check=False
    )


def test_a_small_share_is_not_nothing_and_a_large_one_not_all() -> None:
    assert [parts(share) for share in (0.0, 1e-9, 0.25, 1 - 1e-9, 1.0)] == [0, 1, 2_500, PARTS - 1, PARTS]


def test_nginx_gets_no_part_of_nothing() -> None:
    assert nginx.text(0.0).splitlines()[1:-1] == ["    * baseline;"]
    assert nginx.text(0.25).splitlines()[1:-1] == ["    25.00% candidate;", "    * baseline;"]
    assert nginx.text(1.0).splitlines()[1:-1] == ["    * candidate;"]


def test_the_patch_gives_the_route_its_weights() -> None:
    route = yaml.safe_load(gateway_api.GATEWAY_API.setup)
    for step in json.loads(gateway_api.text(0.25)):
        *way, last = [int(part) if part.isdigit() else part for part in step["path"].split("/")[1:]]
        place = route
        for part in way:
            place = place[part]
        if step["op"] == "test":
            assert place[last] == step["value"]
        else:
            place[last] = step["value"]
    assert [ref["weight"] for ref in route["spec"]["rules"][0]["backendRefs"]] == [7_500, 2_500]


def test_litellm_keeps_what_is_not_a_weight() -> None:
    before = yaml.safe_load(litellm.LITELLM.setup)
    after = yaml.safe_load(litellm.text(0.25, litellm.LITELLM.setup))
    assert [one["litellm_params"].pop("weight") for one in after["model_list"]] == [7_500, 2_500]
    for one in before["model_list"]:
        del one["litellm_params"]["weight"]
    assert after == before


@pytest.mark.parametrize(
    "before", ["", "a: [", "- 1", "model_list: 3", "model_list: [{model_info: {arm: [baseline]}}]"]
)
def test_litellm_without_both_arms_is_refused(before: str) -> None:
    with pytest.raises(ConfigError, match="LiteLLM"):
        litellm.text(0.25, before)


@pytest.mark.parametrize("name", list(_TARGETS))
def test_a_dry_run_changes_nothing(name: str, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text(_TARGETS[name].setup)
    done = migrate("weights", "--to", name, "--share", "25", "--dry-run", str(file))
    assert done.returncode == 0 and done.stdout == _TARGETS[name].text(0.25, _TARGETS[name].setup)
    assert file.read_text() == _TARGETS[name].setup and list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["--to", "nginx", "--share", "101", "f"], 2, "not a percentage"),
        (["--to", "nginx", "--share", "25"], 2, "say which FILE"),
        (["--to", "nginx", "--share", "25", "--follow", "f"], 2, "leave out --share"),
        (["--to", "nginx", "--share", "25", "--then", "'", "f"], 2, "--then"),
        (["--to", "nginx", "--share", "25", "no/folder/f"], 1, "No such file"),
        (["--to", "nginx", "--store", "sqlite:///none.db", "f"], 2, "does not exist"),
        (["--to", "nginx", "--share", "25", "--then", "false", "f"], 1, "--then false ended with 1"),
    ],
)
def test_wrong_use_is_one_line(words: list[str], code: int, told: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "migrate", "weights", *words],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == code and told in done.stderr and "Traceback" not in done.stderr, done.stderr


_WRITER = """
import sys
from pathlib import Path
from migrate.weights.writing import put
while True:
    for letter in "ab":
        put(Path(sys.argv[1]), letter * 1_000_000)
"""


def test_a_writer_that_is_killed_half_way_leaves_a_whole_file(tmp_path: Path) -> None:
    file = tmp_path / "file"
    chance = random.Random(9)
    for _ in range(5):
        file.unlink(missing_ok=True)
        writer = subprocess.Popen([sys.executable, "-c", _WRITER, str(file)])
        while not file.exists():
            time.sleep(0.01)
        time.sleep(chance.uniform(0, 0.1))
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        assert file.read_text() in {"a" * 1_000_000, "b" * 1_000_000}


def test_the_commands_of_the_page_end_well(tmp_path: Path) -> None:
    done = run("set -e\n" + commands("weights.md"), tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(nginx.NGINX.setup) and done.stdout.endswith(nginx.text(0.25))
