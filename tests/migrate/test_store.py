"""The store on real SQLite files, and on PostgreSQL where TEST_POSTGRES_URL names one."""

from __future__ import annotations

import dataclasses
import multiprocessing
import os
import random
import signal
import sqlite3
import stat
import subprocess
import sys
import textwrap
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st

from migrate.address import shown
from migrate.errors import StoreError
from migrate.store import Store, Writer, codec, schema
from replay.exchange import Arm, Exchange
from reports.acknowledgement import Acknowledgement
from tests.migrate.samples import observation, observations, request

URLS = ["sqlite", *(["postgresql"] if "TEST_POSTGRES_URL" in os.environ else [])]


@pytest.fixture(params=URLS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    if request.param == "sqlite":
        with Store.open(f"sqlite:///{tmp_path}/m.db", create=True) as opened:
            yield opened
        return
    with Store.open(os.environ["TEST_POSTGRES_URL"], create=True) as opened:
        schema.metadata.drop_all(opened.engine)
    with Store.open(os.environ["TEST_POSTGRES_URL"], create=True) as opened:
        yield opened


def begin(store: Store, at: float = 1_700_000_000.0) -> str:
    return store.begin_run(kind="shadow", config={"a": 1}, policy={"alpha": 0.05}, seed=7, at=at)


def written(store: Store, run: str, *records: object) -> None:
    writer = Writer(store, run)
    assert all(writer.offer(record) for record in records)  # type: ignore[arg-type]
    assert writer.close(10)


@given(observations)
def test_any_observation_comes_back_equal(seen: object) -> None:
    row, bodies = codec.observation_rows("run", seen)  # type: ignore[arg-type]
    answer, raw = (codec.unpack(bodies[key]) if (key := row[name]) else None for name in ("answer", "raw"))
    assert codec.observation_value(row, answer, raw) == seen


@given(st.binary(max_size=5_000))
def test_any_body_comes_back_also_from_a_store_of_the_first_schema(content: bytes) -> None:
    _, packed = codec.pack(content)
    assert codec.unpack(packed) == codec.unpack(zlib.compress(content, 1)) == content
    for cut in (packed[:-1], packed[:2], b"nothing of ours"):
        with pytest.raises(ValueError, match=r"."):
            codec.unpack(cut)


def test_exchanges_come_back_in_order_of_admission_with_their_arms(store: Store) -> None:
    run = begin(store)
    late, early = request("b", at=2.0), request("a", at=1.0)
    base, cand, rep = (observation("b", arm) for arm in Arm)
    written(store, run, cand, late, early, base, rep)
    got = list(store.exchanges(run))
    assert [exchange.request for exchange in got] == [early, late]
    assert got[0] == Exchange(request=early)
    assert got[1].candidate is not None and got[1].candidate.answer == cand.answer
    assert got[1].baseline is not None and got[1].repeat is not None


def test_raw_bodies_are_read_one_observation_at_a_time(store: Store) -> None:
    run = begin(store)
    seen = observation("a", Arm.CANDIDATE)
    written(store, run, request("a"), seen)
    assert store.observation(run, "a", Arm.CANDIDATE) == seen
    assert store.observation(run, "a", Arm.BASELINE) is None


def test_the_same_record_twice_is_stored_once(store: Store) -> None:
    run = begin(store)
    written(store, run, request(), observation(text="first"))
    written(store, run, request(), observation(text="second"))
    (got,) = store.exchanges(run)
    assert got.baseline is not None and got.baseline.answer is not None
    assert got.baseline.answer.first.text == "first"


def test_equal_bodies_are_stored_once(store: Store) -> None:
    run = begin(store)
    written(store, run, *(request(str(n)) for n in range(20)))
    with store.engine.connect() as connection:
        assert connection.scalar(sa.select(sa.func.count()).select_from(schema.bodies)) == 1


def test_counters_keep_their_latest_value(store: Store) -> None:
    run = begin(store)
    writer = Writer(store, run)
    writer.counters({"passed": 1, "mirrored": 1})
    writer.counters({"passed": 5})
    assert writer.close(10)
    assert store.counters(run) == {"passed": 5, "mirrored": 1}


def test_acknowledgements_come_back_in_order_and_belong_to_their_run(store: Store) -> None:
    run, other = begin(store, at=1.0), begin(store, at=2.0)
    late, early = (
        Acknowledgement(at=at, who="ana", why=f"disk {at:g}", code="errors") for at in (1_700_000_000.5, 9.0)
    )
    store.acknowledge(run, late)
    store.acknowledge(run, early)
    assert store.acknowledgements(run) == (early, late)
    assert store.acknowledgements(other) == ()


def test_a_store_of_the_third_schema_learns_to_keep_acknowledgements(store: Store) -> None:
    run, url = begin(store), store.engine.url.render_as_string(hide_password=False)
    with store.engine.begin() as connection:
        schema.acknowledgements.drop(connection)
        connection.execute(schema.meta.update().values(value="3"))
    with Store.open(url) as again:
        assert again.acknowledgements(run) == ()
        again.acknowledge(run, Acknowledgement(at=1.0, who="ana", why="disk", code="errors"))
        assert len(again.acknowledgements(run)) == 1


def test_runs_are_listed_and_the_latest_is_the_default(store: Store) -> None:
    first, second = begin(store, at=1.0), begin(store, at=2.0)
    store.end_run(first, at=9.0)
    assert [run.id for run in store.runs()] == [first, second]
    assert store.run().id == second
    assert (store.run(first).status, store.run(first).ended_at, store.run(second).ended_at) == (
        "ended",
        9.0,
        None,
    )
    assert store.run(first).policy == {"alpha": 0.05}


def test_an_unknown_run_names_the_closest(store: Store) -> None:
    with pytest.raises(StoreError, match="no run yet"):
        store.run()
    run = begin(store)
    with pytest.raises(StoreError, match=f"did you mean {run}"):
        store.run(run[:-1] + "x")


def test_vectors_are_cached_by_model_and_text(store: Store) -> None:
    hashes = [str(n) for n in range(1_200)]
    store.put_vectors("m", {key: key.encode() for key in hashes})
    store.put_vectors("m", {"0": b"other"})
    assert store.vectors("m", [*hashes, "absent"]) == {key: key.encode() for key in hashes}
    assert store.vectors("other", hashes) == {}


def test_bodies_of_old_runs_are_forgotten_and_their_measurements_stay(store: Store) -> None:
    old, new = begin(store, at=100.0), begin(store, at=200.0)
    written(store, old, request("a", body=b"old"), observation("a", text="old answer"))
    written(store, new, request("b", body=b"new"), observation("b", text="new answer"))
    assert store.forget_bodies(before=100.0) == 0
    assert store.forget_bodies(before=150.0) == 3
    (forgotten,), (kept,) = store.exchanges(old), store.exchanges(new)
    assert forgotten.request.body == b"" and forgotten.baseline is not None
    assert forgotten.baseline.answer is None and forgotten.baseline.timing == observation().timing
    assert kept.request.body == b"new" and kept.baseline is not None and kept.baseline.answer is not None


def test_the_file_and_its_journals_belong_to_their_owner_alone(tmp_path: Path) -> None:
    with Store.open(f"sqlite:///{tmp_path}/m.db", create=True) as store:
        begin(store)
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert set(modes) == {"m.db", "m.db-wal", "m.db-shm"}
    assert set(modes.values()) == {0o600}


def test_a_newer_schema_is_refused_with_what_to_do(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/m.db"
    with Store.open(url, create=True) as store, store.engine.begin() as connection:
        connection.execute(schema.meta.update().values(value=str(schema.VERSION + 1)))
    with pytest.raises(StoreError, match=r"newer llm-migrate .*upgrade"):
        Store.open(url)


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("sqlite:////nowhere/at/all.db", "does not exist"),
        ("sqlite://", "has to be a file"),
        ("not a url", "no database URL"),
        ("postgresql://u:secret@127.0.0.1:1/db", "cannot be opened|needs its driver"),
    ],
)
def test_a_store_that_cannot_be_opened_is_one_line_without_a_password(url: str, words: str) -> None:
    with pytest.raises(StoreError, match=words) as caught:
        Store.open(url)
    assert "\n" not in str(caught.value) and "secret" not in str(caught.value)


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    path.write_bytes(b"this is not a database at all, but long enough to look at" * 20)
    with pytest.raises(StoreError, match="is no store of llm-migrate"):
        Store.open(f"sqlite:///{path}")


