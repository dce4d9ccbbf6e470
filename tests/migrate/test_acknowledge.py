"""``migrate acknowledge`` on real stores: who took note of a ROLLBACK, what every report says of it, what is refused."""

from __future__ import annotations

import json
import os
import pwd
import time
from pathlib import Path

import pytest

from migrate.cli import main
from migrate.store import Store
from reports.acknowledgement import Acknowledgement
from tests.migrate.test_report import record
from tests.reports.builders import alike, wrong
from tests.reports.made import START

ME = pwd.getpwuid(os.geteuid()).pw_name


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MIGRATE_CONFIG", raising=False)
    return f"sqlite:///{tmp_path}/m.db"


def migrate(*words: str) -> int:
    with pytest.raises(SystemExit) as done:
        main([*words])
    assert isinstance(done.value.code, int)
    return done.value.code


def notes(url: str) -> tuple[Acknowledgement, ...]:
    with Store.open(url) as store:
        return store.acknowledgements(store.run().id)


def test_keeps_who_when_why_and_which(
    url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    name = record(url, wrong())
    monkeypatch.setenv("LOGNAME", "somebody-else")
    before = time.time()
    assert migrate("acknowledge", "--store", url, "the tokenizer  was\nold; it is replaced") == 0
    out, err = capsys.readouterr()
    assert out.startswith(f"acknowledged ROLLBACK (disagreement) of run {name} as {ME} at 20")
    assert err == "next: record a new run; this one has ended and gets no new evidence\n"
    (note,) = notes(url)
    assert (note.who, note.why, note.code) == (ME, "the tokenizer was old; it is replaced", "disagreement")
    assert before <= note.at <= time.time()


def test_every_format_shows_it(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    record(url, wrong())
    migrate("acknowledge", "--store", url, "old <b>tokenizer</b>")
    capsys.readouterr()
    for form in ("terminal", "markdown", "html"):
        migrate("report", "--store", url, "--format", form)
        text = " ".join(capsys.readouterr().out.split())
        assert f"acknowledged by {ME}" in text and "make no ROLLBACK any more" in text
        assert form == "terminal" or "old <b>" not in text
    migrate("report", "--store", url, "--format", "json")
    (note,) = json.loads(capsys.readouterr().out)["acknowledgements"]
    assert note["at"].endswith("Z")
    assert (note["who"], note["why"], note["code"]) == (ME, "old <b>tokenizer</b>", "disagreement")


def test_then_it_is_none_any_more_and_there_is_nothing_left_to_acknowledge(
    url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    record(url, wrong())
    assert migrate("report", "--store", url) == 3
    assert migrate("acknowledge", "--store", url, "seen") == 0
    assert migrate("report", "--store", url) == 4
    capsys.readouterr()
    assert migrate("report", "--store", url, "--format", "json") == 4
    document = json.loads(capsys.readouterr().out)
    assert (document["verdict"], document["code"]) == ("HOLD", "acknowledged")
    assert document["reason"] == "The ROLLBACK (disagreement) was acknowledged; its pairs still keep GO away."
    assert migrate("acknowledge", "--store", url, "once more") == 2 and len(notes(url)) == 1


def test_pairs_since_an_acknowledgement_make_a_rollback_as_ever(
    url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    name = record(url, wrong())
    with Store.open(url) as store:
        store.acknowledge(name, Acknowledgement(at=START - 1, who="ana", why="early", code="errors"))
    assert migrate("report", "--store", url) == 3
    assert "disagreement" in capsys.readouterr().out.splitlines()[0]
    assert migrate("acknowledge", "--store", url, "again") == 0
    assert [note.who for note in notes(url)] == ["ana", ME]


def test_a_secret_in_the_reason_is_not_kept(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    record(url, wrong())
    key = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789"
    Path("migrate.yaml").write_text(
        f"baseline: {{kind: vllm, url: 'http://baseline:8000'}}\nstore: {{url: '{url}'}}\nredact: {{patterns: ['INC-[0-9]+']}}\n"
    )
    assert migrate("acknowledge", f"INC-4711: wrong key {key}, ask ada@example.com") == 0
    (note,) = notes(url)
    assert note.why.startswith("[own:") and ": wrong key [key:" in note.why and "ask [email:" in note.why
    stored = b"".join(path.read_bytes() for path in Path.cwd().glob("m.db*"))
    assert key.encode() not in stored and b"ada@" not in stored and b"INC-4711" not in stored


@pytest.mark.parametrize(
    ("exchanges", "verdict"),
    [(alike(), "GO (go)"), (alike(5), "HOLD (not_recorded)"), ([], "HOLD (mirror_sent_nothing)")],
)
def test_where_there_is_no_rollback_there_is_nothing_to_acknowledge(
    url: str, exchanges: list[object], verdict: str, capsys: pytest.CaptureFixture[str]
) -> None:
    name = record(url, exchanges)  # type: ignore[arg-type]
    assert migrate("acknowledge", "--store", url, "why not") == 2
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1
    assert f"run {name} is {verdict}, there is no ROLLBACK to acknowledge; see migrate report" in err
    assert notes(url) == ()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("",), "WHY is empty"),
        ((" \n\t ",), "WHY is empty"),
        (("x" * 1_001,), "WHY has 1,001 characters, at most 1,000"),
        ((), "Missing argument 'WHY'"),
        (("why", "--run", "none"), "holds no run 'none'"),
        (("why", "--store", "sqlite:///other.db"), "does not exist"),
    ],
)
def test_wrong_use_is_said_and_keeps_nothing(
    url: str, words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    record(url, wrong())
    assert migrate("acknowledge", "--store", url, *words) == 2
    out, err = capsys.readouterr()
    assert out == "" and said in err and notes(url) == ()


def test_what_would_act_on_a_terminal_is_not_kept(url: str) -> None:
    record(url, wrong())
    assert migrate("acknowledge", "--store", url, "a\x1b[31mb\x00c\udcff") == 0
    assert notes(url)[0].why == "a\ufffd[31mb\ufffdc\ufffd"


def test_a_store_that_cannot_be_written_is_one_line(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    record(url, wrong())
    with Store.open(url) as store, store.engine.begin() as connection:
        connection.exec_driver_sql(
            "create trigger full before insert on acknowledgements begin select raise(abort, 'the disk is full'); end"
        )
    assert migrate("acknowledge", "--store", url, "why") == 2
    assert "cannot be written: the disk is full" in capsys.readouterr().err
