"""What a configuration may say of who is told. Whatever is a secret, or holds one, is named by its environment variable."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from migrate.variables import Variable
from reports.policy import Duration, Section

_ADDRESS = re.compile(r"[^\s@<>,;:\"\\()\[\]]+@[^\s@<>,;:\"\\()\[\]]+")


def _address(value: str) -> str:
    if not value.isascii() or _ADDRESS.fullmatch(value) is None:
        raise ValueError(f"{value!r} is not an address, such as oncall@example.com")
    return value


Address = Annotated[str, AfterValidator(_address)]


class Webhook(Section):
    """Any address that takes a POST of JSON, signed as https://www.standardwebhooks.com says."""

    url_env: Variable
    """The environment variable with the address: many hold a secret."""
    secret_env: Variable
    """The one with the secret of the signature: base64 of 24 to 64 bytes, as ``openssl rand -base64 32`` makes."""


class Email(Section):
    """E-mail by SMTP."""

    host: str = Field(min_length=1)
    """Of the mail server."""
    port: int = Field(default=587, ge=1, le=65_535)
    """587, 465 with ``tls: tls``, or what the server says."""
    tls: Literal["starttls", "tls", "none"] = "starttls"
    """``none`` sends without encryption, and takes no password."""
    user: str | None = None
    """``None``: the server asks for no login."""
    password_env: Variable | None = None
    """The environment variable with the user's password."""
    sender: Address = Field(alias="from")
    """Whom it is from."""
    to: tuple[Address, ...] = Field(min_length=1, max_length=20)
    """Whom it is for."""

    @model_validator(mode="after")
    def _login(self) -> Email:
        if (self.user is None) != (self.password_env is None):
            raise ValueError("email.user and email.password_env go together")
        if self.user is not None and self.tls == "none":
            raise ValueError("email.tls: none would send the password in the clear; use starttls or tls")
        return self


class Notify(Section):
    """Who is told when the verdict changes, on an outage of the candidate (HALT), and when a run ends."""

    every: Duration = Field(default=300.0, ge=1)
    """How long after one judgement of a run that goes on the next one begins."""
    webhook: Webhook | None = None
    """Any program of yours."""
    slack_env: Variable | None = None
    """The environment variable with the address of an incoming webhook of Slack."""
    pagerduty_env: Variable | None = None
    """The one with the integration key of PagerDuty's Events API v2."""
    pagerduty_url: str = "https://events.pagerduty.com"
    """Of its region; Europe has https://events.eu.pagerduty.com."""
    opsgenie_env: Variable | None = None
    """The one with the key of an Opsgenie API integration."""
    opsgenie_url: str = "https://api.opsgenie.com"
    """Of its region; Europe has https://api.eu.opsgenie.com."""
    email: Email | None = None
    """People."""
