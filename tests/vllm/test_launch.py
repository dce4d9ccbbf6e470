"""``migrate launch`` with the real vLLM: started, checked, shadowed, stopped, killed; and no process stays."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest
from openai import OpenAI

from replay.exchange import Outcome
from tests.serving import ROOT, free_port
from tests.shadowing import MODEL, shadowing
from tests.vllm.server import HOME

pytestmark = pytest.mark.timeout(300)

LAUNCH = f"""{{
  model: {HOME}/tiny-model, executable: {HOME}/bin/vllm,
  args: {{max-model-len: 1024, max-num-seqs: 16, generation-config: vllm, enforce-eager: true,
         enable-auto-tool-choice: true, tool-call-parser: hermes}},
  env: {{HF_HUB_OFFLINE: 1, VLLM_CPU_KVCACHE_SPACE: 1, VLLM_NO_USAGE_STATS: 1, VLLM_CPU_OMP_THREADS_BIND: nobind,
        OMP_NUM_THREADS: 1, VLLM_SERVER_DEV_MODE: 1}}}}"""


def configured(folder: Path) -> Path:
    text = ""
    for arm in ("baseline", "candidate"):
        text += f"{arm}: {{kind: vllm, url: 'http://127.0.0.1:{free_port()}', model: {MODEL}, launch: {LAUNCH}}}\n"
    (folder / "launch.yaml").write_text(text)
    return folder / "launch.yaml"


@contextmanager
def launching(config: Path, arm: str) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "migrate", "launch", "vllm", "--config", str(config), "--arm", arm]
    with (config.parent / f"{arm}.said").open("wb") as said:
        process = subprocess.Popen(
            [*command, "--log", str(config.parent / f"{arm}.log")], cwd=ROOT, stdout=said, stderr=said
        )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            process.terminate()
        process.wait(60)


def below(pid: int) -> set[int]:
    """Descendants of a process."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
    found = [pid]
    for one in found:
        found += [child for child, parent in parents.items() if parent == one]
    return set(found[1:])


def named(pids: set[int]) -> list[str]:
    """What those of the processes that live are called."""
    found = []
    for pid in pids:
        with suppress(OSError):
            stat = Path(f"/proc/{pid}/stat").read_text()
            found += [stat] if stat.rpartition(")")[2].split()[0] != "Z" else []
    return found


def until(holds: Callable[[], object], within: float, said: Path) -> None:
    deadline = time.monotonic() + within
    while not holds():
        assert time.monotonic() < deadline, said.read_text()
        time.sleep(0.1)


def test_a_launch_that_is_killed_while_vllm_starts_leaves_no_process(tmp_path: Path) -> None:
    config = configured(tmp_path)
    with launching(config, "candidate") as process:
        said, log = tmp_path / "candidate.said", tmp_path / "candidate.log"
        until(lambda: log.exists() and "EngineCore" in log.read_text(), 90, said)
        processes = below(process.pid)
        assert len(processes) >= 3, said.read_text()  # the guard, the API server and the engine
        process.kill()
        until(lambda: not named(processes), 45, said)


def test_two_are_launched_checked_shadowed_stopped_and_killed(tmp_path: Path) -> None:
    config = configured(tmp_path)
    urls = re.findall(r"http://[\d.:]+", config.read_text())
    with ExitStack() as stack:
        arms = {arm: stack.enter_context(launching(config, arm)) for arm in ("baseline", "candidate")}
        for arm, process in arms.items():
            said = tmp_path / f"{arm}.said"
            until(lambda p=process, s=said: "ready after" in s.read_text() or p.poll() is not None, 200, said)
            assert process.poll() is None, said.read_text()
            assert f"serving {MODEL}" in said.read_text()
        kept = json.loads((tmp_path / "candidate.json").read_text())
        assert kept["server"]["version"].startswith("0.32") and kept["server"]["context"] == 1024
        assert kept["server"]["dtype"] and kept["server"]["quantization"] is kept["server"]["gpu"] is None
        check = [sys.executable, "-m", "migrate", "check", "--config", str(config)]
        checked = subprocess.run(check, cwd=ROOT, capture_output=True, text=True, check=False)
        assert checked.returncode == 0, checked.stdout + checked.stderr
        with shadowing(tmp_path, baseline=urls[0], candidate=urls[1], repeat="0 %") as shadow:
            for count in range(50, 201, 50):  # fewer at a time than may be in flight to the candidate
                asked(shadow.url, 50)
                exchanges = shadow.exchanges(count)
        outcomes = Counter(one.candidate.outcome for one in exchanges if one.candidate)
        assert outcomes == {Outcome.OK: 200}, outcomes
        processes = {arm: below(process.pid) for arm, process in arms.items()}
        arms["baseline"].send_signal(signal.SIGTERM)
        assert arms["baseline"].wait(60) == 0
        assert not named(processes["baseline"])
        arms["candidate"].kill()
        until(lambda: not named(processes["candidate"]), 45, tmp_path / "candidate.said")


def asked(url: str, count: int) -> None:
    client = OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)

    def ask(n: int) -> None:
        message = {"role": "user", "content": f"When is high tide at pier {n}?"}
        client.chat.completions.create(model=MODEL, messages=[message], max_tokens=8, temperature=0)  # type: ignore[list-item]

    with client, ThreadPoolExecutor(4) as pool:
        list(pool.map(ask, range(count)))
