"""``migrate compare`` on real files, pipes and processes: lines in order, summary, exit codes, and what is no pair."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from migrate.cli import main
from replay.formats.unpacking import zstd

NINE = "The tide is high at nine in the morning at that port."
NOT = "The tide is not high at nine in the morning at that port."
REWORDED = "At that port, high tide comes at nine in the morning."
COMMAND = [sys.executable, "-m", "migrate", "compare"]
Line = dict[str, Any]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def compare(*words: str) -> int:
    with pytest.raises(SystemExit) as done:
        main(["compare", *words])
    assert isinstance(done.value.code, int)
    return done.value.code


def saved(*lines: Line | str, name: str = "pairs.jsonl") -> str:
    Path(name).write_text(
        "".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines)
    )
    return name


def pair(candidate: Any, **more: Any) -> Line:
    return {"baseline": NINE, "candidate": candidate} | more


def found(text: str) -> list[Line]:
    return [json.loads(line) for line in text.splitlines()]


def test_a_line_a_pair_in_order_with_its_own_id(capsys: pytest.CaptureFixture[str]) -> None:
    name = saved(pair(NINE, id="a"), pair(NOT, id=7), pair(NOT, prompt="When is high tide?"))
    assert compare(name, "--format", "json") == 3
    out, err = capsys.readouterr()
    lines = found(out)
    assert [(line["id"], line["severity"]) for line in lines] == [("a", "EQUAL"), (7, "BLOCK"), (3, "BLOCK")]
    assert all(line.keys() == {"id", "severity", "findings", "similarity"} for line in lines)
    (finding,) = lines[1]["findings"]
    assert finding.keys() == {"comparator", "category", "severity", "side", "message", "evidence"}
    assert finding["category"] == "text.negation" and "3 pairs" in err


def test_an_answer_is_a_text_or_a_body_and_the_request_says_what_is_right(
    capsys: pytest.CaptureFixture[str],
) -> None:
    body = {
        "choices": [{"index": 0, "message": {"role": "assistant", "content": NINE}, "finish_reason": "stop"}]
    }
    asked = {"messages": [{"role": "user", "content": "Hour?"}], "response_format": {"type": "json_object"}}
    name = saved(
        pair(body), {"baseline": '{"hour": 9}', "candidate": "It is at nine, as always.", "request": asked}
    )
    assert compare(name, "--format", "json") == 3
    first, second = found(capsys.readouterr().out)
    assert first["severity"] == "EQUAL"
    assert [f["category"] for f in second["findings"]] == ["structured.invalid"]


def test_a_person_gets_the_causes_and_the_noise_floor(capsys: pytest.CaptureFixture[str]) -> None:
    lines = [pair(NOT, id=f"p{n}", repeat=NOT if n < 10 else NINE) for n in range(40)]
    assert compare(saved(*lines)) == 3
    out, err = capsys.readouterr()
    assert "40 pairs" in out and "text.negation" in out and "p0: " in out and not err
    assert "in 40 pairs with a repeat the baseline differs from itself in 25.00%" in " ".join(out.split())
    assert all(len(line) <= 120 for line in out.splitlines())


def test_repeats_are_in_the_lines_too(capsys: pytest.CaptureFixture[str]) -> None:
    compare(saved(pair(NINE, repeat=NOT)), "--format", "json")
    (line,) = found(capsys.readouterr().out)
    assert line["severity"] == "EQUAL" and line["repeat"] == {"severity": "BLOCK", "similarity": None}


@pytest.mark.parametrize(
    ("lines", "code"),
    [
        ([pair(NINE)], 0),
        ([pair(NINE), pair(NOT)], 3),
        ([pair(NINE), "no pair"], 4),
        ([pair(NOT), "no pair"], 3),
    ],
)
def test_the_exit_code(lines: list[Line | str], code: int) -> None:
    assert compare(saved(*lines)) == code


def test_what_is_no_pair_is_counted_by_its_reason_with_its_place(capsys: pytest.CaptureFixture[str]) -> None:
    name = saved(
        pair(NINE),
        "{",
        "[1]",
        {"candidate": NINE, "expected": NINE},
        pair(None),
        pair({"a": 1}),
        pair(7),
        pair(NINE, id=[1]),
        pair(NINE, request="text"),
        pair(NINE, prompt=7),
    )
    assert compare(name, "--format", "json") == 4
    out, err = capsys.readouterr()
    assert len(found(out)) == 1
    assert "skipped: record 4: baseline-missing: no baseline; it has expected" in err
    assert "9 records are no pair" in err
    for line in (
        "malformed: 2",
        "baseline-missing: 1",
        "candidate-missing: 1",
        "no-answer: 2",
        "id: 1",
        "request: 1",
        "prompt: 1",
    ):
        assert f"  skipped {line}\n" in err


def test_strict_stops_at_the_first_and_keeps_what_was_before(capsys: pytest.CaptureFixture[str]) -> None:
    lines = [*(pair(NINE) for _ in range(300)), "{", *(pair(NINE) for _ in range(300))]
    assert compare(saved(*lines), "--strict", "--format", "json", "--output", "out.jsonl") == 2
    assert "pairs.jsonl: record 301: malformed: not a JSON object" in capsys.readouterr().err
    assert len(found(Path("out.jsonl").read_text())) == 200


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("none.jsonl",), "none.jsonl: cannot be read: No such file or directory"),
        (("empty.jsonl",), "empty.jsonl: holds no pair that could be compared"),
        (("bad.jsonl",), "bad.jsonl: holds no pair that could be compared"),
        (
            ("pairs.jsonl", "--output", "none/x"),
            "--output none/x: cannot be written: No such file or directory",
        ),
        (("pairs.jsonl", "--config", "none.yaml"), "none.yaml: cannot be read"),
    ],
)
def test_wrong_use_is_one_line(words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    saved(pair(NINE))
    Path("empty.jsonl").write_text("")
    saved("x", name="bad.jsonl")
    assert compare(*words) == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith(f"migrate: {said}")


def test_compressed_files_lists_and_standard_input(capsys: pytest.CaptureFixture[str]) -> None:
    data = (json.dumps(pair(NOT)) + "\n").encode() * 3
    Path("a.gz").write_bytes(gzip.compress(data))
    Path("a.zst").write_bytes(zstd.compress(data))
    Path("a.json").write_text(json.dumps([pair(NOT)] * 3, indent=1))
    for name in ("a.gz", "a.zst", "a.json"):
        assert compare(name, "--format", "json") == 3
        assert len(found(capsys.readouterr().out)) == 3
    done = subprocess.run(
        [*COMMAND, "-", "--format", "json"], input=gzip.compress(data), capture_output=True, check=False
    )
    assert done.returncode == 3 and len(found(done.stdout.decode())) == 3


def test_the_configuration_gives_the_floor(capsys: pytest.CaptureFixture[str]) -> None:
    Path("migrate.yaml").write_text(
        "baseline: {kind: vllm, url: 'http://127.0.0.1:1'}\npolicy: {disagreement: {similarity: 0.9999}}\n"
    )
    name = saved(pair(REWORDED))
    assert compare(name, "--format", "json") == 3
    (line,) = found(capsys.readouterr().out)
    assert line["findings"][0]["category"] == "text.similarity" and 0.5 < line["similarity"] < 0.9999
    assert compare(name, "--similarity", "0.5") == 0


def test_without_the_extra_the_rest_is_compared_and_the_undecided_are_invalid(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("migrate.embedder.find_spec", lambda name: None)
    assert compare(saved(pair(REWORDED), pair(NINE)), "--format", "json") == 4
    out, err = capsys.readouterr()
    assert [line["severity"] for line in found(out)] == ["INVALID", "EQUAL"]
    assert "llm-migrate[embeddings]" in err
    assert compare(saved(pair(NOT), pair(NINE))) == 3
    assert "embeddings" not in capsys.readouterr().err


def test_hostile_texts_are_harmless(capsys: pytest.CaptureFixture[str]) -> None:
    hostile = "six \x1b[2J\x07\u202e\x00 \u2028"
    name = saved(
        pair(hostile, id="\x1b]0;t\x07"), '{"id": "\\ud800", "baseline": "\\ud800 x", "candidate": "y"}'
    )
    assert compare(name) == 3
    assert not {"\x1b", "\x07", "\u202e", "\x00"} & set(capsys.readouterr().out)
    compare(name, "--format", "json")
    assert len(found(capsys.readouterr().out)) == 2


@contextlib.contextmanager
def endless(*words: str) -> Iterator[subprocess.Popen[bytes]]:
    """The command, reading pairs that never end from standard input."""
    lines = (json.dumps(pair(NOT)) + "\n").encode() * 1_000
    process = subprocess.Popen(
        [*COMMAND, "-", "--format", "json", *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )

    def feed() -> None:
        assert process.stdin
        with contextlib.suppress(BrokenPipeError):
            while True:
                process.stdin.write(lines)

    feeder = threading.Thread(target=feed)
    feeder.start()
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        feeder.join()
        for pipe in (process.stdin, process.stdout, process.stderr):
            with contextlib.suppress(BrokenPipeError):
                assert pipe
                pipe.close()


def test_a_pipe_is_read_while_it_runs_and_may_be_closed() -> None:
    with endless() as process:
        assert process.stdout and process.stderr
        assert json.loads(process.stdout.readline())["severity"] == "BLOCK"
        process.stdout.close()
        err = process.stderr.read().decode()
        assert process.wait(30) == 3
    assert "Traceback" not in err and "Error" not in err


def test_interrupted_what_was_done_is_kept() -> None:
    with endless("--output", "out.jsonl") as process:
        assert process.stderr
        deadline = time.monotonic() + 30
        while not Path("out.jsonl").exists() or Path("out.jsonl").stat().st_size < 1_000_000:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to every process of the group
        err = process.stderr.read().decode()
        assert process.wait(30) == 130
    lines = found(Path("out.jsonl").read_text())
    counted = int(err.split(" pairs")[0].split()[-1].replace(",", ""))
    assert len(lines) > 1_000 and abs(counted - len(lines)) <= 200 and "Traceback" not in err


def test_many_lines_in_order_by_several_processes(capsys: pytest.CaptureFixture[str]) -> None:
    lines = [pair(NOT if n % 3 else NINE, id=n) for n in range(4_000)]
    assert compare(saved(*lines), "--format", "json") == 3
    out = found(capsys.readouterr().out)
    assert [line["id"] for line in out] == list(range(4_000))
    assert [line["severity"] for line in out] == ["BLOCK" if n % 3 else "EQUAL" for n in range(4_000)]
