"""Presets of well-known relays: data in ``configs/backends.yaml``, and the facts of a configured backend."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import replace

import yaml

from migrate.shipped import shipped
from replay.backends import BACKENDS, Facts
from reports.policy import Section


class Preset(Section):
    """One entry: where it is, how its keys begin, and the facts (``replay.backends.Facts``) that differ from any relay's."""

    name: str
    url: str
    key_prefix: str = ""
    """How its keys begin; empty: not known, or in no way that tells."""
    third_party: bool = True
    owner: str | None = None
    health: str | None = None
    ready: str | None = None
    version: str | None = None
    metrics: tuple[str, ...] = ()
    lists_models: bool = True


@functools.cache
def presets() -> Mapping[str, Preset]:
    """All presets by name."""
    data = yaml.safe_load(shipped("backends.yaml"))
    return {name: Preset.model_validate(fields) for name, fields in data.items()}


def facts_of(kind: str, preset: str | None) -> Facts:
    """What is known of a backend of that kind and, for a relay, preset."""
    if preset is None:
        return BACKENDS[kind]
    known = presets()[preset]
    return replace(
        BACKENDS[kind],
        name=known.name,
        owner=known.owner,
        health=known.health,
        ready=known.ready,
        version=known.version,
        metrics=known.metrics,
        lists_models=known.lists_models,
    )
