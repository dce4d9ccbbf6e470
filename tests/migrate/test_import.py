"""``migrate import`` and ``migrate export`` on real files and stores."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

from migrate.cli import main
from migrate.store import Store
from replay.exchange import Exchange, Outcome
from reports.compare import compare
from reports.judgement import Severity
from tests.replay.saved import FIXTURES

SAMPLES = FIXTURES / "formats"
LITELLM = SAMPLES / "litellm-payload" / "batch_08-15-40_0000.jsonl"


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MIGRATE_CONFIG", raising=False)


def run(*words: object) -> int:
    try:
        main([str(word) for word in words])
    except SystemExit as done:
        return int(done.code or 0)
    return 0


def stored(url: str = "sqlite:///migrate.db") -> list[Exchange]:
    with Store.open(url) as store:
        return list(store.exchanges(store.run().id))


def test_requests_and_answers_of_a_log_are_captured(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("import", LITELLM) == 0
    err = capsys.readouterr().err
    assert "litellm-payload: 6 records; 5 requests added" in err and "skipped request-redacted: 1" in err
    exchanges = stored()
    assert len(exchanges) == 5
    first, failed = exchanges[0], exchanges[3]
    assert (
        first.request.path == "/v1/chat/completions"
        and json.loads(first.request.body)["model"] == "oss-chat-8b"
    )
    assert first.baseline is not None and first.baseline.answer is not None
    assert first.baseline.answer.first.text.startswith("At 2000 m") and first.baseline.timing.e2e_s == 1.2
    assert failed.baseline is not None and failed.baseline.outcome is Outcome.HTTP_ERROR
    assert failed.baseline.failure is not None and failed.baseline.failure.error_class.value == "rate_limited"


def test_the_same_file_again_adds_nothing_and_a_log_that_grew_only_what_is_new(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = LITELLM.read_bytes().splitlines(keepends=True)
    log = tmp_path / "log.jsonl"
    log.write_bytes(b"".join(lines[:2]))
    run("import", log)
    run("import", log)
    assert "0 requests added" in capsys.readouterr().err
    log.write_bytes(b"".join(lines))
    run("import", log)
    err = capsys.readouterr().err
    assert "3 requests added" in err and "2 were there already" in err
    assert len(stored()) == 5


def test_standard_input_and_quiet(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Input:
        buffer = io.BufferedReader(io.BytesIO((SAMPLES / "goreplay" / "requests.gor.gz").read_bytes()))  # type: ignore[arg-type]

    monkeypatch.setattr(sys, "stdin", Input)
    assert run("import", "-", "--quiet") == 0
    assert capsys.readouterr().err == "" and len(stored()) == 5


def test_a_stream_of_a_log_is_read_like_one_that_passed() -> None:
    run("import", SAMPLES / "har" / "session.har", "--quiet")
    (streamed,) = [
        e for e in stored() if e.baseline and e.baseline.answer and "sink" in e.baseline.answer.first.text
    ]
    assert streamed.baseline is not None and streamed.baseline.timing.content_times == ()
    assert streamed.baseline.timing.ttft_s is None and streamed.baseline.timing.e2e_s == 1.25
    assert compare(streamed.request, streamed.baseline, streamed.baseline).severity is Severity.EQUAL


def test_secrets_are_replaced_before_anything_is_stored(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text(
        json.dumps(
            {
                "model": "m",
                "messages": [{"role": "user", "content": "mail ada@example.org sk-live-0123456789abcdef"}],
            }
        )
    )
    run("import", log, "--quiet")
    (exchange,) = stored()
    assert b"[email:" in exchange.request.body and b"[key:" in exchange.request.body
    data = b"".join(path.read_bytes() for path in tmp_path.glob("migrate.db*"))
    assert b"ada@example" not in data and b"sk-live" not in data


def test_a_record_without_a_model_needs_one(capsys: pytest.CaptureFixture[str]) -> None:
    bodies = SAMPLES / "chat-jsonl" / "bodies.jsonl"
    run("import", bodies)
    assert "skipped model-missing: 1" in capsys.readouterr().err
    assert run("import", bodies, "--model", "harbor-7b", "--store", "sqlite:///other.db") == 0
    assert any(json.loads(e.request.body)["model"] == "harbor-7b" for e in stored("sqlite:///other.db"))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("none.jsonl",), "none.jsonl: cannot be read: No such file"),
        ((SAMPLES / "otlp" / "expected.json",), "in no format that is known"),
        ((LITELLM, SAMPLES / "har" / "session.har"), "different formats (har, litellm-payload)"),
        ((LITELLM, "--strict"), "record 6: request-redacted"),
    ],
)
def test_wrong_use_is_one_line_and_exit_code_2(
    words: tuple[object, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("import", *words, "--quiet") == 2
    err = capsys.readouterr().err
    assert said in err and err.count("\n") == 1


def test_times_without_requests_are_counted_and_not_invented(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("import", SAMPLES / "timing-traces" / "azure.csv") == 0
    assert "skipped times-only: 2" in capsys.readouterr().err


@pytest.mark.parametrize("form", ["jsonl", "openai-batch"])
def test_what_is_exported_can_be_imported_again(
    form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run("import", LITELLM, "--quiet")
    assert run("export", "--format", form, "--output", "out.jsonl") == 0
    assert "5 requests of run" in capsys.readouterr().err
    assert run("import", "out.jsonl", "--store", "sqlite:///again.db", "--quiet") == 0
    before, after = stored(), stored("sqlite:///again.db")
    assert [json.loads(e.request.body) for e in before] == [json.loads(e.request.body) for e in after]
    if form == "jsonl":
        texts = [
            [
                e.baseline.answer.first.text
                for e in side
                if e.baseline and e.baseline.answer and not e.baseline.failure
            ]
            for side in (before, after)
        ]
        assert texts[0] == texts[1] and len(texts[0]) == 4


def test_export_without_a_run_says_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    Store.open("sqlite:///migrate.db", create=True).close()
    assert run("export") == 2
    assert "holds no run yet" in capsys.readouterr().err
