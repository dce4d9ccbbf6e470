"""``migrate check`` with the preset of llama.cpp on its real server, and what that server says of itself during a run."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from migrate.config import Backend
from migrate.preflight import Line, Result, preflight
from migrate.presets import facts_of
from migrate.store import Store
from replay.decoding import parse_object
from replay.exchange import Arm
from replay.failures import envelope_of
from tests.servers.server import llama_server
from tests.serving import ROOT
from tests.shadowing import MODEL, Shadow

FACTS = facts_of("relay", "llama-cpp")
TOLD = {
    "answer": (Result.OK, None),
    "stream": (Result.OK, None),
    "tools": (Result.OK, None),  # taken; the tiny model calls none by itself
    "schema": (Result.OK, "served"),
    "logprobs": (Result.OK, "served"),
    "seed": (Result.OK, "repeats"),
    "usage": (Result.OK, "served"),
    "other fields": (Result.OK, "ignored"),
    "other models": (Result.DIFFERS, "answered"),
    "errors": (Result.NOT_CHECKED, None),  # an empty list of messages is answered
    "context": (Result.OK, 1_024),
}
"""What a check finds out of it, by line."""


def check(url: str, model: str = MODEL, **fields: object) -> dict[str, Line]:
    backend = Backend.model_validate({"preset": "llama-cpp", "url": url, **fields})
    return {line.check: line for line in asyncio.run(preflight(backend, model=model))}


def test_what_it_does_is_told(llama: list[str]) -> None:
    lines = check(llama[0])
    assert all(line.passed for line in lines.values()), lines
    assert {name: (lines[name].result, lines[name].value) for name in TOLD} == TOLD


def test_the_command_puts_two_of_them_side_by_side(llama: list[str], tmp_path: Path) -> None:
    config = tmp_path / "migrate.yaml"
    config.write_text(
        f"baseline: {{preset: llama-cpp, url: '{llama[0]}', model: {MODEL}}}\n"
        f"candidate: {{preset: llama-cpp, url: '{llama[1]}/v1', model: {MODEL}}}\n"
    )
    command = [sys.executable, "-m", "migrate", "check", "--config", str(config)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "FAIL" not in done.stdout and "1,024 tokens" in done.stdout


@pytest.mark.parametrize(
    ("fields", "name", "said"),
    [
        ({"model": "harbor-7b-instruct"}, "model", "models: {harbor-7b-instruct: harbor-7b}"),
        ({"path": "/api/v1"}, "models", "url: http://127.0.0.1"),
        ({"scheme": "https"}, "tls", "url: http://"),
    ],
)
def test_what_people_get_wrong_is_found(
    llama: list[str], fields: dict[str, str], name: str, said: str
) -> None:
    url = llama[0].replace("http", fields.get("scheme", "http"), 1) + fields.get("path", "")
    lines = check(url, fields.get("model", MODEL))
    assert not lines[name].passed and said in lines[name].change, lines


def test_a_wrong_key_is_told_and_a_right_one_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with llama_server(tmp_path, "--api-key", "sk-harbour-0123456789") as url:
        monkeypatch.setenv("THE_KEY", "sk-harbour-9876543210")
        lines = check(url, api_key_env="THE_KEY")
        assert not lines["key"].passed and "401" in lines["key"].detail
        monkeypatch.setenv("THE_KEY", "sk-harbour-0123456789")
        lines = check(url, api_key_env="THE_KEY")
        assert all(line.passed for line in lines.values()), lines
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(f"{url}/v1/chat/completions", data=b"{}", timeout=10)
        envelope = parse_object(refused.value.read())
    assert envelope is not None and envelope_of(envelope, b"") == "openai"


def test_its_routes_are_there(llama: list[str]) -> None:
    for route in (FACTS.health, *FACTS.metrics):
        assert route is not None
        with urllib.request.urlopen(llama[0] + route, timeout=10) as answer:
            assert answer.status == 200


def test_its_metrics_are_kept_and_are_absent_where_it_has_none(shadow: Shadow) -> None:
    """Without ``--metrics`` it answers 501: nothing is kept of that side, and no 0 stands for it."""
    deadline = time.monotonic() + 20
    with Store.open(shadow.store) as store:
        while len((kept := store.readings(store.run().id)).get(Arm.BASELINE, ())) < 2:
            assert time.monotonic() < deadline, kept
            time.sleep(0.2)
    assert Arm.CANDIDATE not in kept
    seen = kept[Arm.BASELINE][0]
    assert (seen.running, seen.waiting) == (0, 0)
    assert seen.kv_cache is seen.preemptions is None
