"""docs/programs.md is true: its commands and its notebook run on a recorded run, and what they write is what it says."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pandas as pd
import pytest
from jsonschema import Draft202012Validator

from migrate.commands.schema import _known
from tests.migrate.test_report import record
from tests.reports.builders import exchange, wrong
from tests.shell import run

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "programs.md").read_text(encoding="utf-8")


def test_the_commands_and_what_they_write(tmp_path: Path) -> None:
    record(f"sqlite:///{tmp_path}/migrate.db", [*wrong(60), exchange(99, slower_s=1.0)])
    script = "".join(re.findall(r"```sh\n(.*?)```", PAGE, flags=re.DOTALL))
    assert len(re.findall(r"^migrate ", script, flags=re.MULTILINE)) == 7
    told = re.sub(r"^(migrate .*)$", r"\1; echo code $?", script, flags=re.MULTILINE)
    done = run(told, tmp_path)
    codes = re.findall(r"^code (\d)$", done.stdout, flags=re.MULTILINE)
    assert codes == ["3", "0", "0", "0", "3", "3", "0"], done.stdout + done.stderr
    for name in set(re.findall(r"`(verdict\.[\w.]+)`", PAGE)):
        assert (tmp_path / name).stat().st_size, name
    assert len(pd.read_parquet(tmp_path / "verdict.pairs.parquet")) == 61
    schema = json.loads((tmp_path / "report.schema.json").read_text())
    Draft202012Validator(schema).validate(json.loads((tmp_path / "report.json").read_text()))
    assert json.loads((tmp_path / "block.json").read_text())["pairs"]


def test_the_notebook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record(f"sqlite:///{tmp_path}/migrate.db", wrong(40))
    monkeypatch.chdir(tmp_path)
    (cell,) = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    shared: dict[str, object] = {}
    exec(cell, shared)
    assert "HOLD" in repr(shared["run"])


def test_every_schema_is_named() -> None:
    (named,) = re.findall(r"prints the JSON Schema \(2020-12\) of each: (.*?)\.", PAGE, flags=re.DOTALL)
    told = re.sub(r"\(.*?\)", "", named, flags=re.DOTALL)
    assert set(re.findall(r"[\w-]+", told)) - {"and", "the", "lines", "of"} == set(_known())
