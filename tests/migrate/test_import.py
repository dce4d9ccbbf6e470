"""``migrate import`` and ``migrate export`` on real files and stores."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import os
import pty
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from migrate.cli import main
from migrate.config import Redact
from migrate.crew import uninterrupted
from migrate.imports import Importer, Part, Plan
from migrate.salt import key_file
from migrate.store import Store, Writer, codec
from replay.exchange import Exchange, Outcome, Request
from replay.formats import read_lines
from reports.compare import compare
from reports.judgement import Severity
from tests.migrate.samples import request
from tests.replay.saved import FIXTURES

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

SAMPLES = FIXTURES / "formats"
LITELLM = SAMPLES / "litellm-payload" / "batch_08-15-40_0000.jsonl"


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MIGRATE_CONFIG", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def run(*words: object) -> int:
    try:
        main([str(word) for word in words])
    except SystemExit as done:
        return int(done.code or 0)
    return 0


def store_requests(store: Store, started: str, *requests: Request) -> None:
    writer = Writer(store, started)
    assert all(writer.offer(one) for one in requests) and writer.close(10)


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


def test_the_same_records_under_another_name_or_compressed_add_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run("import", LITELLM, "--quiet")
    log = LITELLM.read_bytes()
    for name, data in (
        ("renamed.jsonl", log),
        ("log.jsonl.gz", gzip.compress(log)),
        ("log.jsonl.zst", zstd.compress(log)),
        ("spaced.jsonl", log.replace(b"\n", b"\n\n")),
    ):
        (tmp_path / name).write_bytes(data)
        run("import", name)
        assert "0 requests added" in capsys.readouterr().err, name
    run("import", "renamed.jsonl", "log.jsonl.gz", LITELLM)
    assert "0 requests added" in capsys.readouterr().err and len(stored()) == 5


def test_files_that_only_begin_alike_are_different_files(tmp_path: Path) -> None:
    """Two exports as CSV have their first line in common, two documents their first bracket."""
    for name, words in (("a", "one"), ("b", "two")):
        body = {"model": "m", "messages": [{"role": "user", "content": words}]}
        first = {"model": "m", "messages": [{"role": "user", "content": "the same"}]}
        (tmp_path / f"{name}.jsonl").write_text(f"{json.dumps(first)}\n{json.dumps(body)}\n")
    run("import", "a.jsonl", "b.jsonl", "--quiet")
    said = [json.loads(e.request.body)["messages"][0]["content"] for e in stored()]
    assert sorted(said) == ["one", "the same", "two"]


def test_an_answer_that_is_imported_later_joins_its_request() -> None:
    batch = SAMPLES / "openai-batch"
    run("import", batch / "input.jsonl", "--quiet")
    asked = len(stored())
    assert not any(e.baseline for e in stored())
    run("import", batch / "input.jsonl", batch / "output.jsonl", "--quiet")
    assert len(stored()) == asked and any(e.baseline for e in stored())


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


def archived(**more: object) -> str:
    """An HTTP archive of one call, with a secret wherever a header or an address may have one."""
    asked = {
        "method": "POST",
        "url": "https://ada:pa55w0rd-in-it@a.far/v1/chat/completions?api-version=3&code=secret-1&subscription-key=secret-2",
        "headers": [
            {"name": "Ocp-Apim-Subscription-Key", "value": "secret-3"},
            {"name": "X-Tenant", "value": "secret-4"},
            {"name": "User-Agent", "value": "harbour/1.0"},
        ],
        "postData": {
            "text": '{"model":"m","passphrase":"secret-5","password":99887766,"messages":[{"content":"hi"}]}'
        },
    }
    answered = {
        "status": 200,
        "headers": [
            {"name": "X-Session-Token", "value": "secret-6"},
            {"name": "X-RateLimit-Remaining-Tokens", "value": "9"},
        ],
        "content": {
            "mimeType": "application/json",
            "text": '{"choices":[{"index":0,"message":{"content":"yo"}}]}',
        },
    }
    return json.dumps({"log": {"entries": [{"request": asked | more, "response": answered}]}})


def test_no_secret_of_a_header_an_address_or_a_named_field_is_stored(tmp_path: Path) -> None:
    (tmp_path / "session.har").write_text(archived())
    assert run("import", "session.har", "--quiet") == 0
    (exchange,) = stored()
    assert exchange.request.path == "/v1/chat/completions?api-version=3"
    assert exchange.request.headers == (("User-Agent", "harbour/1.0"),)
    assert exchange.baseline is not None
    assert ("X-RateLimit-Remaining-Tokens", "9") in exchange.baseline.headers
    with Store.open("sqlite:///migrate.db") as store, store.engine.connect() as connection:
        rows = [
            str(row)
            for table in ("requests", "observations")
            for row in connection.exec_driver_sql(f"select * from {table}")
        ]
    for text in (*rows, exchange.request.body.decode()):
        assert "secret-" not in text and "pa55" not in text and "99887766" not in text


def places(value: Any, *path: Any) -> Iterator[tuple[Any, ...]]:
    """Where the texts of a JSON value are."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, one in inner:
        yield from places(one, *path, name)
    if isinstance(value, str):
        yield path


