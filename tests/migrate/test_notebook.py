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


def test_a_run_opens_with_its_verdict_and_its_rules(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/m.db"
    run_id = record(url, wrong())
    found = migrate.open_run(url)
    assert found.verdict == "ROLLBACK" and found.document.run["id"] == run_id
    assert repr(found) == f"<run {run_id}: ROLLBACK (disagreement)>"
    broken = found.rules.set_index("rule").loc["disagreement"]
    assert (
        broken["verdict"] == "ROLLBACK"
        and broken["estimate"] == pytest.approx(0.25)
        and broken["unit"] == "share"
    )
    assert found.rules["forecast_pairs"].dtype == "Int64" and found.rules["applies"].dtype == "boolean"
    frames = migrate.frames(url)
    assert found.pairs.equals(frames.pairs) and found.findings.equals(frames.findings)
    assert found.pairs is found.pairs  # compared once


def test_a_notebook_shows_the_verdict_and_nothing_acts(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/m.db"
    record(url, [exchange(0, "yes", "<script>alert(1)</script>")])
    shown = migrate.open_run(url)._repr_html_()
    assert shown.startswith("<h3>\u25a0 HOLD ") and "<td>Errors</td>" in shown
    assert "<script" not in shown and "style" not in shown


def test_a_run_that_goes_on_is_judged_as_it_stands(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/m.db"
    record(url, [exchange(0)], ended=False)
    found = migrate.open_run(url)
    assert found.verdict == "HOLD" and found.document.run["ended_at"] is None
    with pytest.raises(StoreError, match="holds no run 'x'"):
        migrate.open_run(url, "x")
