"""docs/replay.md is true: its options exist, its commands run as written, its numbers are the code's."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from migrate.commands.replay import replay
from migrate.replaying.prepare import _OUTPUT
from replay.simulator.server import serving
from replay.simulator.settings import Settings

PAGE = (Path(__file__).parents[1] / "docs" / "replay.md").read_text(encoding="utf-8")


def test_every_option_named_exists() -> None:
    options = {option for param in replay.params for option in param.opts}
    assert set(re.findall(r"--[a-z][a-z-]+", PAGE)) - {"--config"} <= options
    assert f"{_OUTPUT:,}" in PAGE


@pytest.mark.timeout(90)
async def test_the_commands_run_as_written(tmp_path: Path) -> None:
    import asyncio

    (script,) = re.findall(r"```sh\n(.*?)```", PAGE, flags=re.DOTALL)
    lines = [{"model": "m", "messages": [{"role": "user", "content": f"Ship {n}?"}]} for n in range(60)]
    (tmp_path / "requests.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    async with serving(Settings()) as one, serving(Settings(dialect="tensorrt-llm")) as other:
        (tmp_path / "try.yaml").write_text(
            f"baseline: {{kind: vllm, url: '{one}'}}\ncandidate: {{kind: tensorrt-llm, url: '{other}'}}\n"
        )
        command = script.replace("migrate ", f"{sys.executable} -m migrate ")
        done = await asyncio.to_thread(
            subprocess.run,
            ["bash", "-ec", command],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 4, done.stdout + done.stderr
    assert "HOLD" in done.stdout and "60 sent, 60 ok" in done.stderr
