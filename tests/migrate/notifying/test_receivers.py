"""What each receiver gets, on real sockets."""

from __future__ import annotations

import base64
import re
import ssl
from dataclasses import replace
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

import pytest
import trustme

from migrate.config import parse
from migrate.errors import ConfigError
from migrate.notifying.news import News, trial
from migrate.notifying.receivers import Receiver, receivers, signature
from migrate.notifying.sending import send
from tests.migrate.notifying.listening import Hook, endless, hook, mailbox

KEY = base64.b64encode(b"k" * 32).decode()
BASE = "baseline: {kind: vllm, url: 'http://127.0.0.1:1'}\n"
ROLLBACK = News(
    run="20261202-080000-4f2a",
    subject="verdict",
    state="ROLLBACK",
    at="2026-12-02T09:00:00Z",
    urgent=True,
    title="ROLLBACK: tensorrt-llm at http://10.0.0.9:8000",
    lines=("Why: Errors: 4.0 % more <@everyone> & others. (errors)", "Next: leave traffic where it is."),
    facts={"verdict": "ROLLBACK", "code": "errors", "valid_until": None},
)
GO = replace(ROLLBACK, state="GO", urgent=False, title="GO: tensorrt-llm", number=2)


def only(text: str) -> Receiver:
    """The one receiver that a configuration names."""
    section = parse(f"{BASE}notify: {text}").notify
    assert section is not None
    (one,) = receivers(section)
    return one


async def told(server: Hook, text: str, *news: News) -> None:
    for one in news:
        assert await send(only(text), one) is None
    assert server.got


@pytest.fixture(autouse=True)
def _secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOOK_SECRET", f"whsec_{KEY}")
    monkeypatch.setenv("PAGER_KEY", "routing-key-4711")
    monkeypatch.setenv("MAIL_PASSWORD", "open-sesame")


async def test_a_webhook_is_signed_as_standard_webhooks_says(monkeypatch: pytest.MonkeyPatch) -> None:
    async with hook() as server:
        monkeypatch.setenv("HOOK_URL", f"{server.url}/in?token=1")
        await told(server, "{webhook: {url_env: HOOK_URL, secret_env: HOOK_SECRET}}", ROLLBACK)
    path, headers, body = server.got[0]
    assert path == "/in?token=1" and headers["Content-Type"] == "application/json"
    name, at = headers["webhook-id"], int(headers["webhook-timestamp"])
    assert headers["webhook-signature"] == signature(base64.b64decode(KEY), name, at, body)
    assert name == "20261202-080000-4f2a.verdict.1.ROLLBACK"
    (document,) = server.bodies
    assert document["schema"] == {"name": "llm-migrate.notice", "version": 1}
    assert (document["state"], document["verdict"], document["urgent"]) == ("ROLLBACK", "ROLLBACK", True)


def test_the_signature_is_the_published_example() -> None:
    key = base64.b64decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    signed = signature(key, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}')
    assert signed == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


async def test_slack_shows_words_that_mention_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    async with hook() as server:
        monkeypatch.setenv("SLACK_WEBHOOK", f"{server.url}/services/T/B/x")
        await told(server, "{slack_env: SLACK_WEBHOOK}", replace(ROLLBACK, title="ROLLBACK: <!here> & a"))
    (body,) = server.bodies
    assert body["text"] == "ROLLBACK: &lt;!here&gt; &amp; a"
    assert {one["text"]["type"] for one in body["blocks"]} == {"plain_text"}
    assert "4.0 % more" in body["blocks"][1]["text"]["text"]


async def test_pagerduty_is_woken_by_rollback_and_let_alone_by_go() -> None:
    async with hook(202) as server:
        text = f"{{pagerduty_env: PAGER_KEY, pagerduty_url: '{server.url}'}}"
        await told(server, text, ROLLBACK, GO, replace(ROLLBACK, subject="end", state="ended"))
    opened, closed = server.bodies
    assert [path for path, _, _ in server.got] == ["/v2/enqueue"] * 2
    assert (opened["event_action"], closed["event_action"]) == ("trigger", "resolve")
    assert opened["dedup_key"] == closed["dedup_key"] == "llm-migrate-20261202-080000-4f2a"
    assert opened["routing_key"] == "routing-key-4711"
    payload = opened["payload"]
    assert payload["severity"] == "critical" and payload["summary"] and payload["source"]


async def test_opsgenie_opens_an_alert_and_closes_it_by_its_alias() -> None:
    async with hook(202) as server:
        await told(server, f"{{opsgenie_env: PAGER_KEY, opsgenie_url: '{server.url}'}}", ROLLBACK, GO)
    (path, headers, _), (closing, _, _) = server.got
    assert path == "/v2/alerts" and headers["Authorization"] == "GenieKey routing-key-4711"
    assert closing == "/v2/alerts/llm-migrate-20261202-080000-4f2a/close?identifierType=alias"
    opened = server.bodies[0]
    assert opened["priority"] == "P2" and opened["alias"] == "llm-migrate-20261202-080000-4f2a"
    assert len(opened["message"]) <= 130
    assert all(isinstance(value, str) for value in opened["details"].values())