def with_text(value: Any, path: tuple[Any, ...], text: str) -> Any:
    copy = here = json.loads(json.dumps(value))
    for name in path[:-1]:
        here = here[name]
    here[path[-1]] = text
    return copy


CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"a": "b"}'}}
PAIR = {
    "request": {
        "model": "m",
        "user": "u",
        "metadata": {"k": "v"},
        "stop": ["x"],
        "messages": [
            {
                "role": "user",
                "name": "n",
                "content": [{"type": "image_url", "image_url": {"url": "http://x/y"}}],
            },
            {"role": "assistant", "content": None, "tool_calls": [CALL]},
            {"role": "tool", "tool_call_id": "c", "content": "r"},
        ],
        "tools": [
            {
                "type": "function",
                "function": {"name": "f", "description": "d", "parameters": {"default": "z"}},
            }
        ],
    },
    "response": {
        "id": "r",
        "model": "m",
        "system_fingerprint": "fp",
        "provider": "p",
        "odd": {"deep": ["v"]},
        "usage": {"prompt_tokens": 1, "completion_tokens": 2, "extra": "w"},
        "choices": [
            {
                "index": 0,
                "finish_reason": "stop",
                "message": {
                    "role": "assistant",
                    "content": "t",
                    "reasoning": "b",
                    "refusal": "n",
                    "tool_calls": [CALL],
                },
            }
        ],
    },
}
FAILED = PAIR | {
    "response": {"error": {"message": "m", "type": "t", "code": "c", "param": "p"}},
    "status": 401,
}
SECRET = "proj-a1B2c3D4e5F6g7H8i9J0"


@pytest.mark.parametrize(
    "text",
    [
        f"sk-{SECRET}",
        json.dumps({"x": {"k": f"sk-{SECRET}"}}),
        json.dumps(json.dumps({"k": json.dumps([f"sk-{SECRET}"])})),
        f"https://ada:{SECRET}@far/x?api_key={SECRET}&z",
    ],
)
def test_a_secret_is_replaced_wherever_a_pair_holds_it(text: str) -> None:
    work = Importer(Plan(form="chat-jsonl", run="r", rules=Redact(), salt=bytes(16)))
    for pair in (PAIR, FAILED):
        for path in places(pair):
            rows = work(Part(list(read_lines([(1, with_text(pair, path, text))], "chat-jsonl")))).rows
            held = b"".join(codec.unpack(body) for body in rows.bodies.values())
            assert SECRET not in f"{rows.requests} {rows.observations} {held!r}", path


