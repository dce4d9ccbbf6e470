"""Preflight: is each backend there, healthy and the one that is meant, and what can it do, before a run depends on it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from time import monotonic
from typing import Any

from migrate.config import Backend
from migrate.preflight.answers import answers, lasting
from migrate.preflight.asking import Asking
from migrate.preflight.features import features
from migrate.preflight.keys import key_line
from migrate.preflight.lines import Line, Result
from migrate.preflight.pages import context, health, models, named, plain_on_tls
from migrate.preflight.reach import place, reach
from migrate.presets import facts_of, presets
from replay.backends import Facts
from replay.client import Client

__all__ = ["Line", "Result", "preflight"]

LIMIT_S = 8.5


async def preflight(
    backend: Backend, *, model: str | None, limit_s: float = LIMIT_S, fields: Mapping[str, Any] | None = None
) -> tuple[Line, ...]:
    """The lines on one backend, in the order in which a person would look.

    It stops at the first that fails: what follows would fail for the same reason. Never raises for what a server does, and
    takes ``limit_s`` seconds at most, a little more while a name is resolved. ``model``: the name to ask this backend for;
    ``None`` takes the first that it lists. ``fields``: of captured requests, that are to be asked with (``traffic.Uses``).
    """
    until = monotonic() + limit_s
    facts = facts_of(backend.kind, backend.preset)
    lines = await reach(place(backend.url), facts, connect_s=backend.timeouts.connect, limit_s=limit_s / 3)
    if not lines[-1].passed:
        return lines
    value = os.environ.get(backend.api_key_env) if backend.api_key_env else None
    key = key_line(backend.api_key_env, value, backend.preset, presets())
    lines = (*lines, key)
    if not key.passed:
        return lines
    async with Client() as client:
        asking = Asking(client, url=backend.url, key=value, model=model, until=until)
        found = (*lines, *await _asked(asking, facts, backend, fields or {}))
    return tuple({line.check: line for line in found}.values())


async def _asked(asking: Asking, facts: Facts, backend: Backend, fields: Mapping[str, Any]) -> list[Line]:
    """Pages, answers, features. A later line on a check takes the place of an earlier one."""
    keyed = backend.api_key_env is not None
    lines = [await health(asking, facts)]
    if not lines[-1].passed:
        return [await plain_on_tls(asking, backend.url) or lines[0]]
    listed = await models(asking, facts, backend, keyed=keyed)
    if not listed.line.passed:
        tls = None if lines[0].result is Result.OK else await plain_on_tls(asking, backend.url)
        return [*lines, tls or listed.line]
    lines += [listed.line, named(asking.model, listed, facts, backend)]
    if not lines[-1].passed:
        return lines
    asking.model = asking.model or next(iter(listed.names), None)
    healthy = lines[0].result is Result.OK
    lines += await answers(asking, facts, backend, healthy=healthy, keyed=keyed)
    if not lines[-1].passed:
        return lines
    lines += [*await features(asking, facts, fields), context(asking.model, listed, facts)]
    return [*lines, *await lasting(asking, facts)]
