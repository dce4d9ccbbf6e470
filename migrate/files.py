"""How many files this process may open; a connection is one."""

from __future__ import annotations

import contextlib
import resource

from migrate.errors import ConfigError

_MOST = 1_048_576
_OWN = 64
"""What a process opens besides connections, generously."""


def raise_file_limit() -> int:
    """Raises the soft limit, usually 1,024, as far as it may be raised. Returns how many files may be open."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _MOST if hard == resource.RLIM_INFINITY else min(_MOST, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    return most


def room_for(connections: int) -> None:
    """Makes room for so many connections at once. Raises ConfigError where there cannot be."""
    most = raise_file_limit()
    if connections + _OWN > most:
        raise ConfigError(
            f"{connections:,} connections at once need more files than the {most:,} that this process may open; "
            "ask for less, or raise the limit (ulimit -Hn)"
        )
