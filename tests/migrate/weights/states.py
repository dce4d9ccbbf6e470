"""A canary in a store, without a gateway."""

from __future__ import annotations

import time
from dataclasses import replace

from migrate.canary.section import Step
from migrate.canary.shift import Shift, rolled_back, started
from migrate.store import Store, shifts


def begun(store: Store, share: float) -> str:
    """Begins a canary at ``share``; returns its id."""
    at = time.time()
    steps = [Step.model_validate({"percent": 1})]
    first = started(shifts.new_id(at), steps, at=at, who="test", why="a test", run="")
    shifts.begin(store, replace(first, share=share))
    return first.canary


def rolled(now: Shift) -> Shift | None:
    return rolled_back(now, at=time.time(), who="test", why="a test", cool_down=60)
