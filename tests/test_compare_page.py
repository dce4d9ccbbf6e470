"""docs/compare.md is true: its commands and examples run as written, its options, keys and columns exist."""

from __future__ import annotations

import asyncio
import doctest
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from migrate.commands.compare import compare
from migrate.config import parse
from reports.frames import FINDINGS, PAIRS

PAGE = (Path(__file__).parents[1] / "docs" / "compare.md").read_text(encoding="utf-8")
pytestmark = pytest.mark.timeout(240)  # loading a real model on a busy machine


def blocks(kind: str) -> list[str]:
    found: list[str] = re.findall(rf"```{kind}\n(.*?)```", PAGE, flags=re.DOTALL)
    return found


def test_every_option_named_exists() -> None:
    options = {option for param in compare.params for option in (*param.opts, *param.secondary_opts)}
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", PAGE)) <= options


async def test_the_commands_run_as_written(tmp_path: Path) -> None:
    script = next(block for block in blocks("sh") if "pairs.jsonl" in block)
    done = await asyncio.to_thread(
        subprocess.run,
        ["bash", "-ec", script.replace("migrate compare", f"{sys.executable} -m migrate compare")],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [json.loads(line) for line in (tmp_path / "findings.jsonl").read_text().splitlines()]
    severities = {line["id"]: line["severity"] for line in lines}
    assert severities == {"refund": "BLOCK", "fee": "EQUAL", "tide": "NOTE"}
    assert json.loads(done.stdout.splitlines()[-1]) == lines[0]
    assert all(line.keys() - {"repeat"} == {"id", "severity", "findings", "similarity"} for line in lines)
    assert "Traceback" not in done.stderr


def test_the_examples_say_what_they_show() -> None:
    text = "\n".join(blocks("python"))
    example = doctest.DocTestParser().get_doctest(text, {}, "docs/compare.md", None, 0)
    assert len(example.examples) >= 8
    assert doctest.DocTestRunner(verbose=False).run(example).failed == 0


def test_the_configuration_is_read() -> None:
    section = next(block for block in blocks("yaml") if block.startswith("judge:"))
    found = parse("baseline: {kind: vllm, url: 'http://127.0.0.1:1'}\n" + section).judge
    assert found is not None and found.max_tokens == 1_000_000
    shown = set(re.findall(r"^  (?:# )?(\w+):", section, flags=re.MULTILINE))
    assert shown == set(type(found).model_fields)


def test_the_columns_and_their_dtypes_are_those_of_the_frames() -> None:
    rows = re.findall(r"^\| (`[a-z0-9_`, ]+`) \| (\S.*?) \|$", PAGE, flags=re.MULTILINE)
    told = {name: dtype for names, dtype in rows for name in re.findall(r"`(\w+)`", names)}
    for arm in ("candidate", "repeat"):
        told |= {
            name.replace("baseline", arm): dtype
            for name, dtype in told.items()
            if name.startswith("baseline_")
        }
    assert told == {name: dtype for name, (dtype, _) in PAIRS.items()}
    (sentence,) = re.findall(r"All columns of `findings` are strings: (.*?)\.\n", PAGE, flags=re.DOTALL)
    assert re.findall(r"`(\w+)`", sentence) == list(FINDINGS)
