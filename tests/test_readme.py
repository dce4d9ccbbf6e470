"""The README is true: its commands exist, its rehearsal by hand ends as it says, its links lead somewhere."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from migrate.cli import COMMANDS
from tests.shell import free_port, run

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks() -> list[str]:
    return re.findall(r"```sh\n(.*?)```", README, flags=re.DOTALL)


def test_every_command_named_exists() -> None:
    named = set(re.findall(r"\bmigrate ([a-z]+)", README)) - {"simulate"}
    assert named and named <= set(COMMANDS)


def test_every_make_target_named_exists() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in set(re.findall(r"\bmake ([a-z-]+)", README)):
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target


def test_every_scenario_named_exists() -> None:
    from migrate.demo.scenarios import SCENARIOS

    for scenario in SCENARIOS[1:]:
        assert scenario.name in README


def test_every_link_to_a_file_leads_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", README):
        assert (ROOT / target).exists(), target


@pytest.mark.timeout(90)
def test_the_rehearsal_by_hand_ends_in_hold(tmp_path: Path) -> None:
    (script,) = (block for block in blocks() if "migrate simulate" in block)
    ports = {port: free_port() for port in ("8000", "9000", "8080", "8081")}
    for written, free in ports.items():
        script = script.replace(written, free)
    moved = f"sed -i 's/:8080/:{ports['8080']}/; s/:8081/:{ports['8081']}/' try.yaml"
    script = script.replace(
        "migrate check", f"{moved}\nmigrate check"
    )  # the written file has the usual ports
    script = script.replace("migrate ", f"{sys.executable} -m migrate ")
    done = run(script, tmp_path)
    assert done.returncode == 4, done.stdout + done.stderr
    assert '"choices"' in done.stdout and "HOLD" in done.stdout


def test_the_python_example_records_its_call(tmp_path: Path) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    port = free_port()
    (tmp_path / "example.py").write_text(example, encoding="utf-8")
    script = (
        f"{sys.executable} -m migrate simulate --port {port} 2>simulator.txt &\n"
        "until grep -qs listening simulator.txt; do sleep 0.1; done\n"
        f"export OPENAI_BASE_URL=http://127.0.0.1:{port}/v1 OPENAI_API_KEY=none\n"
        f"{sys.executable} example.py && {sys.executable} -m migrate runs --store sqlite:///migrate.db"
    )
    done = run(script, tmp_path)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    assert re.search(r"capture +ended", done.stdout), done.stdout
