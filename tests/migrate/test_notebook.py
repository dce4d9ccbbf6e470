"""``migrate.frames``: a run of a real store, in one call."""

from __future__ import annotations

from pathlib import Path

import pytest

import migrate
from migrate.errors import MigrateError, StoreError
from tests.migrate.test_report import record
from tests.reports.builders import exchange, wrong


def test_the_latest_run_or_a_named_one(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/m.db"
    first = record(url, [exchange(0)])
    record(url, wrong(20), at=1_800_000_000.0)
    pairs, findings = migrate.frames(url)
    assert len(pairs) == 20 and pairs["differs"].sum() == 5 and pairs["repeat_differs"].sum() == 0
    assert set(findings["id"]) <= set(pairs["id"]) and (findings["severity"] == "BLOCK").sum() >= 5
    assert migrate.frames(url, first).pairs["id"].tolist() == ["r00000"]


def test_what_is_not_there_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(StoreError, match="does not exist"):
        migrate.frames(f"sqlite:///{tmp_path}/none.db")
    url = f"sqlite:///{tmp_path}/m.db"
    record(url, [exchange(0)])
    with pytest.raises(StoreError, match="holds no run 'x'"):
        migrate.frames(url, "x")
    monkeypatch.setattr("migrate.notebook.find_spec", lambda name: None)  # as on a machine without the extra
    with pytest.raises(MigrateError, match=r"llm-migrate\[pandas\]"):
        migrate.frames(url)
