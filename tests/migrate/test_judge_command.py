"""``migrate judge`` on real files, pipes and processes: one verdict a file, its line, its exit code, and what is refused."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from migrate.cli import main
from replay.exchange import Outcome
from replay.formats.unpacking import zstd
from tests.reports.made import START, changed, failure, run, same
from tests.reports.records import records

COMMAND = [sys.executable, "-m", "migrate", "judge"]
REHEARSAL = "{minimum_span: 10s, minimum_pairs: 300, warmup: 0, rehearsal: true}"
Line = dict[str, Any]
RULE = [
    "rule",
    "verdict",
    "estimate",
    "low",
    "high",
    "margin",
    "pairs",
    "reason",
    "forecast_pairs",
    "forecast_hours",
]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("policy.yaml").write_text(REHEARSAL)


def judge(*words: str) -> int:
    with pytest.raises(SystemExit) as done:
        main(["judge", *words])
    assert isinstance(done.value.code, int)
    return done.value.code


def saved(rows: Sequence[Line | str], name: str = "pairs.jsonl") -> str:
    Path(name).write_bytes(jsonl(rows))
    return name


def jsonl(rows: Sequence[Line | str]) -> bytes:
    return "".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows).encode()


def dotted(row: Line) -> Line:
    """A line as the cells of a table."""
    flat: Line = {}
    for key, value in row.items():
        flat |= (
            {f"{key}.{inner}": one for inner, one in value.items()}
            if isinstance(value, dict)
            else {key: value}
        )
    return flat


def as_csv(rows: Sequence[Line]) -> bytes:
    flat = [dotted(row) for row in rows]
    text = io.StringIO()
    table = csv.DictWriter(text, dict.fromkeys(key for row in flat for key in row))
    table.writeheader()
    table.writerows(flat)
    return text.getvalue().encode()


def table(rows: Sequence[Line]) -> pa.Table:
    keys = dict.fromkeys(key for row in rows for key in row)
    return pa.table({key: [row.get(key) for row in rows] for key in keys})


def parquet(whole: pa.Table) -> bytes:
    sink = io.BytesIO()
    pq.write_table(whole, sink, row_group_size=77)
    return sink.getvalue()


def as_parquet(rows: Sequence[Line]) -> bytes:
    return parquet(table(rows))


def flat_parquet(rows: Sequence[Line]) -> bytes:
    return parquet(table([dotted(row) for row in rows]))


def mapped_parquet(rows: Sequence[Line]) -> bytes:
    """Labels as a map, and outcomes as categories, as data frames keep them."""
    whole = table([dotted(row) | {"labels": row.get("labels", {})} for row in rows])
    labels = [[*row.get("labels", {}).items()] for row in rows]
    kept = [name for name in whole.column_names if not name.startswith(("labels", "candidate.outcome"))]
    return parquet(
        whole.select(kept)
        .append_column("labels", pa.array(labels, type=pa.map_(pa.string(), pa.string())))
        .append_column("candidate.outcome", whole["candidate.outcome"].dictionary_encode())
    )


def found(text: str) -> list[Line]:
    return [json.loads(line) for line in text.splitlines()]


def some(count: int = 500, **harm: float) -> list[Line]:
    """A run with labels, some of which come late."""
    rows = records(run(count, 5, **harm))
    return [row | ({"labels": {"route": f"/v{n % 2}"}} if n > 20 else {}) for n, row in enumerate(rows)]


def test_a_line_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    good, bad = saved(records(same(600))), saved(some(errors=0.2), "bad.jsonl")
    assert judge(good, bad, "--policy", "policy.yaml", "--format", "json") == 3
    out, err = capsys.readouterr()
    first, second = found(out)
    assert [*first] == ["file", "verdict", "code", "reason", "rules", "checks"] and not err
    assert (first["file"], first["verdict"], first["code"]) == (good, "GO", "go")
    assert (second["file"], second["verdict"], second["code"]) == (bad, "ROLLBACK", "errors")
    assert all([*rule] == RULE for rule in first["rules"])
    assert all([*check] == ["code", "passed", "message"] for check in first["checks"])
    errors = second["rules"][0]
    assert errors["rule"] == "errors" and errors["verdict"] == "ROLLBACK" and errors["estimate"] > 0.1


WRITERS: dict[str, Callable[[Sequence[Line]], bytes]] = {
    "pairs.csv": as_csv,
    "pairs.parquet": as_parquet,
    "flat.parquet": flat_parquet,
    "mapped.parquet": mapped_parquet,
    "pairs.jsonl.gz": lambda rows: gzip.compress(jsonl(rows)),
    "pairs.jsonl.zst": lambda rows: zstd.compress(jsonl(rows)),
    "pairs.csv.gz": lambda rows: gzip.compress(as_csv(rows)),
    "blank.jsonl": lambda rows: b"\xef\xbb\xbf\n \n" + jsonl(rows).replace(b"\n", b"\r\n\n").rstrip(),
    "excel.csv": lambda rows: b"\xef\xbb\xbf" + as_csv(rows),
}


@pytest.mark.parametrize("name", WRITERS)
def test_the_same_pairs_give_the_same_judgement_in_every_format(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = some(errors=0.05, base_errors=0.02, noise=0.05)
    Path(name).write_bytes(WRITERS[name](rows))
    judge(saved(rows, "plain"), name, "--policy", "policy.yaml", "--format", "json", "--every", "7s")
    (plain, other), err = found(capsys.readouterr().out), capsys.readouterr().err
    assert not err and other == plain | {"file": name}
    assert plain["rules"][0]["pairs"] > 400


@pytest.mark.parametrize("data", [jsonl, as_csv, as_parquet, lambda rows: gzip.compress(jsonl(rows))])
def test_standard_input(data: Callable[[Sequence[Line]], bytes]) -> None:
    done = subprocess.run(
        [*COMMAND, "-", "--policy", "policy.yaml", "--format", "json"],
        input=data(records(same(600))),
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (line,) = found(done.stdout.decode())
    assert (line["file"], line["verdict"]) == ("-", "GO")


@pytest.mark.parametrize(
    ("files", "code"),
    [(["go"], 0), (["hold"], 4), (["rollback"], 3), (["rollback", "hold", "go"], 3), (["go", "hold"], 4)],
)
def test_the_worst_verdict_is_the_exit_code(files: list[str], code: int) -> None:
    saved(records(same(600)), "go")
    saved(records(same(5)), "hold")
    saved(some(errors=0.2), "rollback")
    assert judge(*files, "--policy", "policy.yaml") == code


@pytest.mark.parametrize(
    ("rows", "code"),
    [
        ([], "no_data"),
        (records(same(5)), "too_few_pairs"),
        ([{**row, "candidate": None} for row in records(same(600))], "mirror_sent_nothing"),
        ([{**row, "baseline": None} for row in records(same(600))], "nothing_compared"),
        (
            [row | ({"candidate": None} if n % 5 < 2 else {}) for n, row in enumerate(records(same(900)))],
            "coverage",
        ),
        ([row | {"at": float("nan")} for row in records(same(600))], "invalid_number"),
    ],
)
def test_what_decides_nothing_is_hold_with_its_code(
    rows: list[Line], code: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert judge(saved(rows), "--policy", "policy.yaml", "--format", "json") == 4
    (line,) = found(capsys.readouterr().out)
    assert (line["verdict"], line["code"]) == ("HOLD", code)


def test_without_a_policy_the_default_one_holds() -> None:
    """A day is missing."""
    assert judge(saved(records(same(2_000)))) == 4


def test_nan_is_named_by_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    rows = records(same(20))
    rows[6]["candidate"]["e2e_s"] = float("nan")
    assert judge(saved(rows), "--format", "json") == 4
    out, err = capsys.readouterr()
    assert "pairs.jsonl:7: candidate.e2e_s is nan; a number must be finite and not negative" in err
    assert found(out)[0]["reason"] in err and not found(out)[0]["rules"]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"{\n", "pairs:1: not JSON: "),
        (b'\n{"id": "a", "at": 1}\n[1]\n', "pairs:3: [1] is no JSON object"),
        (b'{"id": "a", "at": 1, "e2e_s": 1}\n', "pairs:1: no such key 'e2e_s'"),
        (b'{"id": "a"}\n', "pairs:1: at is missing"),
        (
            b'{"id": "a", "at": 1}\n{"id": "b", "at": 1}\n\n{"id": "a", "at": 2}',
            "pairs:4: id 'a' is that of line 1",
        ),
        (b'{"id": "\\ud800", "at": NaN}\n', "pairs:1: not JSON: "),
        (b'{"id": "a\xff", "at": 1}\n', "pairs:1: not JSON: "),
        (b'{"id": "a", "at": ' + b"[" * 2_000, "pairs:1: not JSON: "),
        (b'{"id": "' + b"a" * 2**20, "pairs:1: longer than 1 MiB"),
        (b"What is this?\n", "pairs:1: neither JSON Lines, CSV with a header such as "),
        (
            b"id,at,candidate.e2e\na,1,2\n",
            "pairs:1: no such column 'candidate.e2e'; did you mean candidate.e2e_s?",
        ),
        (b"id,at,at\na,1,2\n", "pairs:1: the column 'at' is given twice"),
        (b"id,at\na,1\nb\n", "pairs:3: 1 cells; the header has 2"),
        (b'id,at\n"a\nb",1\nc,x\n', "pairs:4: at is 'x'; it must be a number of seconds"),
        (b"id,at,differs\na,1,yes\n", "pairs:2: differs is 'yes'; it must be true or false"),
        (b"id,at\n\xff,1\n", "not UTF-8"),
        (b"id,at\n" + b"a,1\n" * 699 + b"\xff,1\n" + b"b,2\n" * 9, "pairs:701: not UTF-8"),
        (b'id,at\n"' + b"a" * 2**20, "pairs:2: longer than 1 MiB"),
        (b'id,at\n"a,1\n', "not CSV: "),
        (gzip.compress(jsonl(records(same(50))))[:-30], "the file is cut off"),
        (b"PAR1 and no more", "pairs: row 1: not Parquet: "),
        (as_parquet([{"id": "a", "at": 1.0}, {"id": "b", "at": None}]), "pairs: row 2: at is missing"),
        (as_parquet([{"id": "a", "when": 1.0}]), "pairs: row 1: no such column 'when'"),
        (as_parquet([{"id": "a", "at": 1.0, "labels": [1]}]), "pairs: row 1: labels is "),
    ],
)
def test_a_file_that_cannot_be_read_is_wrong_use_and_judged_by_no_half(
    data: bytes, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("pairs").write_bytes(data)
    assert judge("pairs", "--format", "json") == 2
    out, err = capsys.readouterr()
    assert said in err and err.startswith("migrate: pairs") and err.count("\n") == 1
    (line,) = found(out)
    assert (line["verdict"], line["code"], line["rules"]) == ("HOLD", "unreadable", [])
    assert f"migrate: {line['reason']}\n" == err


def test_other_files_are_judged_all_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    saved(some(errors=0.2), "rollback")
    assert judge(saved(["{"]), "rollback", "--policy", "policy.yaml", "--format", "json") == 2
    assert [line["verdict"] for line in found(capsys.readouterr().out)] == ["HOLD", "ROLLBACK"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["none.jsonl"], "none.jsonl: cannot be read: No such file"),
        (["."], ".: cannot be read: Is a directory"),
        (["-", "-"], "- is standard input, and was given 2 times"),
        (["pairs.jsonl", "--every", "0s"], "'0s' is no time above 0"),
        (["pairs.jsonl", "--every", "often"], "'often' is no time above 0"),
        (["pairs.jsonl", "--every", "1ms"], "at most 10,000: look less often"),
        (["pairs.jsonl", "--policy", "none.yaml"], "none.yaml: cannot be read"),
        (
            ["pairs.jsonl", "--policy", "bad.yaml"],
            "bad.yaml, line 2: minimun_span: no such key; did you mean minimum_span?",
        ),
        ([], "Missing argument"),
    ],
)
def test_wrong_use(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    saved(records(same(600)))
    Path("bad.yaml").write_text("warmup: 0\nminimun_span: 1h\n")
    assert judge(*words) == 2
    out, err = capsys.readouterr()
    assert said in err and not out


@pytest.mark.parametrize(
    "text",
    [
        REHEARSAL,
        f"policy: {REHEARSAL}",
        f"baseline: {{kind: vllm, url: 'http://127.0.0.1:1'}}\npolicy: {REHEARSAL}",
    ],
)
def test_a_policy_stands_alone_or_in_a_configuration(text: str) -> None:
    Path("other.yaml").write_text(text)
    assert judge(saved(records(same(600))), "--policy", "other.yaml") == 0


@pytest.mark.parametrize(
    ("change", "verdict", "code"),
    [
        ("", "GO", "go"),
        ("minimum_span: 1h", "HOLD", "minimum_span"),
        ("warmup: 1h", "HOLD", "warm_up"),
        ("minimum_pairs: 5000", "HOLD", "too_few_pairs"),
        ("alpha: 0.000001", "HOLD", "not_enough_evidence"),
        ("errors: {margin: 0.1 %}", "HOLD", "not_enough_evidence"),
        ("errors: {margin: 0.1 %, required: false}", "GO", "go"),
        ("disagreement: {margin: 0.1 %}", "HOLD", "not_enough_evidence"),
        ("disagreement: {margin: 0.1 %, required: false}", "GO", "go"),
        ("latency_median: {margin: 0ms}", "HOLD", "not_enough_evidence"),
        ("latency_median: {margin: 0ms, required: false}", "GO", "go"),
        ("latency_median: {required: false}", "GO", "go"),
    ],
)
def test_the_policy_decides(change: str, verdict: str, code: str, capsys: pytest.CaptureFixture[str]) -> None:
    base = "minimum_span: 10s\nminimum_pairs: 300\nwarmup: 0\n"
    name = change.partition(":")[0]
    kept = "".join(f"{line}\n" for line in base.splitlines() if line.partition(":")[0] != name)
    Path("other.yaml").write_text(kept + change)
    judge(saved(records(same(900))), "--policy", "other.yaml", "--format", "json")
    (line,) = found(capsys.readouterr().out)
    assert (line["verdict"], line["code"]) == (verdict, code), line["reason"]


def test_trimmed_blocks_are_the_policys(capsys: pytest.CaptureFixture[str]) -> None:
    """Near an hour in which a third fails: harm, unless its blocks are taken away."""
    rows = records(same(4_320, rate=0.1))  # twelve hours
    for row in rows[4_000:4_300:3]:
        row["candidate"] = {"outcome": "http_error", "e2e_s": 0.1}
    saved(rows)
    found_at = {}
    for trim in (0, 20):
        Path("other.yaml").write_text(f"trim_blocks: {trim}\nminimum_pairs: 300\nwarmup: 0\n")
        judge("pairs.jsonl", "--policy", "other.yaml", "--format", "json")
        (line,) = found(capsys.readouterr().out)
        found_at[trim] = line["rules"][0]["verdict"]
    assert found_at[0] == "ROLLBACK" and found_at[20] != "ROLLBACK"


def test_what_the_verdict_would_have_been_at_each_look(capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is known at a look of answers that came later, and the last ten minutes wait for their timeouts."""
    rows = records(same(3_600, rate=1.0))
    for row in rows[2_400:]:
        row["candidate"] = {"outcome": "timeout", "e2e_s": 60.0}
    assert judge(saved(rows), "--policy", "policy.yaml", "--format", "json", "--every", "5m") == 3
    (line,) = found(capsys.readouterr().out)
    looks = line["history"]
    assert [look["at"] for look in looks] == [START + 300 * n for n in range(1, 13)]
    assert all([*look] == ["at", "verdict", "code"] for look in looks)
    assert [look["verdict"] for look in looks[:8]] == ["HOLD"] * 2 + ["GO"] * 6 or looks[7]["verdict"] == "GO"
    assert looks[0]["code"] == "not_final" and looks[-1]["verdict"] == "ROLLBACK"
    verdicts = [look["verdict"] for look in looks]
    assert verdicts.index("ROLLBACK") >= 8 and set(verdicts[verdicts.index("ROLLBACK") :]) == {"ROLLBACK"}


