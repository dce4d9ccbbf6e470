"""docs/notify.md is true: its configuration is one, and its check takes what we sign and nothing else."""

from __future__ import annotations

import base64
import re
import secrets
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from migrate.config import parse
from migrate.notifying.news import trial
from migrate.notifying.receivers import Post, receivers

PAGE = (Path(__file__).parents[1] / "docs" / "notify.md").read_text(encoding="utf-8")


def block(kind: str) -> str:
    (found,) = re.findall(rf"```{kind}\n(.*?)```", PAGE, flags=re.DOTALL)
    return str(found)


def test_the_configuration_names_five_receivers(monkeypatch: pytest.MonkeyPatch) -> None:
    secret = base64.b64encode(secrets.token_bytes(32)).decode()
    for name in re.findall(r"_env: (\w+)", block("yaml")):
        monkeypatch.setenv(name, secret)
    for name in ("SLACK_WEBHOOK", "HOOK_URL"):
        monkeypatch.setenv(name, "https://hooks.example.com/x")
    section = parse("baseline: {kind: vllm, url: 'http://127.0.0.1:1'}\n" + block("yaml")).notify
    assert section is not None
    found = receivers(section)
    assert {one.name for one in found} == {"slack", "pagerduty", "opsgenie", "webhook", "email"}
    shared: dict[str, Any] = {}
    exec(block("python"), shared)
    genuine: Callable[..., bool] = shared["genuine"]
    (post,) = (
        one.message(trial("2026-12-02T09:00:00Z"), time.time()) for one in found if one.name == "webhook"
    )
    assert isinstance(post, Post)
    headers = dict(post.headers)
    assert genuine(secret, headers, post.body)
    assert not genuine(secret, headers, post.body + b" ")
    assert not genuine(secret, headers | {"webhook-timestamp": "1614265330"}, post.body)
