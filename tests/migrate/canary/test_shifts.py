"""The canaries of a real store: on SQLite, and on PostgreSQL where TEST_POSTGRES_URL names one."""

from __future__ import annotations

import multiprocessing
from pathlib import Path

import pytest

from migrate.canary import shift
from migrate.canary.section import Step
from migrate.canary.shift import Phase, Shift
from migrate.errors import ConfigError, StoreError
from migrate.store import Store, shifts
from tests.migrate.test_store import store  # noqa: F401 - the fixture

STEPS = tuple(Step(percent=percent) for percent in (1, 5, 25, 50, 100))
EACH = 5


def begin(where: Store, canary: str = "c1", at: float = 1_700_000_000.0) -> Shift:
    first = shift.started(canary, STEPS, at=at, who="gateway", why="GO of run x", run="r")
    shifts.begin(where, first)
    return first


def noting(who: str) -> shifts.Change:
    return lambda now: shift.noted(now, "join", at=1_700_000_001.0, who=who, why="here", run="r2")


def test_what_goes_in_comes_out(store: Store) -> None:  # noqa: F811
    assert shifts.latest(store) is None and shifts.log(store, "c1") == []
    first = begin(store)
    back, changed = shifts.append(
        store, "c1", lambda now: shift.rolled_back(now, at=1_700_000_009.5, who="ana", why="é", cool_down=60)
    )
    assert changed and back.phase is Phase.ROLLED_BACK and back.until == 1_700_000_069.5
    assert shifts.log(store, "c1") == [first, back]
    assert shifts.latest(store) == shifts.latest(store, "c1") == back


def test_the_one_that_began_last_is_the_latest(store: Store) -> None:  # noqa: F811
    begin(store, shifts.new_id(1_700_000_000.0))
    later = begin(store, shifts.new_id(1_700_000_001.0))
    assert shifts.latest(store) == later


def test_nothing_is_added_where_nothing_changes_or_is_refused(store: Store) -> None:  # noqa: F811
    first = begin(store)
    assert shifts.append(store, "c1", lambda _: None) == (first, False)
    with pytest.raises(ConfigError):
        shifts.append(store, "c1", lambda now: shift.finished(now, at=1.0, who="ana", why=""))
    assert shifts.log(store, "c1") == [first]
    with pytest.raises(StoreError, match="has no canary c2"):
        shifts.append(store, "c2", noting("ana"))
    with pytest.raises(StoreError, match="has a canary c1 already"):
        begin(store)


def test_who_was_overtaken_decides_again_on_what_is_now(store: Store) -> None:  # noqa: F811
    begin(store)
    seen: list[int] = []

    def change(now: Shift) -> Shift:
        if not seen:
            shifts.append(store, "c1", noting("faster"))
        seen.append(now.number)
        return shift.paused(now, at=1_700_000_002.0, who="ana", why="slow")

    after, _ = shifts.append(store, "c1", change)
    assert seen == [1, 2] and after.number == 3
    assert [row.who for row in shifts.log(store, "c1")] == ["gateway", "faster", "ana"]


def _append(url: str, who: str, ready: object) -> None:
    with Store.open(url) as one:
        ready.wait()  # type: ignore[attr-defined]
        for _ in range(EACH):
            shifts.append(one, "c1", noting(who))


def test_twenty_at_once_lose_nothing_and_leave_no_gap(store: Store) -> None:  # noqa: F811
    begin(store)
    context = multiprocessing.get_context("spawn")
    ready, names = context.Barrier(20), [f"gateway {number}" for number in range(20)]
    crowd = [context.Process(target=_append, args=(store.url, name, ready)) for name in names]
    for one in crowd:
        one.start()
    for one in crowd:
        one.join(50)
    assert [one.exitcode for one in crowd] == [0] * 20
    rows = shifts.log(store, "c1")
    assert [row.number for row in rows] == list(range(1, 20 * EACH + 2))
    assert sorted(row.who for row in rows[1:]) == sorted(names * EACH)


def test_a_store_that_takes_nothing_says_so(tmp_path: Path) -> None:
    with Store.open(f"sqlite:///{tmp_path}/m.db", create=True) as one:
        first = begin(one)
        with one.engine.begin() as connection:
            connection.exec_driver_sql(
                "create trigger full before insert on shifts begin select raise(abort, 'the disk is full'); end"
            )
        with pytest.raises(StoreError, match="cannot be written: the disk is full"):
            shifts.append(one, "c1", noting("ana"))
        assert shifts.log(one, "c1") == [first]
