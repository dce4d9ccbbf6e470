"""To whom news goes, and in which form: each receiver makes a message of it. Pure but for the environment, read once.

A pager is for being woken: ROLLBACK and HALT open an alert, any other verdict closes it, and nothing else is sent there.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from email.message import EmailMessage
from email.utils import formatdate
from urllib.parse import quote, urlsplit

from migrate.config import private
from migrate.errors import ConfigError
from migrate.notifying.news import HALT, News
from migrate.notifying.section import Email, Notify, Webhook
from replay.exchange import JSON
from replay.values import compact

_PAGERDUTY_SUMMARY = 1_024
_OPSGENIE_MESSAGE = 130
_SLACK_TEXT = 3_000
_SCALAR = (str, int, float)


@dataclass(frozen=True, slots=True, kw_only=True)
class Post:
    """A message by HTTP. Its address and headers may hold secrets."""

    url: str = field(repr=False)
    body: bytes
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Letter:
    """A message by SMTP."""

    via: Email
    password: str | None = field(repr=False)
    message: EmailMessage


@dataclass(frozen=True, slots=True, kw_only=True)
class Receiver:
    """Somebody who is told."""

    name: str
    message: Callable[[News, float], Post | Letter | None] = field(repr=False)
    """Of the news and the time of sending (epoch seconds); ``None`` where it is nothing for this receiver."""
    pager: bool = False
    """It opens alerts, and closes them."""


def receivers(section: Notify) -> tuple[Receiver, ...]:
    """All that a configuration names. Raises ConfigError for a secret that is not set, or that cannot be what it should be."""
    return tuple(_receivers(section))


def _receivers(section: Notify) -> Iterator[Receiver]:
    if section.webhook is not None:
        yield _webhook(section.webhook)
    if section.slack_env is not None:
        yield _slack(_address(section.slack_env))
    if section.pagerduty_env is not None:
        yield _pagerduty(_base(section.pagerduty_url), _secret(section.pagerduty_env))
    if section.opsgenie_env is not None:
        yield _opsgenie(_base(section.opsgenie_url), _secret(section.opsgenie_env))
    if section.email is not None:
        yield _email(section.email)


def _secret(name: str) -> str:
    value = os.environ.get(name, "").strip()
    if not value:
        raise ConfigError(f"environment variable {name} is empty; export there what notify: names it for")
    if not (value.isascii() and value.isprintable()):
        raise ConfigError(f"environment variable {name} holds characters that no key or address has")
    return value


def _address(name: str) -> str:
    """The address in a variable, which is not repeated when it is wrong."""
    return _sound(_secret(name), f"environment variable {name}")


def _base(url: str) -> str:
    return _sound(url, f"notify: {url!r}").rstrip("/")


def _sound(url: str, called: str) -> str:
    try:
        parts = urlsplit(url)
        host, fits = parts.hostname or "", parts.port != 0 and parts.scheme in ("http", "https")
    except ValueError:
        host, fits = "", False
    if not host or not fits:
        raise ConfigError(f"{called} is not an https:// address")
    if parts.scheme == "http" and not private(host):
        raise ConfigError(f"{called} is http://, which sends secrets in the clear; use https://")
    return url


def _json(url: str, body: JSON, *headers: tuple[str, str]) -> Post:
    return Post(
        url=url, body=compact(body).encode(), headers=(("Content-Type", "application/json"), *headers)
    )


def _webhook(section: Webhook) -> Receiver:
    url, key = _address(section.url_env), _signing_key(section.secret_env)

    def message(news: News, at: float) -> Post:
        post = _json(url, news.body())
        signed = signature(key, news.id, int(at), post.body)
        stamp = (("webhook-id", news.id), ("webhook-timestamp", str(int(at))), ("webhook-signature", signed))
        return Post(url=url, body=post.body, headers=post.headers + stamp)

    return Receiver(name="webhook", message=message)


def _signing_key(name: str) -> bytes:
    try:
        key = base64.b64decode(_secret(name).removeprefix("whsec_"), validate=True)
    except binascii.Error:
        key = b""
    if not 24 <= len(key) <= 64:
        raise ConfigError(
            f"environment variable {name} is not base64 of 24 to 64 bytes; make one with: openssl rand -base64 32"
        )
    return key


def signature(key: bytes, name: str, at: int, body: bytes) -> str:
    """Of a message, as Standard Webhooks has it: HMAC-SHA256 of ``name.at.body`` in base64, after ``v1,``."""
    signed = hmac.new(key, f"{name}.{at}.".encode() + body, hashlib.sha256).digest()
    return f"v1,{base64.b64encode(signed).decode()}"


def _slack(url: str) -> Receiver:
    def message(news: News, at: float) -> Post:
        lines = "\n".join(news.lines)[:_SLACK_TEXT]
        plain = [{"type": "plain_text", "text": text, "emoji": False} for text in (news.title[:150], lines)]
        blocks = [{"type": "header", "text": plain[0]}, {"type": "section", "text": plain[1]}]
        return _json(url, {"text": _escaped(news.title), "blocks": blocks})

    return Receiver(name="slack", message=message)


def _escaped(text: str) -> str:
    """Text that mentions nobody and links nowhere."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _pagerduty(base: str, key: str) -> Receiver:
    def message(news: News, at: float) -> Post | None:
        if news.subject == "end":
            return None
        action = "trigger" if news.urgent or news.subject == "test" else "resolve"
        body: JSON = {"routing_key": key, "event_action": action, "dedup_key": _alert(news)}
        if action == "trigger":
            body["payload"] = _payload(news)
            body["client"] = "llm-migrate"
        return _json(f"{base}/v2/enqueue", body)

    return Receiver(name="pagerduty", message=message, pager=True)


