"""Who did something by hand, and why: as it is kept with what was done."""

from __future__ import annotations

import os
import pwd
import secrets
import socket

from migrate.config import Redact
from migrate.errors import ConfigError
from migrate.redact import Redactor

_LONGEST = 1_000


def user() -> str:
    """The operating system's name of who runs this; an environment variable could say anything."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return f"uid {os.geteuid()}"


def signed() -> str:
    """The user, and on which host."""
    return f"{user()}@{socket.gethostname()}"


def reason(why: str, rules: Redact, name: str = "WHY") -> str:
    """One harmless line without secrets. Raises ConfigError for one that says nothing, or far too much."""
    said = harmless(Redactor(rules, secrets.token_bytes(32)).text(why))
    if not said:
        raise ConfigError(f"{name} is empty: say it in a few words, for those who read it later")
    if len(said) > _LONGEST:
        raise ConfigError(
            f"{name} has {len(said):,} characters, at most {_LONGEST:,} are kept: name a ticket"
        )
    return said


def harmless(text: str) -> str:
    """A text as one line in which nothing acts on a terminal."""
    kept = (char if char.isprintable() or char.isspace() else "\ufffd" for char in text)
    return " ".join("".join(kept).split())
