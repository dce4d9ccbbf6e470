"""The salt of placeholders that have to be the same the next time: a key that stays with its user, never beside the data."""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
from pathlib import Path

from migrate.errors import ConfigError

_LENGTH = 32


def lasting_salt(run: str) -> bytes:
    """The salt of a run: the same for this user every time, and of no use to whoever has the store alone.

    Raises OSError when the key can neither be read nor made, ConfigError when it is damaged.
    """
    return hashlib.blake2b(run.encode(), key=_key(key_file()), digest_size=_LENGTH).digest()


def key_file() -> Path:
    """Where this user's key is: in the folder for what programs keep (``XDG_STATE_HOME``)."""
    state = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    return Path(state).expanduser() / "llm-migrate" / "redaction.key"


def _key(path: Path) -> bytes:
    """The key; made when there is none, by whichever process comes first."""
    if not path.exists():
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        made = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
        made.touch(mode=0o600, exist_ok=False)
        made.write_bytes(secrets.token_bytes(_LENGTH))
        with contextlib.suppress(FileExistsError):
            path.hardlink_to(made)
        made.unlink()
    key = path.read_bytes()
    if len(key) != _LENGTH:
        raise ConfigError(f"{path} is damaged; remove it, and a new key is made")
    return key
