"""``migrate pairs`` and ``migrate show`` on real stores."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from migrate.cli import main
from replay.exchange import Exchange
from tests.migrate.test_report import record
from tests.reports.builders import calling, exchange, wrong


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/m.db"


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MIGRATE_CONFIG", raising=False)


def run(*words: str) -> int:
    with pytest.raises(SystemExit) as done:
        main(list(words))
    assert isinstance(done.value.code, int)
    return done.value.code


def mixed() -> list[Exchange]:
    """Five of each: alike, another tool argument, an error of the candidate, much slower."""
    return [
        *(exchange(n) for n in range(5)),
        *(calling(n, '{"guests": 2}', '{"guests": 20}') for n in range(5, 10)),
        *(exchange(n, failed="out of memory") for n in range(10, 15)),
        *(exchange(n, slower_s=1.0 + n / 100) for n in range(15, 20)),
    ]


def listed(capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    assert run("pairs", *words, "--format", "json") == 0
    document = json.loads(capsys.readouterr().out)
    assert document["schema"]["name"] == "llm-migrate.pairs" and document["complete"]
    return [pair["id"] for pair in document["pairs"]]


def names(*numbers: int) -> list[str]:
    return [f"r{number:05d}" for number in numbers]


def test_each_option_narrows_the_list(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    record(url, mixed())
    store = ("--store", url)
    assert listed(capsys, *store, "--finding", "tools.*") == names(*range(5, 10))
    assert listed(capsys, *store, "--finding", "tools.arguments") == names(*range(5, 10))
    assert listed(capsys, *store, "--outcome", "http_error") == names(*range(10, 15))
    assert listed(capsys, *store, "--slower", "500ms") == names(19, 18, 17, 16, 15)  # the slowest first
    assert listed(capsys, *store, "--slower", "500ms", "--finding", "tools.*") == []
    assert set(names(*range(5, 10))) <= set(listed(capsys, *store, "--severity", "block"))


def test_every_pair_is_of_one_severity(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    record(url, mixed())
    found = [
        name
        for severity in ("EQUAL", "NOTE", "WARN", "BLOCK", "INVALID")
        for name in listed(capsys, "--store", url, "--severity", severity)
    ]
    assert sorted(found) == names(*range(20)) == sorted(listed(capsys, "--store", url))


def test_the_gravest_come_first_and_the_limit_is_told(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    record(url, mixed())
    assert run("pairs", "--store", url, "--limit", "3") == 0
    out, err = capsys.readouterr()
    assert [line.split()[0] for line in out.splitlines() if not line.startswith(" ")] == ["BLOCK"] * 3
    assert err == "migrate: the first 3; more fit (--limit)\n"
    assert all(len(line) <= 100 for line in out.splitlines())


def test_where_nothing_fits_the_findings_that_there_are_are_named(
    url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    record(url, mixed())
    assert run("pairs", "--store", url, "--finding", "tool.*") == 0
    out, err = capsys.readouterr()
    assert out == "" and "none of 20 pairs fits" in err and "tools.arguments" in err


def test_csv_has_the_columns_of_the_frames(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    record(url, mixed())
    assert run("pairs", "--store", url, "--finding", "tools.*", "--format", "csv") == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [row["id"] for row in rows] == names(*range(5, 10))
    assert rows[0]["severity"] == "BLOCK" and rows[0]["differs"] == "True" and rows[0]["similarity"] == ""
    assert float(rows[0]["candidate_e2e_s"]) > 0 and rows[0]["label_route"] == "/v1/chat/completions"


def test_wrong_words_are_one_line(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    record(url, [exchange(0)])
    for words in (("--slower", "soon"), ("--severity", "BAD"), ("--limit", "0"), ("--outcome", "fine")):
        assert run("pairs", "--store", url, *words) == 2
    assert "soon" in capsys.readouterr().err


@pytest.mark.parametrize("width", [80, 120])
def test_a_pair_side_by_side(
    url: str, width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    record(url, mixed())
    assert run("show", "r00005", "--store", url) == 0
    out = capsys.readouterr().out
    assert out.startswith(" BLOCK ") and all(len(line) <= width for line in out.splitlines())
    assert "tools.arguments: " in out and '{"guests": [-2-]}' in out and '{"guests": {+20+}}' in out
    assert "~ " in out and "TTFT" in out and "candidate" in out and "\x1b" not in out


def test_a_pair_for_a_program(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    run_id = record(url, wrong(4))
    assert run("show", "r00000", "--store", url, "--format", "json") == 0
    pair = json.loads(capsys.readouterr().out)
    assert pair["schema"] == {"name": "llm-migrate.pair", "version": 1} and pair["run"] == run_id
    assert pair["request"]["body"]["messages"][0]["role"] == "user"
    assert pair["candidate"]["timing"]["content_times_s"] and pair["repeat"]["status"] == 200


def test_an_arm_that_was_never_asked(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    from dataclasses import replace

    record(url, [replace(exchange(0), candidate=None, repeat=None)])
    assert run("show", "r00000", "--store", url) == 0
    assert "CANDIDATE: not asked" in capsys.readouterr().out
    assert run("show", "r00000", "--store", url, "--format", "json") == 0
    pair = json.loads(capsys.readouterr().out)
    assert pair["candidate"] is None and pair["severity"] == "INVALID" and pair["differs"] is None


def test_an_unknown_pair_names_the_closest_or_the_run_that_has_it(
    url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    first = record(url, [exchange(n) for n in range(30)])
    record(url, [exchange(n, identity=f"later{n}") for n in range(3)], at=1_800_000_000.0)
    assert run("show", "later", "--store", url) == 2
    assert "did you mean later" in capsys.readouterr().err
    assert run("show", "r00007", "--store", url) == 2
    assert f"another run does: --run {first}" in capsys.readouterr().err
    assert run("show", "r00007", "--store", url, "--run", first) == 0
    capsys.readouterr()
    assert run("show", "\x1b[2J%'\";--", "--store", url) == 2
    err = capsys.readouterr().err
    assert "migrate pairs lists some" in err and "\x1b" not in err