def test_nothing_has_no_looks(capsys: pytest.CaptureFixture[str]) -> None:
    assert judge(saved([]), "--format", "json", "--every", "1h") == 4
    assert found(capsys.readouterr().out)[0]["history"] == []


def test_a_person_reads_the_verdict_first(capsys: pytest.CaptureFixture[str]) -> None:
    rows = some(2_000, errors=0.0)
    for row in rows:
        if row.get("labels") == {"route": "/v1"} and int(row["id"]) % 3 == 0:
            row["candidate"] = {"outcome": "http_error", "e2e_s": 0.1}
    assert judge(saved(rows), "--policy", "policy.yaml", "--every", "20s") == 3
    out, err = capsys.readouterr()
    assert not err and "✗ ROLLBACK" in out.splitlines()[0] and "pairs.jsonl" in out.splitlines()[0]
    assert "2,000 pairs over" in out and "route /v1: errors: " in out and "LOOKS" in out
    assert all(len(line) <= 120 for line in out.splitlines()) and "\x1b" not in out


def test_a_name_can_do_nothing_to_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    for rows in ([], ["{"], [{"id": "a", "at": 1, "labels": {"\x1b[31m": "\x1b[31m"}}]):
        judge(saved(rows, "a\x1b[31m.jsonl"))
        judge("a\x1b[31m.jsonl", "--format", "json")
        out, err = capsys.readouterr()
        assert "\x1b" not in out + err and "HOLD" in out
    saved([{"id": "a", "at": 1, "labels": {"\x1b[31m": []}}])
    assert judge("pairs.jsonl") == 2 and "\x1b" not in capsys.readouterr().out


