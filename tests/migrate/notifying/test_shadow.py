"""A whole run of ``migrate shadow`` whose candidate is gone: who hears of it, and what those who decide are answered."""

from __future__ import annotations

import asyncio
import json
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from migrate.store import Store
from tests.migrate.notifying.listening import hook
from tests.serving import free_port
from tests.shadowing import MODEL, Shadow, shadowing, simulator

CHAT = {"model": MODEL, "messages": [{"role": "user", "content": "When is high tide in Aberdeen?"}]}


def asked(url: str, body: Any = None) -> tuple[int, Any]:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def outage(folder: Path, notify: str) -> dict[str, Any]:
    """What was seen while a candidate that is not there got its copies. Blocks; the run has ended when it returns."""
    seen: dict[str, Any] = {}
    with simulator() as baseline:
        candidate = f"http://127.0.0.1:{free_port()}"
        with shadowing(folder, baseline=baseline, candidate=candidate, policy=notify) as run:
            seen["before"] = asked(f"{run.admin}/verdict")
            for _ in range(30):
                assert asked(f"{run.url}/v1/chat/completions", CHAT)[0] == 200
            seen["status"] = _judged(run)
            seen["verdict"] = asked(f"{run.admin}/verdict")
            seen["rollback"] = asked(f"{run.admin}/verdict/rollback", {"phase": "Progressing"})
            with urllib.request.urlopen(f"{run.admin}/metrics", timeout=20) as answer:
                seen["metrics"] = answer.read().decode()
    with Store.open(f"sqlite:///{folder}/m.db") as store:
        seen["ended"] = store.run().ended_at
    return seen


def _judged(run: Shadow) -> Any:
    deadline = time.monotonic() + 40
    while True:
        status = asked(f"{run.admin}/status")[1]
        if len(status["receivers"]) == 3 or time.monotonic() > deadline:
            return status
        time.sleep(0.2)


async def test_an_outage_is_told_at_once_and_the_end_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with hook() as mine, hook(202) as pager, hook(403) as away:
        monkeypatch.setenv("HOOK_URL", mine.url)
        monkeypatch.setenv("HOOK_SECRET", "a" * 40)
        monkeypatch.setenv("PAGER_KEY", "routing-key-4711")
        monkeypatch.setenv("SLACK_WEBHOOK", f"{away.url}/hidden")
        notify = (
            "notify: {every: 1h, webhook: {url_env: HOOK_URL, secret_env: HOOK_SECRET}, slack_env: SLACK_WEBHOOK, "
            f"pagerduty_env: PAGER_KEY, pagerduty_url: '{pager.url}'}}\n"
        )
        seen = await asyncio.to_thread(outage, tmp_path, notify)
    assert seen["before"][0] == 503 and seen["before"][1]["code"] == "not_judged"
    assert [one["state"] for one in mine.bodies] == ["HALT", "ended"]
    assert mine.bodies[0]["code"] == "halt" and mine.bodies[0]["urgent"]
    assert [one["event_action"] for one in pager.bodies] == ["trigger"]
    assert seen["verdict"][0] == 409 and seen["verdict"][1]["verdict"] == "ROLLBACK"
    assert seen["rollback"][0] == 200
    receivers = seen["status"]["receivers"]
    assert (
        receivers["slack"]["problem"]
        == "answered 403: the key may not do this, or the address is no longer in use"
    )
    assert receivers["webhook"]["problem"] is None
    assert 'llm_migrate_verdict{verdict="ROLLBACK"} 1.0' in seen["metrics"]
    assert 'llm_migrate_receiver_failed{receiver="slack"} 1.0' in seen["metrics"]
    assert seen["ended"] is not None
    everything = (
        json.dumps(seen)
        + (tmp_path / "shadow.log").read_text()
        + (tmp_path / "m.db").read_bytes().decode("latin-1")
    )
    for secret in ("hidden", "a" * 40, "routing-key-4711"):
        assert secret not in everything
    assert "Aberdeen" not in b"".join(body for one in (mine, pager) for _, _, body in one.got).decode()