def test_a_full_writer_refuses_and_counts_without_waiting(tmp_path: Path) -> None:
    with Store.open(f"sqlite:///{tmp_path}/m.db", create=True) as store:
        run = begin(store)
        lock = sqlite3.connect(tmp_path / "m.db", isolation_level=None)
        lock.execute("BEGIN IMMEDIATE")
        writer = Writer(store, run, capacity=10)
        start = time.monotonic()
        taken = sum(writer.offer(request(str(n))) for n in range(50))
        assert time.monotonic() - start < 0.1
        assert taken == 10 and writer.status()["refused"] == 40
        lock.execute("COMMIT")
        assert writer.close(20)
        assert len(list(store.exchanges(run))) == 10


def test_a_disk_that_takes_no_more_is_shown_and_writing_resumes(tmp_path: Path) -> None:
    with Store.open(f"sqlite:///{tmp_path}/m.db", create=True) as store:
        run = begin(store)
        with store.engine.connect() as connection:
            pages = connection.exec_driver_sql("PRAGMA page_count").scalar_one()
        # A bounded file stands for a full disk: SQLite answers both with SQLITE_FULL.
        sa.event.listen(store.engine, "connect", lambda c, _: c.execute(f"PRAGMA max_page_count={pages}"))
        store.engine.dispose()
        writer = Writer(store, run)
        body = random.Random(1).randbytes(200_000)
        assert writer.offer(request("big", body=body))
        wait_for(lambda: writer.status()["error"] is not None)
        assert "full" in writer.status()["error"]
        sa.event.listen(store.engine, "connect", lambda c, _: c.execute("PRAGMA max_page_count=1000000"))
        store.engine.dispose()
        wait_for(lambda: writer.status()["written"] == 1)
        assert writer.status()["error"] is None and writer.close(10)