def test_a_reader_that_leaves_early() -> None:
    for n in range(3):
        saved(records(same(600)), f"{n}.jsonl")
    done = subprocess.run(
        ["bash", "-c", f"{' '.join(COMMAND)} 0.jsonl 1.jsonl 2.jsonl --format json | head -c 10"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == '{"file":"0' and "Traceback" not in done.stderr and "unexpected" not in done.stderr


def test_help_has_the_line_and_examples(capsys: pytest.CaptureFixture[str]) -> None:
    assert judge("--help") == 0
    out = capsys.readouterr().out
    assert "baseline.outcome" in out and "--every" in out and "Exit codes" in out


def test_it_completes_in_the_shell() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "migrate"],
        env={"_MIGRATE_COMPLETE": "bash_complete", "COMP_WORDS": "migrate judge --", "COMP_CWORD": "2"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert {"plain,--policy", "plain,--format", "plain,--every"} <= set(done.stdout.splitlines()), done.stderr


def test_the_page_runs_as_written() -> None:
    page = (Path(__file__).parents[2] / "docs" / "verdicts.md").read_text(encoding="utf-8")
    section = page.split("## Judging pairs from anywhere")[1].split("\n## ")[0]
    (script,) = re.findall(r"```sh\n(.*?)```", section, re.DOTALL)
    done = subprocess.run(
        ["bash", "-ec", script.replace("migrate judge", " ".join(COMMAND))],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0 and not done.stderr, done.stderr
    (line,) = found(Path("verdicts.jsonl").read_text())
    assert line["verdict"] == "HOLD" and len(line["history"]) == 1
    said = re.findall(r"`([a-z_]+)`", section.split("`outcome` is one of ")[1].split(";")[0])
    assert said == list(Outcome)


def test_a_rollback_is_not_waited_away(capsys: pytest.CaptureFixture[str]) -> None:
    harmed = changed(same(400, rate=0.1), lambda n: n % 8 == 0, candidate=failure())
    better = [replace(pair, id=f"b{pair.id}") for pair in same(40_000, rate=0.1, start=START + 4_000)]
    Path("policy.yaml").write_text("{rehearsal: true, minimum_span: 0, minimum_pairs: 1, warmup: 0}")
    path = saved(records([*harmed, *better]))
    assert judge(path, "--policy", "policy.yaml", "--format", "json", "--every", "1h", "--quiet") == 3
    (line,) = found(capsys.readouterr().out)
    assert (line["verdict"], line["code"]) == ("ROLLBACK", "errors")
    assert line["history"][-1]["verdict"] == "ROLLBACK"
    assert "until somebody acknowledges it" in line["reason"]