def test_what_a_log_holds_cannot_command_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "session.har").write_text(archived(method="\x1b]0;gone\x07GET" + "!" * 9_000))
    assert run("import", "session.har") == 2
    err = capsys.readouterr().err
    assert (
        "record 1 skipped: not-a-model-call: \ufffd]0;gone\ufffdGET!!!" in err
        and "\x1b" not in err
        and len(err) < 600
    )


def test_a_failure_needs_no_body_to_be_the_baselines(tmp_path: Path) -> None:
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
    asked = {
        "method": "POST",
        "url": "http://a/v1/chat/completions",
        "headers": [],
        "postData": {"text": json.dumps(body)},
    }
    entries = [
        {"request": asked, "response": {"status": status, "headers": [], "content": {}}}
        for status in (429, 200)
    ]
    (tmp_path / "session.har").write_text(json.dumps({"log": {"entries": entries}}))
    assert run("import", "session.har", "--quiet") == 0
    limited, unknown = (exchange.baseline for exchange in stored())
    assert limited is not None and limited.failure is not None and unknown is None
    assert (limited.outcome, limited.status) == (Outcome.HTTP_ERROR, 429)
    assert limited.failure.error_class.value == "rate_limited" and limited.failure.envelope == ""


@pytest.mark.parametrize("status", [2**64 - 1, -7, 1e300, True, "200 OK", {}])
def test_a_status_that_is_none_is_unknown(
    status: object, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
    pair = {
        "request": body,
        "response": {"choices": [{"index": 0, "message": {"content": "yo"}}]},
        "status": status,
    }
    (tmp_path / "log.jsonl").write_text(f"{json.dumps(pair)}\n{json.dumps(body)}\n")
    assert run("import", "log.jsonl") == 0
    assert "2 requests added" in capsys.readouterr().err
    assert [e.baseline is not None and e.baseline.status == 200 for e in stored()] == [True, False]


def test_each_kind_of_line_that_is_no_json_is_called_what_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = '{"model": "m", "messages": [{"role": "user", "content": %s}]}'
    bad = [said % '"\\ud800"', said % "NaN", said % "1e999", said % ("[" * 9_000 + "]" * 9_000)]
    (tmp_path / "log.jsonl").write_bytes("\n".join([said % '"hi"', *bad]).encode() + b'\n{"a": "\xff"}')
    assert run("import", "log.jsonl") == 0
    told = [line.partition("malformed: ")[2] for line in capsys.readouterr().err.splitlines()[:5]]
    odd = "not JSON: NaN, an infinite number, or half of a surrogate pair"
    assert told == [odd, odd, odd, "nested too deeply", "not UTF-8"]


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
        (("empty.jsonl",), "there is nothing to import"),
        (("empty",), "there is nothing to import"),
        (("full",), "full/inner: cannot be read: Is a directory"),
        (("binary",), "in no format that is known"),
    ],
)
def test_wrong_use_is_one_line_and_exit_code_2(
    words: tuple[object, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for folder in ("empty", "full/inner"):
        Path(folder).mkdir(parents=True)
    Path("empty.jsonl").touch()
    Path("binary").write_bytes(bytes(range(256)) + b"a\rb,c\n")
    assert run("import", *words, "--quiet") == 2
    err = capsys.readouterr().err
    assert said in err and err.count("\n") == 1


def test_times_without_requests_are_counted_and_not_invented(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("import", SAMPLES / "timing-traces" / "azure.csv") == 2
    err = capsys.readouterr().err
    assert "skipped times-only: 2" in err and "no record could be used (times-only: 2, malformed: 2)" in err


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
        failed = [
            [e.baseline.status for e in side if e.baseline and e.baseline.failure] for side in (before, after)
        ]
        assert failed == [[429], [429]]


def test_what_is_no_json_object_is_left_out_of_an_export_and_counted(
    capsysbinary: pytest.CaptureFixture[bytes],
) -> None:
    with Store.open("sqlite:///migrate.db", create=True) as store:
        started = store.begin_run(kind="capture", config={}, policy={}, seed=1, at=1.0)
        bodies = (b"no JSON", b'"[nested:abcdefghijkl]"', b'{"model":"m"}')
        store_requests(store, started, *(request(f"r{n}", body=body) for n, body in enumerate(bodies)))
    assert run("export") == 0
    out, err = capsysbinary.readouterr()
    assert out.count(b"\n") == 1 and b"1 requests of run" in err and b"2 without a JSON object" in err


def test_an_export_may_be_read_in_part(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_bytes(lines(1_000))
    run("import", "log.jsonl", "--quiet")
    with subprocess.Popen(
        [sys.executable, "-m", "migrate", "export"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        assert process.stdout.readline().startswith(b'{"request":')
        process.stdout.close()
        err = process.stderr.read()
        assert process.wait(30) == 0 and b"Broken" not in err and b"Traceback" not in err


def test_an_export_that_cannot_be_written_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    run("import", LITELLM, "--quiet")
    assert run("export", "--output", "none/out.jsonl") == 2
    assert "--output none/out.jsonl: cannot be written: No such file" in capsys.readouterr().err


def test_export_without_a_run_says_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    Store.open("sqlite:///migrate.db", create=True).close()
    assert run("export") == 2
    assert "holds no run yet" in capsys.readouterr().err


def test_each_record_that_cannot_be_used_is_told_by_its_line_and_counted_by_its_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hi"}]})
    (tmp_path / "log.jsonl").write_text(
        "\n".join([good, "{", good, "[]", *["no JSON"] * 9, good.replace("hi", "***")])
    )
    assert run("import", "log.jsonl", "--format", "chat-jsonl") == 0
    err = capsys.readouterr().err
    assert "record 2 skipped: malformed" in err and "record 4 skipped: malformed: not a JSON object" in err
    assert err.count(" skipped: ") == 5, "the first five are told"
    assert "14 records; 2 requests added" in err
    assert "skipped malformed: 11 (record 2, record 4, record 5, record 6, record 7, …)" in err
    assert "skipped request-redacted: 1 (record 14)" in err, "a reason that comes late has its place too"


def test_a_folder_stands_for_its_files_and_each_skip_names_its_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    good = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hi"}]})
    (folder / "a.jsonl").write_text(f"{good}\n{{\n")
    (folder / "b.jsonl").write_text(f"{good}\n{good}\nno JSON\n")
    (folder / "c.jsonl").touch()
    (folder / ".hidden").write_bytes(b"\0\1")
    os.mkfifo(folder / "pipe")  # opening it would wait for a writer
    assert run("import", "logs") == 0
    err = capsys.readouterr().err
    assert (
        "logs/a.jsonl record 2 skipped: malformed" in err
        and "logs/b.jsonl record 3 skipped: malformed" in err
    )
    assert "5 records; 2 requests added" in err, "a.jsonl and b.jsonl begin with one and the same record"
    assert run("import", "logs", "--strict") == 2
    assert "migrate: logs/a.jsonl record 2: malformed" in capsys.readouterr().err


def test_a_format_that_finds_nothing_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    Path("none.har").write_text('{"log": {"entries": []}}')
    assert run("import", "none.har", "--quiet") == 2
    assert "no request was imported: nothing in there is a record of har" in capsys.readouterr().err


@pytest.mark.parametrize("form", ["har", "otlp", "mooncake", "mitmproxy", "vllm-log"])
def test_a_file_of_another_format_is_called_what_it_looks_like(
    form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("import", LITELLM, "--format", form, "--quiet") == 2
    err = capsys.readouterr().err
    assert (
        f"no request was found in {LITELLM} as {form}: it looks like litellm-payload; leave --format" in err
    )
    assert err.count("\n") == 1


def test_one_file_of_another_format_among_right_ones_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "log.jsonl").write_bytes(lines(3))
    (tmp_path / "empty.jsonl").touch()
    assert run("import", "log.jsonl", "empty.jsonl", "--format", "chat-jsonl") == 0
    assert run("import", "log.jsonl", SAMPLES / "har" / "session.har", "--format", "chat-jsonl") == 2
    assert "session.har as chat-jsonl: it looks like har" in capsys.readouterr().err
    assert numbers(stored()) == [0, 1, 2]


def test_an_unknown_format_is_answered_with_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("import", LITELLM, "--format", "nginx") == 2
    err = capsys.readouterr().err
    assert "'nginx' is not one of 'auto'" in err and "'access-log'" in err


def test_without_a_standard_input_there_is_nothing_to_read(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    assert run("import", "-") == 2
    assert "-: cannot be read: it is closed" in capsys.readouterr().err


def test_what_a_full_disk_did_not_take_is_not_said_to_be_there(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_bytes(lines(20_000))
    limited = f"ulimit -f 1500; exec {sys.executable} -m migrate import log.jsonl"
    done = subprocess.run(["bash", "-c", limited], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert "could not be written" in done.stderr and done.stderr.rstrip().endswith("disk I/O error")
    taken = len(stored())
    assert run("import", "log.jsonl", "--quiet") == 0 and taken < len(stored()) == 20_000


def test_imports_at_once_into_a_new_store_share_its_run(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_bytes(lines(300))
    command = [sys.executable, "-m", "migrate", "import", "log.jsonl"]
    with contextlib.ExitStack() as stack:
        pipe = subprocess.PIPE
        several = [stack.enter_context(subprocess.Popen(command, stderr=pipe, text=True)) for _ in range(3)]
        assert [(one.wait(60), one.stderr and one.stderr.read().count("Traceback")) for one in several] == [
            (0, 0)
        ] * 3
    assert numbers(stored()) == list(range(300))
    with Store.open("sqlite:///migrate.db") as store:
        assert len(store.runs()) == 1


def test_help_shows_examples(capsys: pytest.CaptureFixture[str]) -> None:
    for command, example in (
        ("import", "zcat requests.gor.gz | migrate import -"),
        ("export", "batch.jsonl"),
    ):
        assert run(command, "--help") == 0
        out = capsys.readouterr().out
        assert "Examples:" in out and example in out


def test_a_time_zone_is_taken_for_times_that_name_none(capsys: pytest.CaptureFixture[str]) -> None:
    azure = SAMPLES / "timing-traces" / "azure.csv"
    (Path("prompts.jsonl")).write_text('{"text": "hi"}\n')
    words = ("import", azure, "--prompts", "prompts.jsonl", "--model", "m", "--quiet", "--store")
    run(*words, "sqlite:///utc.db")
    run(*words, "sqlite:///oslo.db", "--timezone", "Europe/Oslo")
    first, moved = stored("sqlite:///utc.db")[0], stored("sqlite:///oslo.db")[0]
    assert first.request.at - moved.request.at in (3600, 7200)
    assert run("import", azure, "--timezone", "Mars/Dune") == 2
    assert "--timezone Mars/Dune: no such time zone" in capsys.readouterr().err


# Salt and key


def hidden(url: str = "sqlite:///migrate.db") -> list[str]:
    return [json.loads(e.request.body)["messages"][0]["content"] for e in stored(url)]


def test_one_value_keeps_its_placeholder_from_one_import_to_the_next(tmp_path: Path) -> None:
    for name in ("a", "b"):
        body = {"model": "m", "messages": [{"role": "user", "content": f"{name} ada@example.org"}]}
        (tmp_path / f"{name}.jsonl").write_text(json.dumps(body))
        run("import", f"{name}.jsonl", "--quiet")
    one, other = (words.split()[1] for words in hidden())
    assert one == other and one.startswith("[email:")
    run("import", "a.jsonl", "--quiet", "--store", "sqlite:///other.db")
    assert hidden("sqlite:///other.db")[0].split()[1] != one, "stores cannot be compared"


def test_the_key_of_placeholders_is_its_users_alone_and_not_in_the_store(tmp_path: Path) -> None:
    run("import", LITELLM, "--quiet")
    key = key_file()
    assert key.parent.parent == tmp_path / "state" and [path.name for path in key.parent.iterdir()] == [
        key.name
    ]
    assert stat.S_IMODE(key.stat().st_mode) == 0o600 and len(key.read_bytes()) == 32
    assert not any(key.read_bytes() in path.read_bytes() for path in tmp_path.glob("migrate.db*"))


def test_without_its_key_the_same_file_adds_nothing_either(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    body = {"model": "m", "messages": [{"role": "user", "content": "ada@example.org 4111 1111 1111 1111"}]}
    (tmp_path / "log.jsonl").write_text(json.dumps(body))
    run("import", "log.jsonl", "--quiet")
    key_file().unlink()
    run("import", "log.jsonl")
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    assert run("import", "log.jsonl") == 0
    err = capsys.readouterr().err
    assert (
        err.count("0 requests added") == 2
        and "a value that is imported again gets another placeholder" in err
    )


def test_a_damaged_key_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    run("import", LITELLM, "--quiet")
    key_file().write_bytes(b"short")
    assert run("import", LITELLM) == 2
    assert f"{key_file()} is damaged; remove it" in capsys.readouterr().err


# Prompts for times

TIMES = SAMPLES / "timing-traces"


def test_times_become_requests_with_prompts_in_order_over_and_over(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "prompts.jsonl").write_text(
        '{"messages": [{"role": "user", "content": "one"}], "max_tokens": 7}\n{"text": "two"}\n{"prompt": "three"}\n'
    )
    lines = [
        {"timestamp": 250 * n, "input_length": 9, "output_length": 20 + n, "hash_ids": [n]} for n in range(7)
    ]
    (tmp_path / "trace.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    words = ("import", "trace.jsonl", "--prompts", "prompts.jsonl", "--model", "harbor-7b")
    assert run(*words) == 0
    err = capsys.readouterr().err
    assert "7 requests made with the prompts of prompts.jsonl, each 2.3 times over" in err
    assert "hash_ids" in err and "7 requests added" in err
    requests = [e.request for e in stored()]
    bodies = [json.loads(request.body) for request in requests]
    assert [request.at for request in requests] == [0.25 * n for n in range(7)]
    assert [b.get("prompt") or b["messages"][0]["content"] for b in bodies] == ["one", "two", "three"] * 2 + [
        "one"
    ]
    assert [b["max_tokens"] for b in bodies] == [7, 21, 22, 7, 24, 25, 7]
    assert {b["model"] for b in bodies} == {"harbor-7b"} and not any(e.baseline for e in stored())
    assert requests[2].path == "/v1/completions" and requests[1].path == "/v1/chat/completions"
    assert run(*words) == 0
    assert "0 requests added" in capsys.readouterr().err


@pytest.mark.parametrize(
    "name", ["azure.csv", "burstgpt.csv", "burstgpt_v1.csv", "mooncake.jsonl", "../access-log/nginx.jsonl"]
)
def test_every_format_of_times_takes_prompts(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "prompts.jsonl").write_text('{"model": "m", "messages": [{"role": "user", "content": "hi"}]}')
    assert run("import", TIMES / name) == 2
    assert "give requests with --prompts" in capsys.readouterr().err
    assert run("import", TIMES / name, "--prompts", "prompts.jsonl") == 0
    err = capsys.readouterr().err
    assert "skipped times-only" not in err and len(stored()) > 0


@pytest.mark.parametrize(
    ("prompts", "said"),
    [
        ('{"text": "hi"}', "prompts.jsonl line 1: no model is named; give one with --model"),
        ('{"model": "m", "text": "hi"}\n{"question": 1}', "prompts.jsonl line 2: not-a-model-call"),
        ("\n", "prompts.jsonl holds no requests"),
        (None, "Invalid value for '--prompts': File 'prompts.jsonl' does not exist"),
    ],
)
def test_prompts_that_cannot_be_used_are_one_line(
    prompts: str | None, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if prompts is not None:
        (tmp_path / "prompts.jsonl").write_text(prompts)
    assert run("import", TIMES / "azure.csv", "--prompts", "prompts.jsonl", "--quiet") == 2
    err = capsys.readouterr().err
    assert said in err and "Traceback" not in err


# More than one process works on everything beyond the first 1,600 lines.

several = pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one core: no other process is started")


def lines(count: int, *, start: int = 0) -> bytes:
    """Requests of 700 bytes, one in seven with the same address."""
    return b"".join(
        json.dumps(
            {
                "model": "m",
                "messages": [
                    {
                        "role": "user",
                        "content": f"{n} {'ada@example.org' if n % 7 == 0 else ''}" + " word" * 120,
                    }
                ],
            }
        ).encode()
        + b"\n"
        for n in range(start, start + count)
    )


def numbers(exchanges: list[Exchange]) -> list[int]:
    return [int(json.loads(e.request.body)["messages"][0]["content"].split()[0]) for e in exchanges]


@several
def test_many_lines_are_taken_in_order_with_one_placeholder_for_one_value(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_bytes(lines(4_000))
    assert run("import", "log.jsonl", "--quiet") == 0
    exchanges = stored()
    assert numbers(exchanges) == list(range(4_000))
    found = {words.split()[1] for words in hidden() if "[email:" in words}
    assert len(found) == 1 and sum("[email:" in words for words in hidden()) == 572


@several
def test_a_compressed_log_that_stops_early_is_taken_as_far_as_it_goes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = gzip.compress(lines(4_000))
    (tmp_path / "log.jsonl.gz").write_bytes(data[: len(data) * 3 // 4])
    assert run("import", "log.jsonl.gz") == 1
    err = capsys.readouterr().err
    taken = len(stored())
    assert 1_600 < taken < 4_000 and numbers(stored()) == list(range(taken))
    assert f"skipped incomplete: 1 (record {taken + 1})" in err and "malformed" not in err
    assert f"migrate: log.jsonl.gz is cut off after record {taken}, byte " in err
    assert "of the unpacked data. What came before is stored" in err
    (tmp_path / "log.jsonl.gz").write_bytes(data)
    assert run("import", "log.jsonl.gz", "--quiet") == 0 and numbers(stored()) == list(range(4_000))


def test_every_file_that_is_cut_off_or_damaged_is_named_also_when_quiet(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = gzip.compress(lines(50))
    (tmp_path / "a.gz").write_bytes(data[:-200])
    (tmp_path / "b.gz").write_bytes(data)
    (tmp_path / "c.gz").write_bytes(data[:-8] + bytes(8))
    (tmp_path / "d.zst").write_bytes(zstd.compress(lines(9, start=50))[:-1])
    assert run("import", "a.gz", "b.gz", "c.gz", "d.zst", "--quiet") == 1
    err = capsys.readouterr().err
    assert err.startswith("migrate: a.gz is cut off after ") and err.count("\n") == 1
    assert "c.gz is damaged (CRC check failed" in err and "d.zst is cut off" in err and "b.gz" not in err
    assert numbers(stored())[:50] == list(range(50))


def test_a_file_that_is_cut_off_before_its_first_byte_is_not_called_empty(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "log.gz").write_bytes(gzip.compress(lines(1))[:12])
    assert run("import", "log.gz") == 1
    assert "migrate: log.gz is cut off after byte 1 of the unpacked data" in capsys.readouterr().err


@several
@pytest.mark.parametrize("bad", [3, 1_600, 3_333])
def test_strict_stops_at_the_first_bad_record_with_everything_before_it_stored(
    bad: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = lines(4_000).splitlines(keepends=True)
    log[bad] = b"{\n"
    log[3_700] = b"no JSON\n"
    (tmp_path / "log.jsonl").write_bytes(b"".join(log))
    assert run("import", "log.jsonl", "--strict") == 2
    err = capsys.readouterr().err
    assert f"migrate: record {bad + 1}: malformed" in err
    assert numbers(stored()) == list(range(bad))


@contextlib.contextmanager
def importing(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """``migrate import -`` in a session of its own."""
    with subprocess.Popen(
        [sys.executable, "-m", "migrate", "import", "-", "--format", "chat-jsonl"],
        cwd=folder,
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        try:
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def until(found: Callable[[], list[int]], least: int) -> list[int]:
    end = time.monotonic() + 40
    while len(here := found()) < least:
        assert time.monotonic() < end, here
        time.sleep(0.05)
    return here


def children(pid: int) -> list[int]:
    """The workers of a process; what looks after their semaphores is none."""
    with contextlib.suppress(OSError):
        every = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return [int(one) for one in every if b"spawn_main" in Path(f"/proc/{one}/cmdline").read_bytes()]
    return []


@several
def test_interrupted_everything_taken_is_written_and_the_same_log_again_completes_it(tmp_path: Path) -> None:
    log = lines(6_000)
    with importing(tmp_path) as process:
        assert process.stdin is not None and process.stderr is not None
        process.stdin.write(log)
        process.stdin.flush()
        workers = until(lambda: children(process.pid), 2)
        time.sleep(0.5)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to every process of the group
        err = process.stderr.read().decode()
        assert process.wait(30) == 130
    assert "Traceback" not in err and "requests added" in err
    until(lambda: [0] if not any(Path(f"/proc/{pid}").exists() for pid in workers) else [], 1)
    before = numbers(stored())
    assert before == list(range(len(before))) and 0 < len(before) <= 6_000
    (tmp_path / "log.jsonl").write_bytes(log)
    assert run("import", "log.jsonl", "--quiet") == 0
    assert numbers(stored()) == list(range(6_000))
    assert len({words.split()[1] for words in hidden() if "[email:" in words}) == 1


def test_an_interrupt_waits_until_a_process_has_started() -> None:
    reached = False

    def starting() -> None:
        nonlocal reached
        with uninterrupted():
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.2)
            reached = True

    over = threading.Event()
    thread = threading.Thread(target=over.wait)  # blocks no signal, as the one that writes
    thread.start()
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            starting()
        assert reached and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
        over.set()
        thread.join()


@several
def test_a_worker_that_dies_is_an_error(tmp_path: Path) -> None:
    with importing(tmp_path) as process:
        assert process.stdin is not None and process.stderr is not None
        process.stdin.write(lines(6_000))
        process.stdin.flush()
        os.kill(until(lambda: children(process.pid), 2)[0], signal.SIGKILL)
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(lines(6_000, start=6_000))
            process.stdin.close()
        err = process.stderr.read().decode()
        assert process.wait(30) == 1
    assert "migrate: a worker process ended with exit code -9" in err and "Traceback" not in err
    assert numbers(stored()) == list(range(len(stored())))


@several
def test_workers_end_with_the_process_that_started_them(tmp_path: Path) -> None:
    with importing(tmp_path) as process:
        assert process.stdin is not None
        process.stdin.write(lines(6_000))
        process.stdin.flush()
        workers = until(lambda: children(process.pid), 2)
        process.kill()
        process.wait(10)
        until(lambda: [0] if not any(Path(f"/proc/{pid}").exists() for pid in workers) else [], 1)


def test_at_a_terminal_progress_shows_rate_and_time_left(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_bytes(lines(6_000))
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "120"}
    with subprocess.Popen(
        [sys.executable, "-m", "migrate", "import", "log.jsonl"], cwd=tmp_path, env=environment, stderr=theirs
    ) as process:
        os.close(theirs)
        shown = b""
        with contextlib.suppress(OSError):  # the other end is closed
            while piece := os.read(ours, 65_536):
                shown += piece
        assert process.wait(30) == 0
    os.close(ours)
    assert (
        b"importing" in shown and b"MB/s" in shown and b"0:00:0" in shown and b"6,000 requests added" in shown
    )
