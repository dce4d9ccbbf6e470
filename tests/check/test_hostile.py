"""Servers that mean harm, or are broken beyond repair: a check ends in time, with one clean line, and without a key in it."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import orjson
import pytest
import yaml

from migrate.config import Backend
from migrate.preflight import Result, preflight
from replay.simulator.server import serving
from replay.simulator.settings import Faults, Settings
from tests.check.checking import checked
from tests.check.servers import MODEL, Server, api, dying, everywhere, issued, on_tls, saying, simulated
from tests.replay.servers import reply

KEY = "sk-3f9Lq7Tz0WmVbX2nR8sKdJ5y"
ESCAPES = "\x1b[2J\x1b]0;owned\x07\x9b31m\u202e\r\n\x00"
ERROR = {
    "error": {
        "message": f"bad key {KEY} {ESCAPES} and sk-other1234567890abcdef",
        "type": "invalid_request_error",
    }
}
ENTRY = {"object": "model", "owned_by": "vllm"}


def endless(head: bytes, piece: bytes, pause_s: float) -> Server:
    """A server that never comes to the end of an answer."""

    async def act(_: bytes, __: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(head)
        with suppress(ConnectionError):
            while True:
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(pause_s)

    return saying(act)


OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
HOSTILE: dict[str, Server] = {
    "endless body": endless(CHUNKED, b"10000\r\n" + b"[" * 65_536 + b"\r\n", 0),
    "slow drip": endless(OK + b"Content-Length: 1000000\r\n\r\n", b" ", 0.05),
    "slow head": endless(b"HTTP/1.1 200 OK\r\n", b"X-Drip: 1\r\n", 0.05),
    "a line of 5 MB": everywhere(reply(b'{"data":"' + b"x" * 5_000_000 + b'"}')),
    "a head of 5 MB": everywhere(b"HTTP/1.1 200 OK\r\nX: " + b"x" * 5_000_000 + b"\r\n\r\n"),
    "nested too deeply": everywhere(reply(b"[" * 200_000)),
    "a gzip bomb": everywhere(reply(b"\x1f\x8b\x08" + b"\x00" * 100, headers=b"Content-Encoding: gzip\r\n")),
    "escapes": everywhere(reply(orjson.dumps(ERROR), status="400 Bad\x1b[31m")),
    "escapes in a redirect": everywhere(
        reply(b"", status="302 Found", headers=b"Location: http://x/\x1b[31m\xe2\x80\xae\r\n")
    ),
    "a flood": simulated(faults=Faults(flood=True)),
    "a stream without an end": api(b'data: {"choices":[{"index":0,"delta":{"content":"\x1b[2J"}}]}\n\n' * 10),
}


@pytest.mark.parametrize(("name", "form"), [*((name, "terminal") for name in HOSTILE), ("escapes", "json")])
async def test_it_ends_in_time_and_leaves_the_terminal_clean(
    name: str, form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CANDIDATE_KEY", KEY)
    async with HOSTILE[name](tmp_path) as url:
        backend = {"kind": "vllm", "url": url, "api_key_env": "CANDIDATE_KEY"}
        done = await checked(tmp_path, backend, form=form)
    assert done.code == 2 and done.took_s < 10
    assert all(one.isprintable() or one == "\n" for one in done.output), done.output
    assert KEY not in done.output and "sk-other" not in done.output and len(done.output) < 20_000


async def test_a_list_of_fifty_thousand_models_is_told_in_few_words(tmp_path: Path) -> None:
    cards = [{"id": f"\x1b[31mpier-{n}" + "x" * 20, **ENTRY} for n in range(50_000)]
    async with everywhere(reply(orjson.dumps({"data": cards})))(tmp_path) as url:
        done = await checked(tmp_path, {"kind": "relay", "url": url})
    assert done.code == 2 and done.took_s < 10 and len(done.output) < 10_000
    assert "no model 'harbor-7b'" in done.said("model") and "\x1b" not in done.output


async def test_a_slow_server_is_checked_as_far_as_there_is_time(tmp_path: Path) -> None:
    async with simulated(faults=Faults(extra_latency=0.6))(tmp_path) as url:
        start = time.monotonic()
        lines = await preflight(
            Backend.model_validate({"kind": "vllm", "url": url}), model=MODEL, limit_s=2.2
        )
    found = {line.check: line.result for line in lines}
    assert found["answer"] == found["stream"] == Result.OK and found["tools"] is Result.NOT_CHECKED, lines
    assert all(line.passed for line in lines) and time.monotonic() - start < 3


@pytest.mark.parametrize(("answers", "check"), [(2, "warm"), (3, "answer"), (6, "answer")])
async def test_an_engine_that_dies_during_the_check_fails_it(
    answers: int, check: str, tmp_path: Path
) -> None:
    async with dying(answers)(tmp_path) as url:
        done = await checked(tmp_path, {"kind": "vllm", "url": url})
    assert done.code == 2, done.output
    assert done.rows[check]["backends"]["candidate"]["result"] == "FAIL"
    assert "500" in done.said(check)
    features = [
        row["backends"].get("candidate")
        for name, row in done.rows.items()
        if name in ("tools", "seed", "logprobs")
    ]
    assert all(side is None or side["value"] != "refused" for side in features), features


def write(folder: Path, baseline: str, candidate: dict[str, str]) -> Path:
    path = folder / "migrate.yaml"
    config = {"baseline": {"kind": "vllm", "url": baseline, "model": MODEL}, "candidate": candidate}
    path.write_text(yaml.safe_dump(config), encoding="utf-8")
    return path


async def run(path: Path, *options: str, environment: dict[str, str] | None = None) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "migrate", "check", "--config", str(path), *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | (environment or {}),
    )


async def test_watch_waits_until_a_server_has_started(tmp_path: Path) -> None:
    slow = simulated(faults=Faults(starting=3))
    async with serving(Settings(models=(MODEL,))) as baseline, slow(tmp_path) as url:
        start = time.monotonic()
        process = await run(write(tmp_path, baseline, {"kind": "vllm", "url": url}), "--watch")
        out, said = await asyncio.to_thread(process.communicate, timeout=20)
    assert process.returncode == 0 and time.monotonic() - start > 2, out + said
    assert "waiting (" in said and "candidate: /health answered 503" in said and "FAIL" not in out


async def test_watch_does_not_wait_for_what_time_does_not_heal(tmp_path: Path) -> None:
    async with (
        serving(Settings(models=(MODEL,))) as baseline,
        simulated(models=("pier-1b",))(tmp_path) as url,
    ):
        process = await run(write(tmp_path, baseline, {"kind": "vllm", "url": url}), "--watch")
        await asyncio.to_thread(process.communicate, timeout=10)
    assert process.returncode == 2


async def test_an_interrupt_ends_the_watch(tmp_path: Path) -> None:
    async with serving(Settings(models=(MODEL,))) as baseline:
        process = await run(
            write(tmp_path, baseline, {"kind": "vllm", "url": "http://127.0.0.1:9"}), "--watch"
        )
        assert process.stderr is not None
        said = await asyncio.to_thread(process.stderr.readline)
        process.send_signal(signal.SIGINT)
        _, rest = await asyncio.to_thread(process.communicate, timeout=10)
    assert "cannot be reached" in said and "Traceback" not in rest and process.returncode == 130


async def test_a_certificate_of_our_own_issuer_is_taken_by_check_and_run_alike(tmp_path: Path) -> None:
    server = on_tls(issued("127.0.0.1"))(tmp_path)
    async with serving(Settings(models=(MODEL,))) as baseline, server as url:
        environment = {"SSL_CERT_FILE": str(tmp_path / "issuer.pem")}
        path = write(tmp_path, baseline, {"kind": "vllm", "url": url})
        process = await run(path, "--format", "json", environment=environment)
        out, said = await asyncio.to_thread(process.communicate, timeout=20)
    assert process.returncode == 0, out + said
    checks = {row["check"]: row["result"] for row in orjson.loads(out)["checks"]}
    assert checks["tls"] == "OK" and checks["answer"] == "OK"
