"""Whatever goes wrong in recording is counted and said once; the caller gets its answers as ever. Real processes throughout."""

from __future__ import annotations

import logging
import multiprocessing.spawn
import os
import resource
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

import migrate
from migrate.channel import Admitted
from migrate.cli import main
from migrate.companion import Companion
from migrate.config import Backend, Config, StoreSection
from migrate.errors import StoreError
from migrate.store import Store
from replay.exchange import Exchange
from tests.migrate.samples import request
from tests.migrate.sdk import ASK, counted, eventually, reading, running, simulator, stored, sync_client
from tests.replay.servers import CHAT_ANSWER, acting, reply, saying

ROOT = Path(__file__).parents[2]
APPLICATION = """
import sys
import migrate, openai
client = migrate.record(openai.OpenAI(base_url=sys.argv[1] + "/v1", api_key="none"), sys.argv[2])
def ask(words):
    list(client.chat.completions.create(model="m", messages=[{"role": "user", "content": words}], stream=True))
"""


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with running(simulator()) as address:
        yield address


@pytest.fixture
def store(tmp_path: Path) -> Iterator[str]:
    yield f"sqlite:///{tmp_path}/migrate.db"
    migrate.stop_recording(0.5)


def asking(url: str, store: str, times: int = 3) -> None:
    """Calls whose answers have to arrive."""
    with sync_client("record", url, store) as client:
        for _ in range(times):
            assert client.chat.completions.create(model="m", messages=ASK).choices[0].message.content


def reading_if_any(store: str) -> list[Exchange]:
    """What is in a store that may not be there yet."""
    try:
        return reading(store)
    except StoreError:
        return []


def over(store: str, runs: int) -> int:
    """How many calls are in a store; none while fewer runs than that have ended in order."""
    found = len(reading_if_any(store))
    with Store.open(store, create=True) as opened:
        return found if [run.status for run in opened.runs()] == ["ended"] * runs else 0


def companions() -> list[int]:
    """The mirror processes that this one has started."""
    tasks = Path("/proc/self/task").iterdir()
    children = {int(pid) for task in tasks for pid in (task / "children").read_text().split()}
    return [pid for pid in children if b"migrate.mirror" in Path(f"/proc/{pid}/cmdline").read_bytes()]


def program(source: str, url: str, store: str) -> subprocess.Popen[str]:
    """An application of its own."""
    command = [sys.executable, "-W", "error", "-c", APPLICATION + source, url, store]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    pipe = subprocess.PIPE
    return subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


def ended(process: subprocess.Popen[str]) -> None:
    """An application that went well, and said nothing but, on a machine that is busy, that its companion needs longer."""
    out, err = process.communicate(timeout=30)
    said = [line for line in err.splitlines() if "are still being written" not in line]
    assert (process.returncode, out, said) == (0, "", [])