def test_closing_on_a_dead_disk_ends_in_time_and_says_so(tmp_path: Path) -> None:
    with Store.open(f"sqlite:///{tmp_path}/m.db", create=True) as store:
        run = begin(store)
        with store.engine.begin() as connection:
            connection.execute(sa.DDL("DROP TABLE requests"))
        writer = Writer(store, run)
        writer.offer(request())
        start = time.monotonic()
        assert writer.close(5) is False
        assert time.monotonic() - start < 5


WRITER = """
    import sys, time
    from migrate.store import Store, Writer
    from tests.migrate.samples import observation, request
    with Store.open(sys.argv[1], create=True) as store:
        run = store.begin_run(kind="shadow", config={}, policy={}, seed=1, at=1.0)
        writer = Writer(store, run)
        for n in range(10**9):
            while not (writer.offer(request(str(n), at=n)) and writer.offer(observation(str(n)))):
                time.sleep(0.01)
            if n % 50 == 0:
                time.sleep(0.005)
                print(writer.status()["written"], flush=True)
"""


@pytest.mark.parametrize("seed", range(3))
def test_killed_at_any_moment_the_file_opens_and_holds_what_was_flushed(tmp_path: Path, seed: int) -> None:
    url = f"sqlite:///{tmp_path}/m.db"
    command = [sys.executable, "-c", textwrap.dedent(WRITER), url]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]) as child:
        assert child.stdout is not None
        while int(child.stdout.readline()) == 0:
            pass
        time.sleep(0.2 + random.Random(seed).random())
        child.send_signal(signal.SIGKILL)
        flushed = int(child.stdout.read().split()[-1])
    with Store.open(url) as store:
        got = list(store.exchanges(store.run().id))
        kept = len(got) + sum(exchange.baseline is not None for exchange in got)
        assert kept >= flushed > 0
        with store.engine.connect() as connection:
            assert connection.exec_driver_sql("PRAGMA integrity_check").scalar_one() == "ok"


def wait_for(condition: object, limit: float = 10.0) -> None:
    deadline = time.monotonic() + limit
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < deadline, "condition was not met in time"
        time.sleep(0.02)


def opening(url: str, barrier: Any, told: Any) -> None:
    """In a process of its own: opens a store at the same moment as others do."""
    barrier.wait()
    try:
        with Store.open(url, create=True) as store:
            told.put(store.only_run(kind="import", config={}, policy={}, seed=1, at=time.time()))
    except StoreError as error:
        told.put(str(error))


def test_a_new_store_may_be_opened_by_several_processes_at_once(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    for turn in range(5):
        barrier, told = context.Barrier(4), context.Queue()
        url = f"sqlite:///{tmp_path}/{turn}.db"
        several = [context.Process(target=opening, args=(url, barrier, told)) for _ in range(4)]
        for one in several:
            one.start()
        runs = {told.get(timeout=20) for _ in several}
        for one in several:
            one.join()
        with Store.open(url) as store:
            assert runs == {run.id for run in store.runs()} and len(runs) == 1


def test_a_record_that_no_database_takes_costs_no_other(store: Store) -> None:
    run = begin(store)
    writer = Writer(store, run)
    for number in range(600):
        seen = observation(f"r{number}", Arm.BASELINE)
        poison = number in (3, 300, 301)
        assert writer.offer(dataclasses.replace(seen, status=2**70) if poison else seen)
    assert writer.close(20)
    with store.engine.connect() as connection:
        found = connection.scalar(sa.select(sa.func.count()).select_from(schema.observations))
    assert found == 597 and writer.status()["refused"] == 3


def test_a_store_that_refuses_to_be_written_is_one_line(store: Store) -> None:
    with store.engine.begin() as connection:
        connection.exec_driver_sql(
            "create trigger no before insert on runs begin select raise(abort, 'no more'); end"
        )
    with pytest.raises(StoreError, match="cannot be written: no more"):
        begin(store)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("sqlite:////tmp/a:b@c/m.db", "sqlite:////tmp/a:b@c/m.db"),
        ("postgresql://ada@far/db?sslmode=require", "postgresql://ada@far/db?sslmode=require"),
        ("postgresql://ada:hun@te/r2@far:5432/db", "postgresql://ada:***@far:5432/db"),
        (
            "postgresql://far/db?user=ada&password=hunter2&x=1",
            "postgresql://far/db?user=ada&password=***&x=1",
        ),
        ("postgresql:/ada:hunter2@far/db", "postgresql:/ada:***@far/db"),
        ("foo", "foo"),
    ],
)
def test_a_password_is_not_shown(url: str, said: str) -> None:
    assert shown(url) == said


def test_a_run_keeps_no_password_of_its_store(store: Store) -> None:
    config = {"store": {"url": "postgresql://ada:hunter2@far/db"}, "policy": {}}
    store.begin_run(kind="capture", config=config, policy={}, seed=1, at=1.0)
    assert store.run().config["store"] == {"url": "postgresql://ada:***@far/db"}
    assert config["store"]["url"].endswith("hunter2@far/db")
