"""What can go wrong with us (what goes wrong with a request is a value: ``replay.exchange.Failure``).

Each exception is one line for a person: what failed, the value, what to do next. Only a configuration has one for each mistake.
"""

from __future__ import annotations


class MigrateError(Exception):
    """Our own failure: exit code 1."""

    exit_code = 1


class ConfigError(MigrateError):
    """Wrong use or configuration; nothing was started: exit code 2."""

    exit_code = 2


class StoreError(MigrateError):
    """The store, or a run in it, is not there or cannot be used; nothing was started: exit code 2."""

    exit_code = 2
