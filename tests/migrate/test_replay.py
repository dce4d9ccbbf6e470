"""``migrate replay`` as a process of its own, against servers on real sockets."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import sys
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml

from migrate.store import Store
from replay.exchange import Arm, Exchange, Observation, Outcome
from tests.replay.servers import CHAT_ANSWER, Act, acting, reply
from tests.serving import free_port

POLICY = "policy: {minimum_span: 0s, minimum_pairs: 5, warmup: 0s, rehearsal: true}\n"


class Server:
    """Answers chats after ``delay`` seconds and remembers what it was asked."""

    def __init__(self, delay: float = 0.0, answer: bytes | None = None) -> None:
        self.delay, self.answer = delay, answer or reply(CHAT_ANSWER)
        self.asked: list[dict[str, Any]] = []
        self.at: list[float] = []
        self.heads: list[bytes] = []

    async def act(self, request: bytes, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head, _, body = request.partition(b"\r\n\r\n")
        if head.startswith(b"GET "):  # it has no page of metrics
            writer.write(reply(b"{}", status="404 Not Found"))
            return
        self.heads.append(head)
        self.asked.append(json.loads(body))
        self.at.append(asyncio.get_running_loop().time())
        await asyncio.sleep(self.delay)
        writer.write(self.answer)

    @property
    def questions(self) -> list[str]:
        return [body["messages"][-1]["content"] for body in self.asked]


@asynccontextmanager
async def two(baseline: Act, candidate: Act, folder: Path, more: str = POLICY) -> AsyncIterator[None]:
    """Two servers, and a configuration in ``folder`` that names them."""
    async with acting(baseline) as one, acting(candidate) as other:
        (folder / "migrate.yaml").write_text(
            f"baseline: {{kind: vllm, url: '{one}'}}\ncandidate: {{kind: vllm, url: '{other}'}}\n{more}"
        )
        yield


async def migrate(folder: Path, *words: object) -> tuple[int, str]:
    process = await started(folder, *words)
    _, err = await process.communicate()
    return process.returncode or 0, err.decode()


async def started(folder: Path, *words: object) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "migrate",
        *map(str, words),
        cwd=folder,
        start_new_session=True,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )


def question(text: str, **more: Any) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": text}], **more}


async def captured(folder: Path, bodies: Iterable[Any]) -> None:
    """Requests in the store of the configuration, as if they had been imported from a log."""
    (folder / "log.jsonl").write_text("".join(json.dumps(body) + "\n" for body in bodies))
    code, err = await migrate(folder, "import", "log.jsonl", "--quiet")
    assert code == 0, err


def stored(folder: Path) -> list[Exchange]:
    with Store.open(f"sqlite:///{folder}/migrate.db") as store:
        return list(store.exchanges(store.run().id))


def counters(folder: Path) -> dict[str, int]:
    with Store.open(f"sqlite:///{folder}/migrate.db") as store:
        return store.counters(store.run().id)


def status(folder: Path) -> str:
    with Store.open(f"sqlite:///{folder}/migrate.db") as store:
        return store.run().status


def seen(exchanges: Iterable[Exchange], arm: Arm) -> list[Observation]:
    by_arm = {Arm.BASELINE: "baseline", Arm.CANDIDATE: "candidate", Arm.BASELINE_REPEAT: "repeat"}
    found = (getattr(exchange, by_arm[arm]) for exchange in exchanges)
    return [one for one in found if one is not None]


async def test_every_request_goes_to_both_and_is_recorded_with_how_late_it_left(tmp_path: Path) -> None:
    one, other = Server(), Server(delay=0.05)
    async with two(one.act, other.act, tmp_path):
        await captured(tmp_path, (question(f"q{n}") for n in range(40)))
        code, err = await migrate(tmp_path, "replay", "--rate", 100, "--repeat", "50 %")
    exchanges = stored(tmp_path)
    assert code == 0 and status(tmp_path) == "ended" and len(exchanges) == 40, err
    baseline, candidate = seen(exchanges, Arm.BASELINE), seen(exchanges, Arm.CANDIDATE)
    assert {seen.outcome for seen in (*baseline, *candidate)} == {Outcome.OK}
    assert sorted(other.questions) == sorted(f"q{n}" for n in range(40))
    assert all(seen.timing.lag_s is not None and seen.timing.lag_s >= 0 for seen in (*baseline, *candidate))
    repeats = seen(exchanges, Arm.BASELINE_REPEAT)
    assert 8 <= len(repeats) <= 32 and len(one.asked) == 40 + len(repeats)
    assert all(repeat.timing.lag_s is None for repeat in repeats)
    span = max(seen.at for seen in baseline) - min(seen.at for seen in baseline)
    assert 0.2 < span < 5 and exchanges[0].request.at == pytest.approx(baseline[0].at, abs=0.5)
    assert b"x-llm-migrate-copy: 1" in one.heads[0].lower()
    assert "baseline: 40 sent, 40 ok, none failed" in err and "end to end from its moment" in err


@pytest.mark.parametrize("dead", ["candidate", "baseline"])
async def test_a_backend_that_answers_nothing_is_said_and_is_no_success(tmp_path: Path, dead: str) -> None:
    one = Server()
    async with two(one.act, one.act, tmp_path):
        await captured(tmp_path, (question(f"q{n}") for n in range(6)))
        path = tmp_path / "migrate.yaml"
        config = yaml.safe_load(path.read_text())
        config[dead]["url"] = f"http://127.0.0.1:{free_port()}"
        path.write_text(yaml.safe_dump(config))
        code, err = await migrate(tmp_path, "replay", "--rate", 100, "--quiet")
    assert code == 4 and status(tmp_path) == "ended", err
    assert f"the {dead} answered none of 6 requests: 6 connect. Look at it with: migrate check" in err
    await migrate(tmp_path, "report", "--format", "json", "--output", "report.json")
    said = json.loads((tmp_path / "report.json").read_text())
    assert (said["verdict"], said["code"]) == ("HOLD", "no_answers")
    assert said["reason"].startswith(f"The {dead} answered none of 6 requests: no connection")


async def test_as_recorded_keeps_the_gaps_and_speed_divides_them(tmp_path: Path) -> None:
    one = Server()
    lines = [question(f"q{n}") for n in range(5)]
    async with two(one.act, one.act, tmp_path):
        await captured(tmp_path, lines)
        with Store.open(f"sqlite:///{tmp_path}/migrate.db") as store, store.engine.begin() as connection:
            for n, (name,) in enumerate(
                connection.exec_driver_sql("select id from requests order by at").all()
            ):
                connection.exec_driver_sql("update requests set at = ? where id = ?", (1e9 + n, name))
        words = ("--to", "baseline", "--speed", 4, "--repeat", "0")
        code, err = await migrate(tmp_path, "replay", *words)
    assert code == 0, err
    gaps = [later - earlier for earlier, later in pairwise(one.at)]
    assert one.questions == [f"q{n}" for n in range(5)] and all(abs(gap - 0.25) < 0.15 for gap in gaps), gaps
    assert counters(tmp_path)["captured_span_s"] == 4


async def test_an_open_loop_shows_a_freeze_that_a_closed_one_hides(tmp_path: Path) -> None:
    """Coordinated omission: one stall of 1.5 s in 4 s at 50 requests a second."""
    stall = asyncio.Event()
    stall.set()

    async def act(_: bytes, __: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await stall.wait()
        writer.write(reply(CHAT_ANSWER))

    async def freeze() -> None:
        await asyncio.sleep(1.5)
        stall.clear()
        await asyncio.sleep(1.5)
        stall.set()

    async def p95(*schedule: object) -> float:
        process = await started(tmp_path, "replay", "--to", "baseline", *schedule)
        while b"replaying" not in await process.stderr.readline():  # type: ignore[union-attr]
            pass
        await asyncio.gather(process.communicate(), freeze())
        times = sorted(one.timing.e2e_s or 0.0 for one in seen(stored(tmp_path), Arm.BASELINE))
        return times[int(0.95 * len(times))]

    async with two(act, act, tmp_path):
        await captured(tmp_path, (question(f"q{n}") for n in range(200)))
        assert await p95("--rate", 50, "--burstiness", 0) > 1.0
        assert await p95("--concurrency", 1) < 0.5


async def test_a_closed_loop_keeps_each_arm_at_its_own_pace(tmp_path: Path) -> None:
    quick, slow = Server(delay=0.01), Server(delay=0.1)
    async with two(quick.act, slow.act, tmp_path):
        await captured(tmp_path, (question(f"q{n}") for n in range(20)))
        code, err = await migrate(tmp_path, "replay", "--concurrency", 4, "--repeat", "0")
    assert code == 0 and len(quick.asked) == len(slow.asked) == 20, err
    assert max(quick.at) < max(slow.at) - 0.1 and len(seen(stored(tmp_path), Arm.CANDIDATE)) == 20


async def test_turns_of_a_conversation_wait_for_the_answer_before(tmp_path: Path) -> None:
    slow = Server(delay=0.15)
    bodies = [question("hello", user=user, n=turn) for turn in (1, 2, 3) for user in ("ann", "bob")]
    async with two(slow.act, slow.act, tmp_path):
        await captured(tmp_path, bodies)
        words = ("--to", "baseline", "--rate", 200, "--think-time", "100ms", "--repeat", "0")
        code, err = await migrate(tmp_path, "replay", *words)
    assert code == 0, err
    for user in ("ann", "bob"):
        turns = [
            (body["n"], at) for body, at in zip(slow.asked, slow.at, strict=True) if body["user"] == user
        ]
        assert [number for number, _ in turns] == [1, 2, 3]
        assert all(later[1] - earlier[1] > 0.24 for earlier, later in pairwise(turns))
    late = [one.timing.lag_s or 0.0 for one in seen(stored(tmp_path), Arm.BASELINE)]
    assert max(late) < 0.1, "waiting for a turn is not being late"


async def test_fields_are_overridden_for_both_and_a_nonce_is_the_same_for_both(tmp_path: Path) -> None:
    one, other = Server(), Server()
    async with two(one.act, other.act, tmp_path):
        await captured(tmp_path, [question("when is high tide?", temperature=1)] * 3)
        words = ("--rate", 50, "--set", "temperature=0", "--set", "seed=7", "--nonce", "--repeat", "100 %")
        code, err = await migrate(tmp_path, "replay", *words)
    assert code == 0, err
    assert all(body["temperature"] == 0 and body["seed"] == 7 for body in (*one.asked, *other.asked))
    assert all(text.endswith("] when is high tide?") and text.startswith("[") for text in other.questions)
    assert set(other.questions) < set(one.questions) and len(set(one.questions)) == 6


async def test_requests_that_cannot_be_sent_are_counted(tmp_path: Path) -> None:
    one = Server()
    stateful = {"model": "m", "input": "go on", "previous_response_id": "resp_1"}
    async with two(one.act, one.act, tmp_path):
        await captured(tmp_path, [question("a"), stateful, question("b")])
        code, err = await migrate(tmp_path, "replay", "--to", "baseline", "--rate", 50)
    assert code == 0 and sorted(one.questions) == ["a", "b"], err
    assert "1 captured requests could not be sent: stateful" in err
    assert counters(tmp_path)["unusable.stateful"] == 1


async def test_a_limit_of_requests_a_minute_stretches_the_schedule_and_is_no_lateness(tmp_path: Path) -> None:
    one = Server()
    async with two(one.act, one.act, tmp_path):
        config = tmp_path / "migrate.yaml"
        config.write_text(config.read_text().replace("url:", "limits: {requests_per_minute: 600}, url:", 1))
        await captured(tmp_path, (question(f"q{n}") for n in range(10)))
        code, err = await migrate(tmp_path, "replay", "--to", "baseline", "--rate", 1_000, "--repeat", "0")
    assert code == 0 and "stretched the schedule by 0.9 s" in err, err
    assert all(b - a > 0.08 for a, b in pairwise(one.at))
    assert max(seen.timing.lag_s or 0.0 for seen in seen(stored(tmp_path), Arm.BASELINE)) < 0.3


async def test_a_relay_that_says_when_to_come_back_is_left_alone_until_then(tmp_path: Path) -> None:
    at: list[float] = []

    async def act(_: bytes, __: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        at.append(asyncio.get_running_loop().time())
        busy = reply(
            b'{"error":{"message":"slow down"}}',
            status="429 Too Many Requests",
            headers=b"Retry-After: 1\r\n",
        )
        writer.write(busy if len(at) == 1 else reply(CHAT_ANSWER))

    async with two(act, act, tmp_path):
        config = tmp_path / "migrate.yaml"
        config.write_text(config.read_text().replace("kind: vllm", "kind: relay", 1))
        await captured(tmp_path, (question(f"q{n}") for n in range(5)))
        code, err = await migrate(tmp_path, "replay", "--to", "baseline", "--rate", 20)
    assert code == 0, err
    first = seen(stored(tmp_path), Arm.BASELINE)
    assert sorted(one.attempts for one in first) == [1, 1, 1, 1, 2]
    assert sum(moment - at[0] < 0.9 for moment in at) <= 2, "only what had left before the answer came"


async def test_a_budget_stops_before_it_is_passed_and_the_next_day_goes_on(tmp_path: Path) -> None:
    one = Server(delay=0.02)
    async with two(one.act, one.act, tmp_path):
        config = tmp_path / "migrate.yaml"
        plain = config.read_text()
        priced = "price: {input: 1000, output: 1000}, limits: {usd_per_day: %s}, url:"
        config.write_text(plain.replace("url:", priced % "0.5", 1))
        await captured(tmp_path, (question(f"q{n}", max_tokens=100) for n in range(30)))
        code, err = await migrate(tmp_path, "replay", "--to", "baseline", "--rate", 20, "--repeat", "0")
        cost = 10  # tokens of one answer: 7 and 3, a thousandth of a dollar each
        day = next(name for name in counters(tmp_path) if name.startswith("baseline_micro_usd"))
        spent = counters(tmp_path)[day]
        assert code == 4 and "usd limit" in err and "--resume" in err, err
        assert 0 < len(one.asked) < 30 and spent == len(one.asked) * cost * 1_000 <= 500_000
        again, err = await migrate(tmp_path, "replay", "--resume")
        assert again == 4 and len(one.asked) * cost * 1_000 <= 500_000, err
        config.write_text(plain.replace("url:", priced % "50", 1))
        code, err = await migrate(tmp_path, "replay", "--resume")
    assert code == 0 and Counter(one.questions) == Counter(f"q{n}" for n in range(30)), err


async def test_ctrl_c_lets_what_is_in_flight_finish_and_resume_sends_the_rest(tmp_path: Path) -> None:
    one, other = Server(delay=0.3), Server(delay=0.3)
    async with two(one.act, other.act, tmp_path):
        await captured(tmp_path, (question(f"q{n}") for n in range(30)))
        process = await started(tmp_path, "replay", "--rate", 20, "--repeat", "0")
        while len(one.asked) < 5:
            await asyncio.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, err = await process.communicate()
        assert process.returncode == 130 and b"--resume" in err, err
        sent = len(one.asked)
        assert (
            5 <= sent < 15 and len(seen(stored(tmp_path), Arm.BASELINE)) == sent and status(tmp_path) == "cut"
        )
        code, text = await migrate(tmp_path, "replay", "--resume")
    exchanges = stored(tmp_path)
    assert code == 0 and len(exchanges) == 30 and status(tmp_path) == "ended", text
    assert Counter(one.questions) == Counter(other.questions) == Counter(f"q{n}" for n in range(30))
    assert counters(tmp_path)["replay_resumed"] == 1
    code, text = await migrate(tmp_path, "replay", "--resume")
    assert code == 2 and "nothing to resume" in text


async def test_a_terminal_that_is_closed_and_a_service_that_is_stopped_lose_nothing(tmp_path: Path) -> None:
    """Both tell every process of the group."""
    one = Server(delay=0.3)
    async with two(one.act, one.act, tmp_path):
        await captured(tmp_path, (question(f"q{n}") for n in range(30)))
        words: tuple[object, ...] = ("--rate", 20, "--repeat", "0", "--to", "baseline")
        for number, once_more in ((signal.SIGHUP, ("--resume",)), (signal.SIGTERM, ())):
            before = len(one.asked)
            process = await started(tmp_path, "replay", *words)
            while len(one.asked) < before + 5:
                await asyncio.sleep(0.01)
            os.killpg(process.pid, number)
            await process.communicate()
            assert process.returncode == 130 and status(tmp_path) == "cut"
            assert len(seen(stored(tmp_path), Arm.BASELINE)) == len(one.asked) < 25
            words = once_more
    assert max(Counter(one.questions).values()) == 1


@pytest.mark.timeout(180)
async def test_killed_ten_times_and_resumed_each_request_is_there_once(tmp_path: Path) -> None:
    """Ten moments by chance; the sender alone, or both processes."""
    chance = random.Random(4)
    one, other = Server(delay=0.03), Server(delay=0.01)
    async with two(one.act, other.act, tmp_path):
        await captured(tmp_path, (question(f"q{n}") for n in range(150)))
        for attempt in range(10):
            words = ("--resume",) if attempt else ("--rate", 60, "--repeat", "0")
            process = await started(tmp_path, "replay", *words)
            before, leave = len(one.asked), chance.randint(0, 12)
            while len(one.asked) < before + leave or status(tmp_path) == "ended":
                await asyncio.sleep(0.002)
            await asyncio.sleep(chance.random() * 0.05)
            if chance.random() < 0.5:
                os.killpg(process.pid, signal.SIGKILL)
            else:
                process.kill()
            await process.communicate()
        code, err = await migrate(tmp_path, "replay", "--resume")
    exchanges = stored(tmp_path)
    assert code == 0 and len(exchanges) == 150 and 5 <= counters(tmp_path)["replay_resumed"] <= 10, err
    for arm, server in ((Arm.BASELINE, one), (Arm.CANDIDATE, other)):
        observed = seen(exchanges, arm)
        assert len(observed) == 150 and {seen.outcome for seen in observed} == {Outcome.OK}
        assert set(server.questions) == {f"q{n}" for n in range(150)}
        again = len(server.questions) - 150
        assert again < 75, "only what was under way when it was killed is asked again"


async def test_a_dead_backend_is_an_outcome_and_the_report_is_no_go(tmp_path: Path) -> None:
    one = Server()
    async with two(one.act, one.act, tmp_path):
        config = tmp_path / "migrate.yaml"
        lines = config.read_text().splitlines(keepends=True)
        lines[1] = "candidate: {kind: vllm, url: 'http://127.0.0.1:1'}\n"
        config.write_text("".join(lines))
        await captured(tmp_path, (question(f"q{n}") for n in range(25)))
        code, err = await migrate(tmp_path, "replay", "--rate", 100)
        assert code == 4 and "25 connect" in err, err
        code, _ = await migrate(tmp_path, "report")
    assert code == 3
    assert {one.outcome for one in seen(stored(tmp_path), Arm.CANDIDATE)} == {Outcome.CONNECT_ERROR}


async def test_a_client_that_is_late_is_no_evidence(tmp_path: Path) -> None:
    one = Server()
    async with two(one.act, one.act, tmp_path):
        await captured(tmp_path, (question(f"q{n}") for n in range(60)))
        code, err = await migrate(tmp_path, "replay", "--rate", 5_000, "--lag-limit", "1us")
        assert code == 0, err
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "migrate", "report", cwd=tmp_path, stdout=asyncio.subprocess.PIPE
        )
        out, _ = await process.communicate()
    assert process.returncode == 4 and b"client_lag" in out, out.decode()


WRONG = {
    "no candidate": (["--to", "candidate"], "has no candidate"),
    "two schedules": (["--rate", "5", "--concurrency", "2"], "four schedules"),
    "a rate of nothing": (["--rate", "0"], "--rate: input should be greater than 0"),
    "a rate without end": (["--rate", "inf"], "--rate: input should be a finite number"),
    "no ramp": (["--ramp", "5"], "is not FROM:TO:TIME"),
    "no sweep": (["--sweep", "5,x:1m"], "is not RATE,RATE"),
    "no override": (["--set", "temperature"], "is not NAME=VALUE"),
    "no such run": (["--run", "2026"], "no run '2026'"),
    "nothing to resume": (["--resume"], "nothing to resume"),
    "resume changed": (["--resume", "--rate", "5"], "leave out --rate"),
}


@pytest.mark.parametrize("name", WRONG)
async def test_wrong_use_is_one_line_and_nothing_is_sent(name: str, tmp_path: Path) -> None:
    words, said = WRONG[name]
    (tmp_path / "migrate.yaml").write_text("baseline: {kind: vllm, url: 'http://127.0.0.1:1'}\n")
    await captured(tmp_path, [question("a")])
    code, err = await migrate(tmp_path, "replay", *words)
    assert code == 2 and said in err and "Traceback" not in err, err
    assert status(tmp_path) == "ended" and len(stored(tmp_path)) == 1


@pytest.mark.parametrize("store", ["missing", "empty", "no run", "no request"])
async def test_a_store_without_captures_says_where_to_get_some(store: str, tmp_path: Path) -> None:
    (tmp_path / "migrate.yaml").write_text("baseline: {kind: vllm, url: 'http://127.0.0.1:1'}\n")
    if store == "empty":
        (tmp_path / "migrate.db").touch()
    elif store != "missing":
        with Store.open(f"sqlite:///{tmp_path}/migrate.db", create=True) as opened:
            if store == "no request":
                opened.begin_run(kind="shadow", config={}, policy={}, seed=1, at=1.0)
    code, err = await migrate(tmp_path, "replay")
    assert code == 2 and "with migrate import, capture or shadow" in err and err.count("\n") == 1, err
