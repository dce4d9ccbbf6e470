"""``migrate check`` as people run it, on a healthy baseline and the candidate of a case."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any

import orjson
import yaml
from click.testing import CliRunner

from migrate.commands.check import check
from replay.simulator.server import serving
from replay.simulator.settings import Settings
from tests.check.servers import MODEL


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What the command did."""

    code: int
    took_s: float
    output: str

    @property
    def rows(self) -> dict[str, dict[str, Any]]:
        """By check, as the JSON form has them."""
        return {row["check"]: row for row in orjson.loads(self.output)["checks"]}

    def said(self, name: str) -> str:
        """All words of one row."""
        row = self.rows[name]
        details = (side["detail"] for side in row["backends"].values())
        return " · ".join((*details, *row["changes"]))


async def checked(folder: Path, candidate: dict[str, Any], *options: str, form: str = "json") -> Checked:
    """The command's end; ``candidate``: its section of the configuration."""
    async with serving(Settings(models=(MODEL,))) as baseline:
        config = {"baseline": {"kind": "vllm", "url": baseline, "model": MODEL}, "candidate": candidate}
        (folder / "migrate.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
        arguments = ["--config", str(folder / "migrate.yaml"), "--format", form, *options]
        start = monotonic()
        done = await asyncio.to_thread(CliRunner().invoke, check, arguments, standalone_mode=False)
        took = monotonic() - start
    assert done.exception is None, done.output
    return Checked(code=done.return_value, took_s=took, output=done.stdout)
