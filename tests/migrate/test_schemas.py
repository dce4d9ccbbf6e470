"""Every document for programs is as its published JSON Schema says, key by key."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from migrate.admin import NOT_JUDGED
from migrate.cli import main
from migrate.commands.launch import _keep
from migrate.config import Backend
from migrate.launching.command import Command
from migrate.notifying.news import facts_of, news_of, trial
from migrate.notifying.standing import standing
from replay.told import Told
from tests.migrate.test_report import record
from tests.reports.builders import alike, calling, document, exchange, wrong
from tests.shadowing import simulator

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "migrate" / "schemas"
Print = Callable[..., str]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MIGRATE_CONFIG", raising=False)


@pytest.fixture
def output(capsys: pytest.CaptureFixture[str]) -> Print:
    def of(*words: str) -> str:
        capsys.readouterr()
        with pytest.raises(SystemExit):
            main(list(words))
        out, err = capsys.readouterr()
        assert out, err
        return out

    return of


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/m.db"


def conforms(name: str, document: Any) -> None:
    """Valid, and without a key that the schema does not know."""
    schema = json.loads((FOLDER / f"{name}-1.json").read_text())
    Draft202012Validator.check_schema(schema)
    errors = [
        f"{error.json_path}: {error.message[:300]}"
        for error in Draft202012Validator(_closed(schema)).iter_errors(document)
    ]
    assert not errors, errors[:5]


def _closed(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_closed(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {key: _closed(value) for key, value in schema.items()}
    if isinstance(schema.get("properties"), dict) and schema.get("type") == "object":
        closed["additionalProperties"] = False
    return closed


def test_what_is_published_is_what_the_types_say(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, str(ROOT / "scripts/schemas"), str(tmp_path / "made")], check=True, cwd=ROOT
    )
    made, kept = (
        {file.name: json.loads(file.read_text()) for file in folder.iterdir()}
        for folder in (tmp_path / "made", FOLDER)
    )
    assert kept.keys() == made.keys()
    assert [name for name in made if made[name] != kept[name]] == [], "run scripts/schemas"


def test_each_is_printed(output: Print) -> None:
    names = output("schema").split()
    assert len(names) == len(list(FOLDER.iterdir()))
    for name in names:
        schema = json.loads(output("schema", name))
        assert schema["$id"] == f"urn:llm-migrate:{name}:1"
    with pytest.raises(SystemExit) as done:
        main(["schema", "reprot"])
    assert done.value.code == 2


@pytest.mark.parametrize(
    "exchanges", [alike(), wrong(), [exchange(0)], [], [calling(0, '{"a": 1}', '{"a": 2}')]]
)
def test_documents_on_a_run(exchanges: list[Any], url: str, output: Print) -> None:
    record(url, exchanges)
    store = ("--store", url, "--format", "json")
    conforms("report", json.loads(output("report", *store)))
    conforms("explanation", json.loads(output("report", *store, "--explain", "disagreement")))
    conforms("pairs", json.loads(output("pairs", *store)))
    conforms("runs", json.loads(output("runs", *store)))
    if exchanges:
        conforms("pair", json.loads(output("show", "r00000", *store)))


def test_a_pair_that_failed(url: str, output: Print) -> None:
    record(url, [exchange(0, failed="out of memory")])
    conforms("pair", json.loads(output("show", "r00000", "--store", url, "--format", "json")))
    conforms("pairs", json.loads(output("pairs", "--store", url, "--format", "json")))


def test_diff(output: Print) -> None:
    from tests.casebook.cases import CASES

    for case in CASES:
        Path("b.http").write_bytes(case.baseline)
        Path("c.http").write_bytes(case.candidate)
        Path("r.json").write_text(json.dumps(case.request))
        conforms(
            "diff", json.loads(output("diff", "--request", "r.json", "b.http", "c.http", "--format", "json"))
        )


def test_lines(output: Print) -> None:
    pairs = [
        {"id": "a", "baseline": "At nine.", "candidate": "At nine."},
        {"baseline": "It costs $5.", "candidate": "It costs $6.", "repeat": "It costs $5."},
    ]
    Path("p.jsonl").write_text("".join(json.dumps(one) + "\n" for one in pairs))
    for line in output("compare", "p.jsonl", "--format", "json").splitlines():
        conforms("compare", json.loads(line))
    measured = (
        {
            "baseline": {"outcome": "ok", "e2e_s": 0.2},
            "candidate": {"outcome": "ok", "e2e_s": 0.3},
            "at": 1e9 + n,
        }
        for n in range(50)
    )
    Path("m.jsonl").write_text("".join(json.dumps(one) + "\n" for one in measured))
    for more in ((), ("--every", "10s")):
        for line in output("judge", "m.jsonl", "--format", "json", *more).splitlines():
            conforms("judge", json.loads(line))


def test_plan_and_doctor(output: Print) -> None:
    conforms("plan", json.loads(output("plan", "--requests-per-minute", "300", "--format", "json")))
    conforms("doctor", json.loads(output("doctor", "--format", "json")))


def test_cost(url: str, output: Print) -> None:
    record(url, alike())
    Path("p.yaml").write_text(
        "baseline: {kind: vllm, url: 'http://b:8000', price: {input: 1, output: 2}}\n"
        "candidate: {kind: vllm, url: 'http://c:8000', price: {input: 2, output: 3}}\n"
    )
    conforms("cost", json.loads(output("cost", "--store", url, "--config", "p.yaml", "--format", "json")))


def test_launch(tmp_path: Path) -> None:
    backend = Backend.model_validate(
        {"kind": "vllm", "url": "http://127.0.0.1:8000", "launch": {"model": "m"}}
    )
    file = tmp_path / "l.json"
    _keep(
        file, backend, "candidate", Command(words=("vllm", "serve", "m")), Told(version="0.32", models=("m",))
    )
    conforms("launch", json.loads(file.read_text()))


def test_what_is_told_while_a_run_goes_on() -> None:
    for made in (document(alike()), document([exchange(0)])):
        for news in news_of(made):
            conforms("notice", news.body())
        for age in (None, 1.0, 1e6):
            conforms("verdict", standing(facts_of(made), age=age, every=60.0, now="2099-01-01T00:00:00Z"))
    conforms("notice", trial("2026-01-01T00:00:00Z").body())
    conforms("verdict", standing(None, age=None, every=60.0, now="2026-01-01T00:00:00Z"))
    conforms("verdict", NOT_JUDGED)


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with simulator() as address:
        yield address


def test_check_and_bench(server: str, tmp_path: Path) -> None:
    Path("c.yaml").write_text(
        f"baseline: {{kind: vllm, url: '{server}'}}\ncandidate: {{kind: vllm, url: 'http://127.0.0.1:9'}}\n"
    )
    words = (
        ("check", "check", "--config", "c.yaml"),
        ("bench", "bench", "--url", server, "--concurrency", "2", "--requests", "12", "--lag-limit", "1s"),
    )
    for name, *command in words:
        done = subprocess.run(
            [sys.executable, "-m", "migrate", *command, "--format", "json"],
            capture_output=True,
            check=False,
            timeout=50,
            cwd=tmp_path,
            env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
        )
        assert done.stdout, done.stderr
        conforms(name, json.loads(done.stdout))
