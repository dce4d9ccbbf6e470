"""``migrate diff`` on saved files: outcome, exit code, both formats, and one line for each wrong use."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from migrate.cli import main
from migrate.commands.diff import EXIT_CODES
from reports.judgement import Severity
from tests.casebook.cases import ASK, CASES, NINE, STREAM, Case, answer, delta, events, usage


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def diff(*words: str) -> int:
    with pytest.raises(SystemExit) as done:
        main(["diff", *words])
    assert isinstance(done.value.code, int)
    return done.value.code


def saved(baseline: bytes, candidate: bytes, request: dict[str, Any] | None = None) -> tuple[str, ...]:
    Path("b.http").write_bytes(baseline)
    Path("c.http").write_bytes(candidate)
    Path("r.json").write_text(json.dumps(ASK if request is None else request))
    return ("--request", "r.json", "b.http", "c.http")


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.number}-{case.title}")
def test_the_exit_code_and_the_outcome_of_every_case(case: Case, capsys: pytest.CaptureFixture[str]) -> None:
    code = diff(*saved(case.baseline, case.candidate, case.request), "--format", "json")
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert (found["outcome"], code, err) == (case.severity.value, EXIT_CODES[case.severity], "")
    assert {"schema", "outcome", "findings", "baseline", "candidate"} == set(found)
    for finding in found["findings"]:
        assert {"comparator", "category", "severity", "side", "message", "evidence"} == set(finding)
    for side in ("baseline", "candidate"):
        assert {"text", "reasoning", "tool_calls", "finish_reason", "usage", "error"} <= set(found[side])


def test_it_is_read_by_a_person(capsys: pytest.CaptureFixture[str]) -> None:
    (case,) = [case for case in CASES if case.title == "Parallel calls all with index 0"]
    assert diff(*saved(case.baseline, case.candidate, case.request)) == 3
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].strip().startswith("BLOCK") and all(len(line) <= 120 for line in lines)
    assert any('calls get_wind({"port":"Hull"})' in line for line in lines)


def test_hostile_answers_are_harmless_on_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    diff(*saved(answer("six \x1b[2J\x07\u202e"), answer("nine \x1b]0;title\x07")))
    out = capsys.readouterr().out
    assert not {"\x1b", "\x07", "\u202e"} & set(out)


def test_reworded_answers_need_the_model_and_nothing_else_does(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = saved(answer(NINE), answer("At nine the lock opens, and at five it closes."))
    assert diff(*words, "--format", "json") == 0
    assert json.loads(capsys.readouterr().out)["findings"][0]["category"] == "text.reworded"
    assert diff(*words, "--similarity", "0.9999") == 3
    capsys.readouterr()
    # As on a machine without the extra.
    monkeypatch.setattr("migrate.embedder.find_spec", lambda name: None)
    assert diff(*words, "--format", "json") == EXIT_CODES[Severity.INVALID]
    out, err = capsys.readouterr()
    assert (
        json.loads(out)["findings"][0]["category"] == "text.not_compared" and "llm-migrate[embeddings]" in err
    )


def test_a_configuration_says_what_decides(capsys: pytest.CaptureFixture[str]) -> None:
    words = saved(answer("9 eggs at $2: $18"), answer("16 - 7 = 9.\nA: 18.00"), {"model": "math-7b"})
    assert diff(*words) == 3
    Path("m.yaml").write_text(
        "baseline: {kind: vllm, url: 'http://10.0.0.5:8000'}\n"
        "policy: {compare: [{model: 'math-*', take: last_number}]}\n"
    )
    capsys.readouterr()
    assert diff(*words, "--config", "m.yaml", "--format", "json") == 0
    assert json.loads(capsys.readouterr().out)["findings"][-1]["category"] == "task.text"


def vectors(*rows: Any) -> bytes:
    body = json.dumps(
        {"object": "list", "data": [{"index": n, "embedding": row} for n, row in enumerate(rows)]}
    )
    return f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n{body}".encode()


def test_answers_of_the_embeddings_interface(capsys: pytest.CaptureFixture[str]) -> None:
    assert diff(*saved(vectors([0.6, 0.8]), vectors([0.6, 0.8]), {"input": "a"})) == 0
    assert diff(*saved(vectors([0.6, 0.8]), vectors([0.8, 0.6]), {"input": "a"})) == 3
    assert "1 of 1 vectors point elsewhere" in capsys.readouterr().out


def test_times_of_reads_show_a_parser_that_holds_back(capsys: pytest.CaptureFixture[str]) -> None:
    counting = events(
        delta() | {"usage": usage(9, 1)},
        delta(content=NINE, finish="stop"),
        {"choices": [], "usage": usage(9, 12)},
    )
    body = counting.partition(b"\r\n\r\n")[2]
    first = body.index(b"\n\n") + 2
    Path("slow.tsv").write_text(f"0.1\t{first}\n4.1\t{len(body) - first}\n")
    Path("quick.tsv").write_text(f"0.1\t{len(body)}\n")
    words = (*saved(counting, counting, STREAM), "--timing", "quick.tsv", "slow.tsv")
    assert diff(*words, "--format", "json") == 5
    found = json.loads(capsys.readouterr().out)
    assert [f["category"] for f in found["findings"]] == ["latency.parser_buffering"]
    assert (found["baseline"]["timing"]["ttft_s"], found["candidate"]["timing"]["ttft_s"]) == (0.1, 4.1)
    diff(*words[:-3])
    assert "first token" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("none.http", "c.http"), "none.http: cannot be read: No such file"),
        ((".", "c.http"), "cannot be read: Is a directory"),
        (("r.json", "c.http"), "not with a status line"),
        (("b.http", "c.http", "--request", "c.http"), "is not a JSON object"),
        (("b.http", "c.http", "--timing", "r.json", "r.json"), "SECONDS<TAB>BYTES"),
    ],
)
def test_wrong_use_is_one_line_and_exit_code_2(
    words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    saved(answer("six"), answer("six"))
    assert diff(*words) == 2
    out, err = capsys.readouterr()
    assert out == "" and said in err and err.count("\n") == 1