@pytest.mark.parametrize("tls", ["none", "starttls"])
async def test_mail_arrives_whole(tls: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    secured = {"tls_context": context, "require_starttls": True} if tls == "starttls" else {}
    with mailbox(**secured) as (box, port):
        who = "from: bot@example.com, to: [a@example.com, b@example.com]"
        text = f"{{email: {{host: localhost, port: {port}, tls: {tls}, {who}}}}}"
        assert await send(only(text), ROLLBACK) is None
    ((whom, letter),) = box.got
    assert whom == ["a@example.com", "b@example.com"]
    assert letter["Subject"] == "[llm-migrate] ROLLBACK: tensorrt-llm at http://10.0.0.9:8000"
    assert letter["From"] == "bot@example.com" and parsedate_to_datetime(letter["Date"])
    assert "4.0 % more" in letter.get_content()


async def test_a_mail_server_that_does_not_encrypt_gets_no_mail() -> None:
    with mailbox() as (box, port):
        text = f"{{email: {{host: localhost, port: {port}, from: a@example.com, to: [b@example.com]}}}}"
        assert await send(only(text), ROLLBACK) == "offers no STARTTLS or no login; see email.tls"
    assert not box.got


async def test_what_fails_for_a_moment_is_sent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async with hook(500, (429, {"Retry-After": "0"}), 200) as server:
        monkeypatch.setenv("SLACK_WEBHOOK", server.url)
        await told(server, "{slack_env: SLACK_WEBHOOK}", ROLLBACK)
    assert len(server.got) == 3


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (401, "answered 401: it does not know the key"),
        (
            (302, {"Location": "/elsewhere"}),
            "answered 302; a redirect is not followed, name its target instead",
        ),
    ],
)
async def test_what_would_not_help_is_not_tried_again(
    answer: Any, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with hook(answer) as server:
        monkeypatch.setenv("SLACK_WEBHOOK", f"{server.url}/hidden")
        assert await send(only("{slack_env: SLACK_WEBHOOK}"), ROLLBACK) == why
    assert [path for path, _, _ in server.got] == ["/hidden"]


async def test_a_receiver_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("migrate.notifying.sending._ONE_S", 0.4)
    async with hook("hang") as server:
        monkeypatch.setenv("SLACK_WEBHOOK", server.url)
        monkeypatch.setattr("migrate.notifying.sending._LONGEST_S", 0.01)
        assert await send(only("{slack_env: SLACK_WEBHOOK}"), ROLLBACK) == "did not answer in time"
    assert 2 <= len(server.got) <= 4


@pytest.mark.parametrize("spoken", [b"", b"220-still here\r\n"])
async def test_a_mail_server_that_never_comes_to_the_point_is_given_up(
    spoken: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("migrate.notifying.sending._ONE_S", 0.2)
    monkeypatch.setattr("migrate.notifying.sending._LONGEST_S", 0.01)

    with endless(spoken) as port:
        text = f"{{email: {{host: 127.0.0.1, port: {port}, from: a@example.com, to: [b@example.com]}}}}"
        problem = await send(only(text), ROLLBACK)
    assert problem is not None and re.search("in time|timed out", problem)


async def test_a_certificate_that_nobody_vouches_for_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("migrate.notifying.sending._LONGEST_S", 0.01)
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    async with hook(tls=context) as server:
        monkeypatch.setenv("SLACK_WEBHOOK", f"https://localhost:{server.url.rpartition(':')[2]}/hidden")
        problem = await send(only("{slack_env: SLACK_WEBHOOK}"), ROLLBACK)
        assert problem is not None and "certificate verify failed" in problem and "hidden" not in problem
        authority.cert_pem.write_to_path(tmp_path / "ca.pem")
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
        assert await send(only("{slack_env: SLACK_WEBHOOK}"), ROLLBACK) is None
    assert [path for path, _, _ in server.got] == ["/hidden"]


@pytest.mark.parametrize(
    ("value", "line"),
    [
        ("", "environment variable SLACK_WEBHOOK is empty; export there what notify: names it for"),
        ("hooks.slack.com/services/hidden", "environment variable SLACK_WEBHOOK is not an https:// address"),
        ("https://h:0/hidden", "environment variable SLACK_WEBHOOK is not an https:// address"),
        (
            "https://h/\x1b[0mhidden",
            "environment variable SLACK_WEBHOOK holds characters that no key or address has",
        ),
        (
            "http://hooks.slack.com/hidden",
            "environment variable SLACK_WEBHOOK is http://, which sends secrets in the clear; use https://",
        ),
    ],
)
def test_a_wrong_address_is_told_and_not_shown(
    value: str, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLACK_WEBHOOK", value)
    with pytest.raises(ConfigError) as caught:
        only("{slack_env: SLACK_WEBHOOK}")
    assert str(caught.value) == line


@pytest.mark.parametrize("secret", ["short", "a" * 200, base64.b64encode(b"k" * 23).decode(), "über"])
def test_a_weak_secret_signs_nothing(secret: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOOK_URL", "https://example.com/")
    monkeypatch.setenv("HOOK_SECRET", secret)
    with pytest.raises(ConfigError) as caught:
        only("{webhook: {url_env: HOOK_URL, secret_env: HOOK_SECRET}}")
    assert secret not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "{slack_env: 'https://hooks.slack.com/services/T/B/x'}",
        "{email: {host: h, from: 'a@b', to: []}}",
        "{email: {host: h, from: 'a@b', to: ['a@b\\nBcc: c@d']}}",
        "{email: {host: h, tls: none, user: u, password_env: MAIL_PASSWORD, from: 'a@b', to: ['a@b']}}",
        "{email: {host: h, user: u, from: 'a@b', to: ['a@b']}}",
        "{webhook: {url_env: HOOK_URL}}",
    ],
)
def test_a_configuration_that_would_leak_or_fail_is_refused(text: str) -> None:
    with pytest.raises(ConfigError):
        parse(f"{BASE}notify: {text}")


def test_no_secret_is_in_what_a_receiver_prints(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLACK_WEBHOOK", "https://hooks.slack.com/services/hidden")
    one = only("{slack_env: SLACK_WEBHOOK}")
    assert "hidden" not in repr(one) and "hidden" not in repr(one.message(trial("2026-12-02T09:00:00Z"), 0.0))
