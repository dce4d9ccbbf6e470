"""How a gateway comes into a canary: it begins one, or joins the one that goes on."""

from __future__ import annotations

import time

from migrate.canary import shift
from migrate.canary.serving import gateway_name
from migrate.config import Config
from migrate.store import Run, Store, shifts
from replay.exchange import JSON


def current(store: Store, config: Config) -> shift.Shift | None:
    """The state of the canary from this baseline to this candidate; ``None`` without one, or where the last one has others."""
    now = shifts.latest(store)
    if now is None:
        return None
    rows = shifts.log(store, now.canary)
    if now.phase is shift.Phase.FINISHED and gateway_name(config) not in {row.who for row in rows}:
        return None  # what was finished is no leave for somebody new
    begun = next((row.run for row in rows if row.run), None)
    return now if begun is not None and same_backends(store.run(begun), config) else None


def same_backends(run: Run, config: Config) -> bool:
    """Whether a run had this baseline, this candidate and these models."""
    sides = (("baseline", config.baseline), ("candidate", config.candidate))
    asked = {arm: backend.model_dump(mode="json", by_alias=True) for arm, backend in sides if backend}
    return all(_named(run.config.get(arm)) == _named(asked.get(arm)) for arm, _ in sides)


def _named(backend: JSON | None) -> tuple[object, ...] | None:
    return None if backend is None else tuple(backend.get(key) or None for key in ("url", "model", "models"))


def entered(config: Config, *, run: str, why: str) -> shift.Shift:
    """Begins the canary of a configuration, or joins the one that goes on. Returns its state. Raises StoreError.

    ``run``: where this gateway records. ``why`` it may begin. A gateway that comes back goes on at the share that the store
    says, or with ``canary.restart: zero`` takes it to 0 for everybody.
    """
    section, at, who = config.canary, time.time(), gateway_name(config)
    with Store.open(config.store.url) as store:
        now = current(store, config)
        if now is None:
            first = shift.started(shifts.new_id(at), section.steps, at=at, who=who, why=why, run=run)
            shifts.begin(store, first)
            return first
        back = any(
            row.who == who and row.action in ("start", "join") for row in shifts.log(store, now.canary)
        )

        def joined(state: shift.Shift) -> shift.Shift:
            if back and section.restart == "zero" and state.share > 0:
                return shift.set_to(
                    state,
                    0.0,
                    section.steps,
                    at=at,
                    who=who,
                    why="the gateway started again (canary.restart: zero)",
                )
            return shift.noted(state, "join", at=at, who=who, why="the gateway started", run=run)

        return shifts.append(store, now.canary, joined)[0]
