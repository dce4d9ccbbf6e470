"""docs/canary.md is true: its configuration is one, its defaults are the defaults, its rehearsal ends rolled back."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from migrate.canary.section import CanarySection
from migrate.config import parse
from tests.shell import run
from tests.test_docs import commands, moved

PAGE = (Path(__file__).parents[1] / "docs" / "canary.md").read_text(encoding="utf-8")


def test_the_configuration_is_one() -> None:
    (text,) = re.findall(r"```yaml\n(.*?)```", PAGE, flags=re.DOTALL)
    section = parse("baseline: {kind: vllm, url: 'http://127.0.0.1:1'}\n" + text).canary
    assert [step.percent for step in section.steps] == [0.01, 0.05, 0.25, 0.5, 1.0]
    default = CanarySection()
    assert (section.cool_down, section.failover, section.manual) == (
        default.cool_down,
        default.failover,
        default.manual,
    )


def test_the_numbers_that_it_names_are_the_defaults() -> None:
    default = CanarySection()
    halt = default.halt
    assert (halt.in_a_row, halt.errors, halt.timeouts, halt.requests, halt.window) == (5, 0.05, 0.01, 200, 60)
    assert (halt.health, halt.evidence, default.lost_store) == (3, 60, 60)
    assert [step.percent for step in default.steps] == [0.01, 0.05, 0.25, 0.5, 1.0]


@pytest.mark.timeout(120)
def test_the_rehearsal_ends_rolled_back(tmp_path: Path) -> None:
    done = run("set -e\n" + moved(commands("canary.md")), tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert '"choices"' in done.stdout and "phase   rolled back" in done.stdout
    actions = re.findall(r"^ +\d+ .* UTC  (\w+)", done.stdout, flags=re.MULTILINE)
    assert actions == ["start", "set", "rollback"]
