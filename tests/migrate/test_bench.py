"""``migrate bench`` as a process of its own, against servers on real sockets that know what is true."""

from __future__ import annotations

import asyncio
import json
import math
import os
import signal
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from migrate.cli import main
from migrate.store import Store
from replay.simulator.server import serving
from replay.simulator.settings import Faults, Pacing, Settings
from tests.migrate import test_replay
from tests.migrate.test_replay import captured, question
from tests.replay import servers
from tests.replay.servers import CHAT_ANSWER, Act, reply

NO_SUCH_PAGE = reply(b"{}", status="404 Not Found")
SHORT = ("--time", "2s", "--burstiness", 0, "--warmup", 0)


def acting(act: Act) -> Any:
    """A server without metrics."""

    async def without(request: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if request.startswith(b"GET"):
            writer.write(NO_SUCH_PAGE)
        else:
            await act(request, reader, writer)

    return servers.acting(without)


async def started(folder: Path, *words: object, **environment: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "migrate",
        "bench",
        *map(str, words),
        cwd=folder,
        env=os.environ | {"TMPDIR": str(folder), "COLUMNS": "80"} | environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


async def bench(folder: Path, *words: object, **environment: str) -> tuple[int, str, str]:
    """Exit code, standard output, standard error. Two cores that others use too are allowed to be late."""
    process = await started(folder, "--lag-limit", "1s", *words, **environment)
    out, err = await process.communicate()
    return process.returncode or 0, out.decode(), err.decode()


async def measured(folder: Path, *words: object, **environment: str) -> dict[str, Any]:
    code, out, err = await bench(folder, *words, "--format", "json", **environment)
    assert code == 0, err
    document: dict[str, Any] = json.loads(out)
    return document


def nearest(values: list[float], level: float) -> float:
    return sorted(values)[math.ceil(level * len(values) - 1e-9) - 1]


def truth(file: Path) -> list[dict[str, Any]]:
    """What the simulator says of each request but the first, which only asks whether anybody is there."""
    return [json.loads(line) for line in file.read_text().splitlines()][1:]


async def test_figures_agree_with_what_the_server_knows(tmp_path: Path) -> None:
    file = tmp_path / "truth.jsonl"
    pacing = Pacing(ttft=0.08, ttft_spread=0.3, itl=0.01, itl_spread=0.2)
    async with serving(Settings(pacing=pacing, truth=file, tokens=20)) as url:
        document = await measured(tmp_path, "--url", url, "--rates", 20, "--time", "6s", "--warmup", 0)
    (step,), known = document["steps"], truth(file)
    times = [[at - one["arrived"] for at, _, token in one["chunks"] if token is not None] for one in known]
    first = [min(of) for of in times]
    # The role leaves with the first token, and both say that they carry it.
    gaps = [b - a for of in times for a, b in pairwise(sorted(of)[1:])]
    whole = [one["chunks"][-1][0] - one["arrived"] for one in known]
    assert step["sent"] == step["answered"] == len(known) and not step["failed"] and not step["missing"]
    for name, values in (("ttft_s", first), ("itl_s", gaps), ("e2e_s", whole)):
        for level in (0.5, 0.9):
            said = step["latency"][name]["answered"][f"p{level * 100:g}"]
            assert said == pytest.approx(nearest(values, level), abs=0.008), (name, level)
    assert step["latency"]["itl_s"]["samples"] == 19 * len(known)
    assert step["latency"]["tpot_s"]["answered"]["p50"] == pytest.approx(0.01, abs=0.003)
    assert step["output_tokens"] == 20 * len(known) and step["tokens_per_chunk"] == 1.0
    assert step["achieved_rate_per_s"] == pytest.approx(len(known) / 6, rel=0.1)
    assert step["steady"]["requests_per_s"] == pytest.approx(len(known) / 6, rel=0.25)
    server = step["server"]
    assert server["readings"] >= 5 and server["running_max"] >= 1 and server["waiting_max"] == 0
    assert server["prefix_hit_share"] == 0 and document["definitions"]["ttft_s"].startswith(
        "time to first token"
    )


async def test_a_freeze_of_the_server_shows(tmp_path: Path) -> None:
    """Half a second in which nothing is answered, one of two seconds at 40 requests a second: a quarter waited for it."""
    asked = 0

    async def act(_: bytes, __: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal asked
        asked += 1
        loop = asyncio.get_running_loop()
        if asked == 20:
            loop.call_later(0.5, frozen.set)
        elif asked < 20:
            writer.write(reply(CHAT_ANSWER))
            return
        await frozen.wait()
        writer.write(reply(CHAT_ANSWER))

    frozen = asyncio.Event()
    async with acting(act) as url:
        document = await measured(tmp_path, "--url", url, "--model", "m", "--rates", 40, *SHORT)
    latency = document["steps"][0]["latency"]
    assert latency["e2e_from_due_s"]["answered"]["p50"] < 0.2 < latency["e2e_from_due_s"]["answered"]["p90"]
    assert latency["e2e_s"]["max"] > 0.4


async def test_errors_are_counted_and_count_as_infinitely_slow(tmp_path: Path) -> None:
    file = tmp_path / "truth.jsonl"
    faults = Faults(error_share=0.2, error_status=503, garbage_share=0.1)
    async with serving(Settings(faults=faults, truth=file, fault_seed=3)) as url:
        document = await measured(
            tmp_path, "--url", url, "--concurrency", 8, "--requests", 100, "--warmup", 0
        )
    step = document["steps"][0]
    known = [json.loads(line) for line in file.read_text().splitlines()][-100:]
    refused = sum(one["status"] == 503 for one in known)
    assert refused and step["errors"]["overloaded"] == refused
    assert sum(step["errors"].values()) == step["failed"] == 100 - step["answered"] > refused
    assert step["latency"]["e2e_s"]["with_failures"]["p90"] is None
    assert step["latency"]["e2e_s"]["answered"]["p90"] is not None


async def test_a_role_is_no_token(tmp_path: Path) -> None:
    """The role at once, the first text after 60 ms."""
    roled = Roled()
    async with acting(roled.act) as url:
        document = await measured(
            tmp_path, "--url", url, "--model", "m", "--concurrency", 2, "--requests", 20, "--warmup", 0
        )
    latency = document["steps"][0]["latency"]
    assert 0.055 < latency["ttft_s"]["answered"]["p50"] < 0.09
    assert latency["itl_s"]["answered"]["p50"] < 0.05 and latency["itl_s"]["samples"] == 20
    assert latency["tpot_s"]["samples"] == 20


class Roled:
    """Streams a role, then two texts."""

    async def act(self, _: bytes, __: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        self.event(writer, {"role": "assistant", "content": ""})
        await asyncio.sleep(0.06)
        self.event(writer, {"content": "high"})
        await asyncio.sleep(0.01)
        self.event(writer, {"content": " at four"}, "stop")
        self.data(writer, {"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 2}})
        writer.write(b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n")

    def event(self, writer: asyncio.StreamWriter, delta: dict[str, str], finish: str | None = None) -> None:
        self.data(writer, {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})

    def data(self, writer: asyncio.StreamWriter, value: dict[str, Any]) -> None:
        data = b"data: %s\n\n" % json.dumps(value).encode()
        writer.write(b"%x\r\n%s\r\n" % (len(data), data))


async def test_warm_up_has_prompts_of_its_own_and_is_not_counted(tmp_path: Path) -> None:
    server = test_replay.Server()
    (tmp_path / "mine.jsonl").write_text("".join(json.dumps(question(f"q{n}")) + "\n" for n in range(10)))
    words = ("--prompts", "mine.jsonl", "--model", "other", "--rates", 10, "--time", "2s", "--burstiness", 0)
    async with acting(server.act) as url:
        document = await measured(tmp_path, "--url", url, *words, "--warmup", 4, "--no-nonce")
    assert document["prompts"] == 8 and document["steps"][0]["sent"] == 20
    probe, *warm = server.questions[:5]
    assert {probe, *warm} == {"q8", "q9"} and len(warm) == 4
    assert server.questions[5:] == [f"q{n % 8}" for n in range(20)]
    assert {body["model"] for body in server.asked} == {"other"}
    assert all(body["stream"] and body["stream_options"] == {"include_usage": True} for body in server.asked)


async def test_no_prompt_is_sent_twice_and_the_output_says_so(tmp_path: Path) -> None:
    server = test_replay.Server()
    async with acting(server.act) as url:
        words = ("--url", url, "--model", "m", "--rates", "30,30", *SHORT, "--set", "max_tokens=7")
        code, out, err = await bench(tmp_path, *words)
    assert code == 0 and len(set(server.questions)) == len(server.questions) == 121, err
    assert {body["max_tokens"] for body in server.asked} == {7}
    assert "a nonce before each" in " ".join(out.split()) and "step 2 of 2: 30 requests/s for 2 s" in err
    assert not list(tmp_path.glob("migrate-bench-*")), "nothing is kept"
    assert "not streamed" in out, "this server answers whole, and TTFT is not 0"


async def test_what_is_not_streamed_is_asked_for_without_stream_options(tmp_path: Path) -> None:
    server = test_replay.Server()
    async with acting(server.act) as url:
        words = ("--url", url, "--model", "m", "--concurrency", 1, "--requests", 3, "--set", "stream=false")
        document = await measured(tmp_path, *words)
    assert all(body["stream"] is False and "stream_options" not in body for body in server.asked)
    assert document["steps"][0]["latency"]["ttft_s"]["mean"] is None
    assert document["fields"] == {"stream": False}


async def test_a_captured_run_to_the_candidate_is_kept_in_the_store(tmp_path: Path) -> None:
    server = test_replay.Server()
    async with acting(server.act) as url:
        (tmp_path / "migrate.yaml").write_text(
            "baseline: {kind: vllm, url: 'http://127.0.0.1:1', model: m}\n"
            f"candidate: {{kind: vllm, url: '{url}', model: theirs, api_key_env: THEIR_KEY}}\n"
        )
        await captured(tmp_path, (question(f"q{n}") for n in range(12)))
        with Store.open(f"sqlite:///{tmp_path}/migrate.db") as store:
            run = store.run().id
        words = (
            "--config",
            "migrate.yaml",
            "--to",
            "candidate",
            "--store",
            "sqlite:///migrate.db",
            "--run",
            run,
        )
        rest = ("--concurrency", "1,2", "--requests", 6, "--warmup", 2)
        document = await measured(tmp_path, *words, *rest, THEIR_KEY="sk-very-secret")
    assert {body["model"] for body in server.asked} == {"theirs"}
    assert all(b"authorization: bearer sk-very-secret" in head.lower() for head in server.heads)
    assert "sk-very-secret" not in json.dumps(document)
    with Store.open(f"sqlite:///{tmp_path}/migrate.db") as store:
        kept = [one for one in store.runs() if one.kind == "bench"]
        assert [one.id for one in kept] == document["runs"] and {one.status for one in kept} == {"ended"}
        assert [len(list(store.exchanges(one.id))) for one in kept] == [6, 6]


async def test_ctrl_c_shows_the_steps_that_are_done(tmp_path: Path) -> None:
    server = test_replay.Server(delay=0.01)
    async with acting(server.act) as url:
        words = ("--url", url, "--model", "m", "--rates", "10,10", "--time", "2s", "--warmup", 0)
        process = await started(tmp_path, *words, "--lag-limit", "1s", "--format", "json")
        assert process.stderr is not None
        while b"step 2" not in (line := await process.stderr.readline()):
            assert line
        await asyncio.sleep(0.5)
        process.send_signal(signal.SIGINT)
        out, err = await process.communicate()
    assert process.returncode == 130 and b"interrupted; 1 of 2 steps were measured" in err, err
    assert len(json.loads(out)["steps"]) == 1
    assert not list(tmp_path.glob("migrate-bench-*"))


async def test_a_late_client_is_invalid_and_the_files_are_written_all_the_same(tmp_path: Path) -> None:
    server = test_replay.Server()
    async with acting(server.act) as url:
        words = ("--url", url, "--model", "m", "--rates", "20,40", *SHORT, "--lag-limit", "1us")
        code, out, err = await bench(tmp_path, *words, "--output", "b.txt", "--plot", "b.svg")
    text = (tmp_path / "b.txt").read_text()
    assert code == 4 and not out and "wrote b.svg" in err, err
    assert "20/s: INVALID: requests left" in text and "40/s: INVALID" in text
    assert (tmp_path / "b.svg").read_text().startswith("<svg")


URL = ("--url", "http://127.0.0.1:1", "--model", "m")
WRONG = {
    "no load": (URL, "give --rates 1,2,4,8 for an open loop or --concurrency"),
    "two loads": ((*URL, "--rates", "1", "--concurrency", "1"), "give --rates"),
    "time of a closed loop": ((*URL, "--concurrency", "1", "--time", "5s"), "--time belongs to --rates"),
    "requests of an open loop": (
        (*URL, "--rates", "1", "--requests", "5"),
        "--requests belongs to --concurrency",
    ),
    "a rate of nothing": ((*URL, "--rates", "0"), "is not RATE,RATE"),
    "half a user": ((*URL, "--concurrency", "1.5"), "is not COUNT,COUNT"),
    "no time": ((*URL, "--rates", "1", "--time", "0s"), "--time has to be above 0"),
    "no address": (("--url", "ftp://x", "--rates", "1"), "is not an http"),
    "two servers": ((*URL, "--rates", "1", "--config", "migrate.yaml"), "are two servers"),
    "no server": ((*URL, "--rates", "1"), "http://127.0.0.1:1 did not answer"),
    "no server, no model": (("--url", "http://127.0.0.1:1", "--rates", "1"), "cannot be reached"),
    "no such limit": ((*URL, "--rates", "1", "--goodput", "itl=1ms"), "is not one of ttft, tpot, e2e"),
    "no time in a limit": ((*URL, "--rates", "1", "--goodput", "ttft=fast"), "is not a duration"),
    "no store": ((*URL, "--rates", "1", "--run", "x"), "name it with --store"),
    "two workloads": ((*URL, "--rates", "1", "--run", "x", "--store", "sqlite:///s.db"), "does not exist"),
    "an empty file": ((*URL, "--rates", "1", "--prompts", "empty.jsonl"), "holds no requests"),
    "no folder": ((*URL, "--rates", "1", "--plot", "no/b.svg"), "there is no folder no"),
    "no key": ((*URL, "--rates", "1", "--api-key-env", "NO_SUCH_KEY"), "NO_SUCH_KEY is empty"),
    "no candidate": (("--rates", "1", "--to", "candidate", "--config", "alone.yaml"), "has no candidate"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_use_is_one_line(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words, said = WRONG[name]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty.jsonl").write_text("")
    (tmp_path / "alone.yaml").write_text("baseline: {kind: vllm, url: 'http://127.0.0.1:1'}\n")
    with pytest.raises(SystemExit) as ended:
        main(["bench", *words])
    out, err = capsys.readouterr()
    assert ended.value.code == 2 and said in err and "Traceback" not in err and not out, err


async def test_a_model_that_is_not_served_is_said_before_anything_is_measured(tmp_path: Path) -> None:
    async with serving(Settings(models=("harbor-7b",))) as url:
        code, out, err = await bench(tmp_path, "--url", url, "--model", "nope", "--rates", 1)
        assert code == 2 and "nope" in err and "did not answer" in err and not out
        document = await measured(tmp_path, "--url", url, "--concurrency", 1, "--requests", 2, "--warmup", 0)
        assert document["model"] == "harbor-7b"
