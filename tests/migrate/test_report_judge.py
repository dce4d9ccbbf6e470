"""``migrate report`` and ``migrate compare`` with a judge model in the configuration."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from migrate.cli import main
from migrate.config import Config, parse
from migrate.errors import ConfigError
from tests.migrate.judges import Judge, judging
from tests.migrate.test_report import record
from tests.reports.builders import exchange

NINE = "The tide is high at nine in the morning at that port."
WORDS = "At that port, high tide comes at nine in the morning."
pytestmark = pytest.mark.timeout(240)  # loading a real model on a busy machine
HEAD = "baseline: {kind: vllm, url: 'http://127.0.0.1:1'}\n"


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MIGRATE_CONFIG", raising=False)


def configured(judge: Judge, **more: Any) -> Config:
    section = {"url": judge.url, "model": "j", "between": [0.0, 1.0]} | more
    text = f"{HEAD}judge: {json.dumps(section)}\nstore: {{url: 'sqlite:///m.db'}}\n"
    Path("migrate.yaml").write_text(text)
    return parse(text)


def run(*words: str) -> int:
    with pytest.raises(SystemExit) as done:
        main(list(words))
    assert isinstance(done.value.code, int)
    return done.value.code


def document(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    run("report", "--store", "sqlite:///m.db", "--format", "json", *words)
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_a_report_asks_once_and_says_the_same_again_without_the_model(
    capsys: pytest.CaptureFixture[str],
) -> None:
    exchanges = [exchange(n, NINE, WORDS if n % 4 == 0 else NINE) for n in range(40)]
    with judging(lambda body: "DIFFERENT") as judge:
        record("sqlite:///m.db", exchanges, config=configured(judge))
        first = document(capsys)
        asked = len(judge.asked)
    assert asked == 2  # ten pairs of the same texts
    categories = {cause["category"]: cause["count"] for cause in first["causes"]}
    assert categories["judge.different"] == 10
    notes = " ".join(first["notes"])
    assert "judge model j at" in notes and "10 different" in notes and "2 requests" in notes
    again = document(capsys)  # and there is no server any more
    assert again["verdict"] == first["verdict"] and again["causes"] == first["causes"]


def test_a_configuration_without_it_asks_nobody(capsys: pytest.CaptureFixture[str]) -> None:
    with judging(lambda body: "DIFFERENT") as judge:
        record("sqlite:///m.db", [exchange(0, NINE, WORDS)], config=configured(judge))
        Path("other.yaml").write_text(HEAD)
        found = document(capsys, "--config", "other.yaml")
    assert not judge.asked and "judge model" not in str(found["notes"])


def test_a_comparison_asks_too_redacts_and_keeps(capsys: pytest.CaptureFixture[str]) -> None:
    pair = {
        "baseline": f"{NINE} Write to ann@example.org.",
        "candidate": f"{WORDS} Write to ann@example.org.",
    }
    Path("pairs.jsonl").write_text(
        json.dumps(pair | {"prompt": "When is it?"}) + "\n" + json.dumps(pair) + "\n"
    )
    with judging(lambda body: "DIFFERENT") as judge:
        configured(judge)
        assert run("compare", "pairs.jsonl", "--format", "json") == 3
        out, err = capsys.readouterr()
    assert [json.loads(line)["findings"][-1]["category"] for line in out.splitlines()] == [
        "judge.different"
    ] * 2
    assert len(judge.asked) == 4 and "4 requests" in err
    assert "ann@example.org" not in str(judge.asked)
    asked = [one.get("request") for one in judge.shown]  # several at once, which come in any order
    assert sorted(asked, key=str) == [None, None, "When is it?", "When is it?"]


@pytest.mark.parametrize(
    ("section", "said"),
    [
        (
            "{url: 'https://api.example.com', model: j}",
            "line 2: judge: api.example.com is neither this machine nor in",
        ),
        ("{url: 'http://134744072', model: j}", "134744072 is neither this machine"),
        ("{url: 'http://8.8.8.8', model: j}", "8.8.8.8 is neither"),
        ("{url: 'http://judge:8000', model: j, between: [0.9, 0.6]}", "between is two cosines from 0 to 1"),
        ("{url: 'http://judge:8000'}", "judge.model: is required and missing"),
        ("{url: 'http://judge:8000', model: j, max_request: 9}", "did you mean max_requests?"),
        ("{url: 'http://judge:8000', model: j, max_requests: 1}", "judge.max_requests"),
    ],
)
def test_wrong_sections_are_one_line(section: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(f"{HEAD}judge: {section}\n")
    assert said in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        "http://localhost:1",
        "http://judge:8000",
        "http://10.1.2.3",
        "http://[::1]:9",
        "http://judge.svc.cluster.local",
    ],
)
def test_our_own_network_needs_no_consent(url: str) -> None:
    assert parse(f"{HEAD}judge: {{url: '{url}', model: j}}\n").judge
    outside = "{url: 'https://api.example.com/v1', model: j, third_party: true}"
    found = parse(f"{HEAD}judge: {outside}\n").judge
    assert found and found.url == "https://api.example.com"
