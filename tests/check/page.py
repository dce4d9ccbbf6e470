"""The table of docs/backends.md, read back: what each backend does with what it is asked, and against what that was tested."""

from __future__ import annotations

import re
from pathlib import Path

from migrate.preflight import Line

PAGE = (Path(__file__).parents[2] / "docs" / "backends.md").read_text(encoding="utf-8")
COLUMNS = ("vllm", "tensorrt-llm", "relay")
_CELL = re.compile(r"(.+?) \((real|dialect|not run)\)")


def cells(kind: str, mark: str) -> dict[str, str]:
    """By check, what the page says of a kind of backend and marks as tested so."""
    found = {}
    for check, *row in re.findall(r"^\| `([a-z ]+)` \| (.+) \| (.+) \| (.+) \|$", PAGE, flags=re.MULTILINE):
        told = _CELL.fullmatch(row[COLUMNS.index(kind)])
        assert told is not None, f"{check}: {row}"
        if told[2] == mark:
            found[check] = told[1]
    return found


def shown(line: Line) -> str:
    """A line as the page would have it."""
    if line.check == "context":
        return "not stated" if line.value is None else "stated"
    return line.result.value if line.value is None else str(line.value)
