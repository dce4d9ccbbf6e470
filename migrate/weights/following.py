"""A proxy that does what the canary of a store says, for as long as this runs."""

from __future__ import annotations

import time
from collections.abc import Callable

from migrate.errors import MigrateError, StoreError
from migrate.store import Store, shifts

_EVERY_S = 0.5
_AGAIN_S = 5.0
_LOST_S = 60.0
"""How long the share stays without a store; as a gateway's ``canary.lost_store`` is by default."""


def share_of(store: Store) -> float:
    """What the canary that began last says; without one the baseline answers all. Raises StoreError."""
    now = shifts.latest(store)
    return now.share if now else 0.0


def follow(
    store: Store, write: Callable[[float], None], say: Callable[[str], None], *, lost: float = _LOST_S
) -> None:
    """Calls ``write`` with the share, now and whenever it has changed; never returns. A change is seen within half a second.

    A write that fails is tried again every five seconds. A store that cannot be read for ``lost`` seconds is a share of 0.
    """
    written: float | None = None
    wanted, heard, said = 0.0, time.monotonic(), ""
    while True:
        wait, problem = _EVERY_S, ""
        try:
            wanted, heard = share_of(store), time.monotonic()
        except StoreError as error:
            wanted, problem = wanted if time.monotonic() - heard < lost else 0.0, str(error)
        if wanted != written:
            try:
                write(wanted)
                written = wanted
                say(f"share {wanted:.2%}")
            except (MigrateError, OSError) as error:
                wait, problem = _AGAIN_S, str(error)
        if problem and problem != said:
            say(problem)
        said = problem
        time.sleep(wait)
