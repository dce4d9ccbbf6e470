"""``migrate report`` for pipelines: JUnit XML, CSV, Parquet, and annotations of GitHub Actions."""

from __future__ import annotations

from pathlib import Path
from xml.etree.ElementTree import fromstring

import pandas as pd
import pytest

import migrate
from migrate import gathering
from migrate.cli import main
from tests.migrate.test_report import record, run
from tests.reports.builders import alike, calling, exchange, wrong
from tests.reports.made import REHEARSAL


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/m.db"


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MIGRATE_CONFIG", raising=False)


def test_both_tables_hold_what_the_frames_hold(
    url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(gathering, "_PAIRS", 7)  # so that tables are written in several parts
    record(url, [*wrong(30), *(calling(n, '{"a": 1}', '{"a": 2}') for n in range(100, 103))])
    assert run("--store", url, "--format", "csv,parquet", "--output", str(tmp_path / "out.csv")) == 4
    assert capsys.readouterr().out == ""
    frames = migrate.frames(url)
    for name, frame in zip(("pairs", "findings"), frames, strict=True):
        parquet = pd.read_parquet(tmp_path / f"out.{name}.parquet")
        pd.testing.assert_frame_equal(parquet[list(frame.columns)], frame, check_dtype=False)
        table = pd.read_csv(tmp_path / f"out.{name}.csv", keep_default_na=False)
        assert len(table) == len(frame) and list(table.columns) == list(parquet.columns)
        assert table["id"].tolist() == frame["id"].tolist()
        assert table["severity"].tolist() == frame["severity"].tolist()
    assert not list(tmp_path.glob(".*.part"))


def test_a_run_without_pairs_has_tables_with_their_columns(url: str, tmp_path: Path) -> None:
    run_id = record(url, [])
    assert run("--store", url, "--format", "csv,parquet") == 4
    assert pd.read_csv(f"report-{run_id}.pairs.csv").columns[0] == "id"
    found = pd.read_parquet(tmp_path / f"report-{run_id}.findings.parquet")
    assert len(found) == 0 and "category" in found.columns


def test_tables_stand_beside_other_formats(
    url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record(url, wrong(20))
    run("--store", url, "--format", "junit,csv", "--output", str(tmp_path / "r.xml"))
    assert fromstring((tmp_path / "r.xml").read_text()).tag == "testsuites"
    assert (tmp_path / "r.pairs.csv").exists()
    capsys.readouterr()
    run("--store", url, "--format", "junit")
    assert fromstring(capsys.readouterr().out.encode()).tag == "testsuites"


def test_what_cannot_be_written_is_one_line(
    url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record(url, [exchange(0)])
    (tmp_path / "x.pairs.csv").mkdir()
    assert run("--store", url, "--format", "csv", "--output", str(tmp_path / "x.csv")) == 2
    assert "cannot be written" in capsys.readouterr().err
    assert not list(tmp_path.glob(".*.part")) and not (tmp_path / "x.findings.csv").exists()


def test_a_missing_extra_is_said_before_any_work(
    url: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("migrate.tables.find_spec", lambda name: None)  # as on a machine without the extras
    assert run("--store", url, "--format", "parquet") == 2
    assert "llm-migrate[pandas,parquet]" in capsys.readouterr().err


def test_annotations_are_for_github_alone(
    url: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    record(url, wrong(400))
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    run("--store", url, "--format", "json")
    assert capsys.readouterr().err == ""
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    run("--store", url, "--format", "json")
    out, err = capsys.readouterr()
    assert err.startswith("::error title=") and "::" not in out[:2]


def test_a_go_that_has_expired_is_no_success_in_a_pipeline(
    url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    record(url, alike(), policy=REHEARSAL.model_copy(update={"valid_for": 86_400.0}))
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    assert run("--store", url, "--format", "junit") == 4
    out, err = capsys.readouterr()
    (verdict,) = [one for one in fromstring(out.encode()).iter("testcase") if one.attrib["name"] == "verdict"]
    assert verdict[0].tag == "error" and verdict[0].attrib["type"] == "HOLD expired"
    assert err.startswith("::warning title=migrate report%3A HOLD expired::this GO expired at ")


def test_what_a_model_said_is_no_command_of_a_runner(
    url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    said = f"::stop-commands::x\n{'::error::y ' * 30}\n##[add-mask]z"
    record(url, [exchange(n, "Nine.", said, prompt=said, failed=said if n % 2 else None) for n in range(6)])
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    for words in (
        ["report"],
        ["report", "--explain", "errors"],
        ["pairs"],
        ["show", "r00000"],
        ["show", "r00001"],
    ):
        with pytest.raises(SystemExit):
            main([*words, "--store", url])
        out = capsys.readouterr().out
        assert out and not [
            line for line in out.splitlines() if line.strip().startswith("::") or "##[" in line
        ]