def _payload(news: News) -> JSON:
    return {
        "summary": news.title[:_PAGERDUTY_SUMMARY],
        "source": "llm-migrate",
        "severity": "critical" if news.urgent else "info",
        "timestamp": news.at,
        "custom_details": {"text": news.text} | news.facts,
    }


def _opsgenie(base: str, key: str) -> Receiver:
    header = ("Authorization", f"GenieKey {key}")

    def message(news: News, at: float) -> Post | None:
        if news.subject == "end":
            return None
        if not news.urgent and news.subject != "test":
            alias = quote(_alert(news), safe="")
            url = f"{base}/v2/alerts/{alias}/close?identifierType=alias"
            return _json(url, {"source": "llm-migrate", "note": news.title}, header)
        alert = {
            "message": news.title[:_OPSGENIE_MESSAGE],
            "alias": _alert(news),
            "description": news.text,
            "details": {name: str(value) for name, value in news.facts.items() if isinstance(value, _SCALAR)},
            "source": "llm-migrate",
            "priority": "P1" if news.state == HALT else "P2" if news.urgent else "P5",
        }
        return _json(f"{base}/v2/alerts", alert, header)

    return Receiver(name="opsgenie", message=message, pager=True)


def _alert(news: News) -> str:
    """What a pager knows an alert by: one for a run, however often it changes."""
    return f"llm-migrate-{news.run}"


def _email(section: Email) -> Receiver:
    password = None if section.password_env is None else _secret(section.password_env)

    def message(news: News, at: float) -> Letter:
        letter = EmailMessage()
        letter["Subject"] = f"[llm-migrate] {news.title}"[:200]
        letter["From"], letter["To"] = section.sender, ", ".join(section.to)
        letter["Date"] = formatdate(at)
        letter["Message-ID"] = f"<{news.id}@llm-migrate.invalid>"
        letter["Auto-Submitted"] = "auto-generated"
        letter.set_content(news.text + "\n")
        return Letter(via=section, password=password, message=letter)

    return Receiver(name="email", message=message)