def test_a_store_that_cannot_be_opened_is_said_once_and_used_once_it_can(
    url: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "missing"
    store = f"sqlite:///{folder}/migrate.db"
    asking(url, store)
    eventually(lambda: "cannot be opened" in caplog.text or "cannot be created" in caplog.text)
    asking(url, store)
    folder.mkdir()
    eventually((folder / "migrate.db").exists)
    assert len(stored(store)) == 6
    assert [record.levelno for record in caplog.records if record.name == "migrate"] == [logging.WARNING]


def test_a_store_that_never_opens_costs_no_time_at_the_end(
    url: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    foreign = tmp_path / "foreign.db"
    foreign.write_text("somebody's notes")
    asking(url, f"sqlite:///{foreign}")
    eventually(lambda: "is no store of llm-migrate" in caplog.text)
    start = time.monotonic()
    assert not migrate.stop_recording()
    assert time.monotonic() - start < 8.0 and foreign.read_text() == "somebody's notes"
    assert "3 recorded model calls were not stored" in caplog.text


def test_a_store_that_is_locked_for_a_while_delays_nobody(url: str, store: str, tmp_path: Path) -> None:
    asking(url, store, 1)
    eventually(lambda: len(reading_if_any(store)) == 1)
    with sqlite3.connect(tmp_path / "migrate.db", isolation_level=None) as other:
        other.execute("begin exclusive")
        start = time.monotonic()
        asking(url, store, 20)
        assert time.monotonic() - start < 2.0
        other.execute("rollback")
    other.close()
    assert len(stored(store)) == 21


def test_a_companion_that_is_killed_comes_back_for_the_same_run(
    url: str, store: str, caplog: pytest.LogCaptureFixture
) -> None:
    asking(url, store, 1)
    eventually(lambda: bool(companions()) and len(reading_if_any(store)) == 1)
    for pid in companions():
        os.kill(pid, signal.SIGKILL)
    eventually(lambda: "not recorded at the moment" in caplog.text)
    asking(url, store, 5)
    assert len(stored(store)) == 6
    with Store.open(store) as opened:
        (run,) = opened.runs()
    assert run.status == "ended"


def test_what_a_killed_companion_had_not_written_is_counted(
    url: str, store: str, caplog: pytest.LogCaptureFixture
) -> None:
    asking(url, store, 1)
    eventually(lambda: len(reading_if_any(store)) == 1)
    (companion,) = companions()
    os.kill(companion, signal.SIGSTOP)
    asking(url, store, 4)
    time.sleep(0.5)  # they are on their way
    os.kill(companion, signal.SIGKILL)
    eventually(lambda: "not recorded at the moment" in caplog.text)
    asking(url, store, 2)
    assert not migrate.stop_recording(20)
    assert "4 recorded model calls were not stored, or not whole" in caplog.text
    assert len(reading(store)) == 3


def test_a_companion_that_dies_while_it_is_handed_a_call_is_noticed_and_leaves_no_process(store: str) -> None:
    """A call larger than the channel's buffer: handing it over has begun when the other end goes away."""
    config = Config(baseline=Backend(kind="relay", url="http://127.0.0.1:1"), store=StoreSection(url=store))
    companion = Companion(config, salt="00" * 16, folder=None)
    companion.start()
    eventually(lambda: companion.listen() is None and companion.ready)
    (process,) = companions()
    os.kill(process, signal.SIGSTOP)
    threading.Timer(0.3, os.kill, (process, signal.SIGKILL)).start()
    large = request("r1", body=bytes(2**22))
    assert not companion.send(Admitted(request=large), patient=lambda: True)
    assert companion.started and not companion.ready
    assert companion.listen() == "it ended with code -9" and not companion.started
    assert companions() == []


def test_a_store_that_takes_no_more_is_said(url: str, store: str, caplog: pytest.LogCaptureFixture) -> None:
    asking(url, store, 1)
    eventually(lambda: bool(companions()) and len(reading_if_any(store)) == 1)
    for companion in companions():
        resource.prlimit(companion, resource.RLIMIT_FSIZE, (4096, 4096))  # as a disk that is full
    asking(url, store, 5)
    assert not migrate.stop_recording(20)
    assert "may be missing" in caplog.text and "the store took no more" in caplog.text


def test_a_companion_that_is_late_gets_everything_when_the_time_to_stop_is_over(
    url: str, store: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    late = tmp_path / "late"
    late.write_text(f'#!/bin/sh\nsleep 3\nexec {sys.executable} "$@"\n')
    late.chmod(0o755)
    before = multiprocessing.spawn.get_executable()
    multiprocessing.spawn.set_executable(str(late))
    try:
        asking(url, store, 3)
        assert not migrate.stop_recording(1)
    finally:
        multiprocessing.spawn.set_executable(before)
    assert "still being written" in caplog.text and "not stored" not in caplog.text
    eventually(lambda: len(reading_if_any(store)) == 3, within=20)


def test_a_log_handler_that_fails_is_the_applications_own_affair(url: str, store: str) -> None:
    class Broken(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            raise ValueError("no room for that")

    handler = Broken()
    logging.getLogger("migrate").addHandler(handler)
    try:
        asking(url, "no address", 1)
        time.sleep(1.0)
        asking(url, "no address", 1)
        assert not migrate.stop_recording(5)
    finally:
        logging.getLogger("migrate").removeHandler(handler)


def test_a_password_of_the_store_is_never_said(url: str, caplog: pytest.LogCaptureFixture) -> None:
    asking(url, "postgresql://ada:hunter2hunter2@127.0.0.1:1/notes?password=hunter2hunter2", 1)
    eventually(lambda: "not recorded at the moment" in caplog.text)
    assert not migrate.stop_recording()
    assert "1 recorded model calls were not stored" in caplog.text and "hunter2" not in caplog.text


def test_no_companion_at_all_is_said_and_harms_nobody(
    url: str, store: str, caplog: pytest.LogCaptureFixture
) -> None:
    before = multiprocessing.spawn.get_executable()
    multiprocessing.spawn.set_executable("/no/such/python")
    try:
        asking(url, store)
        eventually(lambda: "No such file" in caplog.text)
        assert not migrate.stop_recording()
    finally:
        multiprocessing.spawn.set_executable(before)


def test_what_comes_faster_than_it_is_taken_is_left_out_and_counted(
    store: str, caplog: pytest.LogCaptureFixture
) -> None:
    body = {"model": "m", "messages": [{"role": "user", "content": "long " * 400_000}]}
    with running(acting(saying(reply(CHAT_ANSWER)))) as url, migrate.record(httpx.Client(), store) as http:
        target = f"{url}/v1/chat/completions"
        http.post(target, json={"model": "m"})
        eventually(lambda: bool(companions()) and len(reading_if_any(store)) == 1)
        (companion,) = companions()
        os.kill(companion, signal.SIGSTOP)
        try:
            for _ in range(60):
                assert http.post(target, json=body).content == CHAT_ANSWER
        finally:
            os.kill(companion, signal.SIGCONT)
        eventually(lambda: "faster than they can be recorded" in caplog.text)
    assert migrate.stop_recording(20)
    counts = counted(store)
    assert counts["passed"] == 61 and counts["queue_full"] > 20 and counts["mirrored"] > 20
    assert counts["queue_full"] + counts["mirrored"] == 61


def test_a_program_that_ends_has_stored_everything(url: str, store: str) -> None:
    ended(program("ask('one'); ask('two')", url, store))
    eventually(lambda: over(store, 1) == 2, within=20)


def test_a_program_that_is_killed_has_stored_what_was_over(url: str, store: str) -> None:
    process = program(
        "ask('one'); sys.stdin.read(1); ask('two'); print(flush=True); sys.stdin.read()", url, store
    )
    eventually(lambda: len(reading_if_any(store)) == 1)
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(" ")
    process.stdin.flush()
    assert process.stdout.readline() == "\n"
    time.sleep(0.3)  # a few turns of its thread
    process.kill()
    process.communicate()
    eventually(lambda: len(reading(store)) == 2)


def test_forked_and_spawned_workers_record_for_themselves(url: str, store: str) -> None:
    forking = """
import os
ask('before')
children = []
for name in range(2):
    pid = os.fork()
    if not pid:
        ask(f'child {name} one'); ask(f'child {name} two'); sys.exit()
    children.append(pid)
ask('after')
assert [os.waitpid(pid, 0)[1] for pid in children] == [0, 0]
"""
    ended(program(forking, url, store))
    workers = """
import multiprocessing
worker = multiprocessing.get_context('fork').Process(target=ask, args=('worker',))
worker.start(); worker.join()
assert worker.exitcode == 0
"""
    ended(program(workers, url, store))
    eventually(lambda: over(store, 4) == 7, within=20)


def test_the_package_is_light_until_something_is_recorded() -> None:
    source = "import sys, migrate; print([name for name in ('httpx', 'httpx2', 'pydantic') if name in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", source], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert done.stdout == "[]\n"
    assert set(migrate.__all__) <= {*dir(migrate), *migrate.__all__}
    with pytest.raises(AttributeError):
        migrate.nonsense  # noqa: B018


def test_a_replay_takes_the_latest_recording(url: str, store: str, tmp_path: Path) -> None:
    asking(url, store)
    assert len(stored(store)) == 3
    config = tmp_path / "migrate.yaml"
    config.write_text(f"baseline: {{kind: vllm, url: {url}}}\nstore: {{url: '{store}'}}\n")
    with pytest.raises(SystemExit) as done:
        main(["replay", "--config", str(config), "--to", "baseline", "--speed", "100", "--quiet"])
    assert done.value.code == 0
    with Store.open(store) as opened:
        captured, replayed = opened.runs()
        assert (captured.kind, replayed.kind) == ("capture", "replay")
        again = list(opened.exchanges(replayed.id))
    assert len(again) == 3 and all(exchange.baseline and exchange.baseline.answer for exchange in again)
